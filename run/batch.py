"""Images that run one after the other, on the RTL and on golden, and everything that they leave compared.

Reset clears no memory, so each image finds what those before it left, and in the end one more image copies all of SBUF
and PSUM to HBM: the whole state of the machine is then a file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuroncore_rtl.golden.core import Core, CoreOutcome
from neuroncore_rtl.kernels.program.copies import dma_copy
from neuroncore_rtl.kernels.program.image import Image, build_image
from neuroncore_rtl.kernels.program.program import Program
from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor
from neuroncore_rtl.run.check.image_failures import LISTED, image_failures, races_of
from neuroncore_rtl.run.check.races import Race
from neuroncore_rtl.run.harness.cores import CoreDevice, CoreWork
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.harness.run import run
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import INT32
from neuroncore_rtl.spec.isa import RECORD_BYTES, Storage

__all__ = ["Batch", "Dump", "dump_image", "execute_on_golden", "put_together", "run_batch"]

PATIENCE = 16
"""Cycles for each beat of what is copied; the slowest HBM that is drawn takes fewer."""

ALIGNMENT = 4096
"""Images start at multiples of this, so that no AXI burst reaches into another one."""


@dataclass(frozen=True)
class Dump:
    """An image that copies all of SBUF and PSUM, and where it copies them to.

    Arguments:
        image: it.
        places: [partitions, words] of the storages in HBM, by their names.
    """

    image: Image
    places: dict[str, HbmTensor]


@dataclass(frozen=True)
class Batch:
    """Images that ran on both.

    Arguments:
        runs, expected: what became of each on the RTL and on golden.
        races: of each image on the RTL.
        hbm, golden_hbm: uint8, what is in HBM in the end, with what was on chip.
        compared, mismatches: bytes by storage.
        failures: what differs, a sentence each.
    """

    runs: Sequence[Outcome]
    expected: Sequence[CoreOutcome]
    races: Sequence[Sequence[Race]]
    hbm: np.ndarray
    golden_hbm: np.ndarray
    compared: dict[str, int]
    mismatches: dict[str, int]
    failures: tuple[str, ...]


def dump_image(config: Config, base: int) -> Dump:
    """Return the image, at `base`, that copies what is on chip to HBM."""
    program, places = Program(config, base), {}
    for storage, partitions, size in (
        (Storage.SBUF, config.partitions, config.sbuf_bytes),
        (Storage.PSUM, config.columns, config.psum_bytes),
    ):
        name, shape = storage.name, (size // 4,)
        whole = Tensor(name=name, format=INT32, address=0, partitions=partitions, shape=shape, storage=storage)
        places[name] = program.space.hbm(name, INT32, (partitions, *shape))
        program.append(dma_copy(places[name], whole))
    return Dump(build_image(program), places)


def _behind(image: Image) -> int:
    """Return the first address at which another image can follow."""
    return -(-(image.base + len(image.data)) // ALIGNMENT) * ALIGNMENT


def put_together(images: Sequence[Image]) -> np.ndarray:
    """Return HBM, uint8 from address 0 on, with images that do not overlap."""
    memory = np.zeros(max(map(_behind, images)), np.uint8)
    for image in images:
        memory[image.base : image.base + len(image.data)] = np.frombuffer(image.data, np.uint8)
    return memory


def execute_on_golden(config: Config, hbm: np.ndarray, images: Sequence[Image]) -> list[CoreOutcome]:
    """Run images in `hbm` one after the other; what is on chip stays from one to the next."""
    expected = []
    for image in images:
        core = Core(config, hbm)
        if expected:
            engines = core.machine.engines
            engines.sbuf[...], engines.psum[...] = expected[-1].sbuf, expected[-1].psum
        expected.append(core.run(image.base))
    return expected


def run_batch(
    device: CoreDevice,
    images: Sequence[Image],
    *,
    sim: str = "verilator",
    behaviour: Hbm | None = None,
    limit: int | None = None,
    dump: bool = True,
) -> Batch:
    """Run images, and then a copy of what is on chip, on the RTL and on golden.

    Arguments:
        device: a core that is alone.
        images: in ascending order of their places in HBM.
        sim: the simulator.
        behaviour: of HBM.
        limit: cycles after which an image is given up; None: `PATIENCE` for every beat with which what is on chip is
            copied through HBM's port, and no fewer than a million.
        dump: whether what is on chip is compared, too.
    """
    config = device.core
    last = dump_image(config, _behind(images[-1])) if dump else None
    everything = [*images, last.image] if last else images
    places = last.places if last else {}
    memory = put_together(everything)
    golden_hbm = memory.copy()
    expected = execute_on_golden(config, golden_hbm, everything)
    boots = [image.base for image in everything]
    limit = limit or max(1_000_000, PATIENCE * sum(4 * place.size for place in places.values()) // config.hbm_bytes)
    work = CoreWork(memories=memory[None], boots=boots, behaviour=behaviour or Hbm(), limit=limit)
    outcome = run(device, work, sim=sim, doing=f"running {len(everything)} images")
    runs, (hbm,) = list(outcome.parts.values()), outcome.memories["hbm"]
    races = [races_of(one, memory, config) for one in runs]
    failures = [
        f"image {number}: {problem}"
        for number, (one, wanted, found) in enumerate(zip(runs, expected, races, strict=False))
        for problem in image_failures(one, wanted, memory, config, found)
    ]
    if len(runs) < len(everything):
        failures.append(f"all {len(everything)} images must be run, not {len(runs)}")
    end = _behind(images[-1])
    compared = {"HBM": end} | {name: 4 * place.size for name, place in places.items()}
    mismatches = {"HBM": int((hbm[:end] != golden_hbm[:end]).sum())}
    for name, place in places.items():
        words = [np.ascontiguousarray(place.elements(found)).view(np.uint8) for found in (hbm, golden_hbm)]
        mismatches[name] = int((words[0] != words[1]).sum())
    for address in np.flatnonzero(hbm != golden_hbm)[:LISTED]:
        where = _name(int(address), places)
        failures.append(f"{where}: RTL {hbm[address]:02x}, golden {golden_hbm[address]:02x}")
    return Batch(runs, expected, races, hbm, golden_hbm, compared, mismatches, tuple(failures))


def _name(address: int, places: Mapping[str, HbmTensor]) -> str:
    """Return the name of a byte: where it was before it was copied to HBM."""
    for name, place in places.items():
        partition, byte = divmod(address - place.address, 4 * place.shape[1])
        if 0 <= partition < place.shape[0]:
            return f"{name} partition {partition}, byte {byte}"
    return f"HBM {address:#x}"


assert ALIGNMENT % RECORD_BYTES == 0

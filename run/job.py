"""Jobs: work of a target, golden's result, and the rules that judge an outcome."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from neuroncore_rtl.golden import timing
from neuroncore_rtl.golden.core import Core, CoreOutcome, run_instance
from neuroncore_rtl.kernels.control import trace_operations
from neuroncore_rtl.kernels.program.copies import dma_copy
from neuroncore_rtl.kernels.program.image import Image, build_image
from neuroncore_rtl.kernels.program.program import Program
from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor
from neuroncore_rtl.run.check.image_failures import LISTED, explain_fault, image_failures, program_failures
from neuroncore_rtl.run.harness.collective_faults import link_name
from neuroncore_rtl.run.harness.cores import CoreDevice, CoreWork, room_of
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.harness.live import LiveRun
from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.harness.run import Device
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.view.timeline import TrackGroup
from neuroncore_rtl.run.view.tracks import core_tracks, link_tracks
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import INT32
from neuroncore_rtl.spec.host_link import CONSOLE_BYTES
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa import Storage, queue_count, queue_name

__all__ = [
    "ALIGNMENT", "DeviceJob", "Expected", "ImageJob", "Job", "dump_image", "execute_on_golden", "first_differences",
    "join_images", "record_count",
]  # fmt: skip

ALIGNMENT = 4096
"""Images in a memory start at multiples of it, so that no AXI burst crosses from one image into the next. The HBM of a
core of an instance has a multiple of it."""

PATIENCE = 16
"""Cycles allowed per beat of the copy of on-chip memories; the slowest random HBM takes fewer."""

CHIP_LEVELS = 2
"""Levels of hierarchy above a core of an instance, beyond those above a lone core."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Golden's result of a job: final memories, uint8, by name, and an outcome for each image, if any."""

    memories: Mapping[str, np.ndarray]
    outcomes: Sequence[Any] = ()


@dataclass(frozen=True, kw_only=True)
class Job(ABC):
    """Work that a target executes, and the rules that judge the outcome.

    Arguments:
        name: name of the files: waveform, timeline, picture of the links, profile; None: no files. A job of a TEST has
            only the end of the name, which distinguishes it from the TEST's other jobs; "": the only job.
        pictures: whether the timeline and the picture of the links are written.
        subject: source of the job, for the code that judges the result.

    Attributes:
        doing: the activity, for the progress display.
        instance: the instance with its links; None without links.
        title: title of the picture of the links.
        core: the core that a waveform shows inside, or None.
        bandwidth: most bytes per cycle of HBM; 0: the machine's.
        levels: levels of hierarchy from the harness to the level from which DEPTH counts.
    """

    name: str | None = None
    pictures: bool = True
    subject: Any = None

    doing = ""
    instance = None
    title = ""
    core = None
    bandwidth = 0
    levels = 0

    @abstractmethod
    def device(self, *, waves: bool = False) -> Device:
        """Return the device to simulate; `waves` adds the signals that a waveform shows."""

    @abstractmethod
    def work(self, seed: int, *, sampled: bool = False, profiled: bool = False) -> object:
        """Return the input of the device; `sampled` requests samples of the links, `profiled` the engines' activity."""

    def golden(self) -> Expected | None:
        """Return golden's result; None if only the caller can judge the job."""
        return None

    def golden_done(self) -> float:
        """Return the part of `golden` that is done, 0 to 1; 0 if it is not known."""
        return 0.0

    def live(self) -> LiveRun:
        """Return what shows the device while it runs."""
        return LiveRun()

    def judge(self, expected: Expected) -> None:  # noqa: B027 # no rule by default
        """Raise an error if golden's result already shows that the job is wrong."""

    def parts(self, memories: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Return the bytes of `memories` that must equal golden's, by name."""
        return memories

    def failures(self, outcome: Outcome, expected: Expected) -> Iterable[str]:
        """Yield the faults of a run that the comparison of memories does not show, a sentence each."""
        return ()

    def differences(self, found: Mapping[str, np.ndarray], expected: Expected) -> Iterable[str]:
        """Yield the first differences of memories from golden's, a line each."""
        return ()

    def cycles(self, outcome: Outcome) -> int:
        return outcome.cycles

    def tracks(self, outcome: Outcome) -> Iterable[TrackGroup]:
        return ()


@dataclass(frozen=True, kw_only=True)
class DeviceJob(Job):
    """Work of any device; the caller judges its outcome.

    Arguments (besides those of `Job`):
        on: the device to simulate.
        load: work of the device.
        recorded: function from an outcome to the tracks of its timeline; None for no timeline.
    """

    on: Device
    load: Any
    doing: str
    instance: Instance | None = None
    title: str = ""
    recorded: Callable[[Outcome], Iterable[TrackGroup]] | None = None

    def device(self, *, waves: bool = False) -> Device:
        return self.on

    def work(self, seed: int, *, sampled: bool = False, profiled: bool = False) -> object:
        return self.load

    def tracks(self, outcome: Outcome) -> Iterable[TrackGroup]:
        return self.recorded(outcome) if self.recorded else ()


@dataclass(frozen=True, kw_only=True)
class ImageJob(Job):
    """Images for one core, one after another, or one image for each core of an instance.

    Reset clears no memory: an image finds the on-chip contents of the images before it.

    Arguments (besides those of `Job`):
        images: the images, in ascending order of addresses, or of cores.
        data: for an instance, uint8 [cores, bytes], further contents of HBM from address 0.
        delays: start delay of each core in cycles; default 0.
        errors: share of the link frames that are disturbed, from 0 to 1.
        core: the core of an instance that a waveform shows inside; UsageError if there is no such core.
        limit: cycles after which an image is stopped; None: a million, or more if on-chip memories are copied.
        dump: whether SBUF and PSUM are compared as well; a further image copies them to HBM.
        outputs: tensors that the host of a board reads back; None: all of HBM.
        may_fail: whether the core may report an error that golden reports as well.
        computes: whether the timing model also runs golden, for the contents of memories.
        path: options of `golden.timing.predict` from golden's outcome; None: derived from the image's loops.
        note: the computation of golden, for the progress display.
    """

    machine: Config | Instance
    images: Sequence[Image]
    data: np.ndarray | None = None
    delays: Sequence[int] | None = None
    behaviour: Hbm = Hbm()
    errors: float = 0.0
    core: int | None = None
    limit: int | None = 50_000_000
    dump: bool = False
    outputs: Sequence[HbmTensor] | None = None
    may_fail: bool = False
    computes: bool = True
    path: Callable[[CoreOutcome], dict[str, object]] | None = None
    note: str = ""

    def __post_init__(self):
        if self.core is not None and self.core >= len(self.images):
            raise UsageError(f"CORE must be from 0 to {len(self.images) - 1}, not {self.core}")

    @property
    def instance(self) -> Instance | None:
        return self.machine if isinstance(self.machine, Instance) else None

    @property
    def config(self) -> Config:
        return self.machine.core if isinstance(self.machine, Instance) else self.machine

    @property
    def levels(self) -> int:
        return 0 if self.core is None else CHIP_LEVELS

    @property
    def bandwidth(self) -> int:
        return self.behaviour.rate // 256

    @property
    def doing(self) -> str:
        records = sum(len(part) for image in self.images for part in image.records)
        return f"running {records:,} records" + (f" on {len(self.images)} cores" if self.instance else "")

    @property
    def title(self) -> str:
        return f"images on {len(self.images)} cores"

    @cached_property
    def _dump(self) -> tuple[Sequence[Image], Mapping[str, HbmTensor]]:
        if not self.dump:
            return (), {}
        image, copies = dump_image(self.config, _end(self.images[-1]))
        return (image,), copies

    @cached_property
    def everything(self) -> list[Image]:
        """All images, with the additional image that copies the on-chip memories to HBM."""
        return [*self.images, *self._dump[0]]

    @cached_property
    def memories(self) -> np.ndarray:
        """HBM of each core before the start, uint8 [cores, bytes]."""
        if not self.instance:
            one = len(self.everything) == 1
            return (self.images[0].memory() if one else join_images(self.everything))[None]
        data = np.zeros((len(self.images), 0), np.uint8) if self.data is None else self.data
        size = max([data.shape[1], *(image.base + len(image.data) for image in self.images)])
        memories = np.pad(data, ((0, 0), (0, -(-size // ALIGNMENT) * ALIGNMENT - data.shape[1])))
        for image, memory in zip(self.images, memories, strict=True):
            image.store(memory)
        return memories

    def device(self, *, waves: bool = False) -> CoreDevice:
        """Return cores with enough HBM for the images; protocol checkers watch the AXI ports only of a lone core."""
        inside = {"check_axi": False, "inside": waves and self.core is not None} if self.instance else {}
        room = room_of(max(self.memories.size, self.behaviour.size or 0))
        return CoreDevice(machine=self.machine, room=room, **inside)

    def work(self, seed: int, *, sampled: bool = False, profiled: bool = False) -> CoreWork:
        copied = sum(4 * copy.size for copy in self._dump[1].values())
        return CoreWork(
            memories=self.memories,
            boots=[image.base for image in self.everything],
            delays=self.delays,
            behaviour=self._behaviour,
            errors=self.errors,
            limit=self.limit or max(1_000_000, PATIENCE * copied // self.config.hbm_bytes),
            profiled=profiled,
            seed=seed,
            sampled=sampled and self.instance is not None,
        )

    @property
    def _behaviour(self) -> Hbm:
        """Behaviour of HBM; without a limit of its own it has the machine's `hbm_rate`, in each core."""
        rate, own = 256 * self.config.hbm_rate, self.behaviour
        if not rate or own.rate or own.port_rate:
            return own
        return replace(own, port_rate=rate // self.config.hbm_ports) if self.instance else replace(own, rate=rate)

    def golden(self) -> Expected:
        """Return HBM of each core, and the outcome of each image."""
        memories, traces = self.memories.copy(), self._traces
        traces.clear()
        if self.instance:
            bases = [image.base for image in self.everything]
            outcomes = run_instance(self.config, list(memories), bases=bases, traces=traces)
        else:
            outcomes = execute_on_golden(self.config, memories[0], self.everything, traces)
        return Expected(memories={"hbm": memories}, outcomes=outcomes)

    def golden_done(self) -> float:
        """Return the part of the records that golden has retired; 0 with loops, whose rounds only the run shows."""
        if any(image.flow is not None for image in self.images):
            return 0.0
        return sum(map(len, self._traces)) / sum(map(record_count, self.everything))

    def live(self) -> LiveRun:
        """Return what shows each core while it runs; golden, if it has run, tells how many records will retire."""
        engines = [queue_name(queue, self.config) for queue in range(queue_count(self.config))]
        sizes = {core: len(memory) for core, memory in enumerate(self.memories)}
        return LiveRun(engines, sizes, sum(map(len, self._traces)))

    @cached_property
    def _traces(self) -> list:
        return []

    def flow(self, outcome: CoreOutcome) -> dict[str, object]:
        """Return the options with which `golden.timing.predict` follows the execution that golden computed."""
        (image,) = self.images
        if self.path is not None or image.flow is None:
            return self.path(outcome) if self.path else {}
        operations = [*trace_operations(image.flow, outcome.loaded)]
        path = timing.flow_path([(operation.code.name, leaves) for operation, leaves in operations])
        return {"sections": [op.a for op, _ in operations if op.code.name == "RUN"], "path": path}

    def parts(self, memories: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        hbm = memories["hbm"]
        if not self.dump:
            return {"HBM": hbm}
        copies = {name: copy.elements(hbm[0]).view(np.uint8) for name, copy in self._dump[1].items()}
        return {"HBM": hbm[:, : _end(self.images[-1])], **copies}

    def differences(self, found: Mapping[str, np.ndarray], expected: Expected) -> Iterator[str]:
        return first_differences(found["hbm"], expected.memories["hbm"], self._name)

    def _name(self, address: int) -> str:
        """Return a text for the byte at an address of HBM; for a byte copied from the chip, its position on chip."""
        for name, copy in self._dump[1].items():
            partition, byte = divmod(int(address) - copy.address, 4 * copy.shape[1])
            if 0 <= partition < copy.shape[0]:
                return f"{name} partition {partition}, byte {byte}"
        return f"HBM {address:#x}"

    def failures(self, outcome: Outcome, expected: Expected) -> Iterator[str]:
        """Yield the faults of each image and the dead links; for a board, only the faults that its host can read."""
        if outcome.host:
            if outcome.error:
                yield f"the core must report no error, but does: {outcome.error}"
            yield from program_failures(outcome, expected.outcomes[0], CONSOLE_BYTES)
            return
        if self.instance is not None and outcome.links is not None:
            yield from (f"{link_name(self.instance, wire)} is dead" for wire in outcome.links.dead)
        for number, (run, golden) in enumerate(zip(outcome.parts.values(), expected.outcomes, strict=False)):
            memory = self.memories[number if self.instance else 0]
            where = f"core {number}: " if self.instance else f"image {number}: " if len(self.everything) > 1 else ""
            yield from (f"{where}{failure}" for failure in image_failures(run, golden, memory, self.config))
            if golden.error is not None and not self.may_fail:
                yield f"golden must report no error, but does: {explain_fault(golden.error, memory, self.config)}"
        if len(outcome.parts) < len(self.everything):
            yield f"all {len(self.everything)} images must be run, not {len(outcome.parts)}"
        if self.dump and (count := self._beyond(outcome.memories, expected.memories)):
            yield f"HBM beyond the images must be golden's, but {count} bytes differ"

    def _beyond(self, found: Mapping[str, np.ndarray], golden: Mapping[str, np.ndarray]) -> int:
        pairs = zip(self.parts(found).values(), self.parts(golden).values(), strict=True)
        compared = sum(int(np.count_nonzero(one != other)) for one, other in pairs)
        return int(np.count_nonzero(found["hbm"] != golden["hbm"])) - compared

    def tracks(self, outcome: Outcome) -> Iterator[TrackGroup]:
        for core, image in enumerate(self.images):
            name, locate = f"core {core}" if self.instance else "core", image.locate
            yield core_tracks(name, outcome.parts[core], self.config, lambda at, locate=locate: locate(at)[1])
        if self.instance is not None and outcome.links is not None:
            yield from link_tracks(self.instance, outcome.links.samples)


def first_differences(
    found: np.ndarray, golden: np.ndarray, name: Callable[[int], str] = "HBM {:#x}".format
) -> Iterator[str]:
    """Yield the first bytes of HBM, uint8 [cores, bytes], that differ from golden's, a line each."""
    for core, address in np.argwhere(found != golden)[:LISTED]:
        where = f"core {core}, {name(address)}" if len(found) > 1 else name(address)
        yield f"{where}: RTL {found[core, address]:02x}, golden {golden[core, address]:02x}"


def dump_image(config: Config, base: int) -> tuple[Image, dict[str, HbmTensor]]:
    """Return an image that copies SBUF and PSUM to HBM, and the copies, [partitions, words], by name."""
    program, copies = Program(config, base), {}
    for storage, partitions, size in (
        (Storage.SBUF, config.partitions, config.sbuf_bytes),
        (Storage.PSUM, config.columns, config.psum_bytes),
    ):
        name, shape = storage.name, (size // 4,)
        whole = Tensor(name=name, format=INT32, address=0, partitions=partitions, shape=shape, storage=storage)
        copies[name] = program.space.hbm(name, INT32, (partitions, *shape))
        program.append(dma_copy(copies[name], whole))
    return build_image(program), copies


def _end(image: Image) -> int:
    return -(-(image.base + len(image.data)) // ALIGNMENT) * ALIGNMENT


def join_images(images: Sequence[Image]) -> np.ndarray:
    """Return the HBM that contains all the images, uint8 from address 0; they must not overlap."""
    memory = np.zeros(max(map(_end, images)), np.uint8)
    for image in images:
        image.store(memory)
    return memory


def record_count(image: Image, sections: Sequence[int] | None = None) -> int:
    """Return the number of records that run if `sections` run in order, with repeats; None: those of the image."""
    sections = image.runs if sections is None else sections
    counts: Counter[int] = Counter()
    for block in image.blocks:
        counts[block.section] += block.count
    return counts.total() if sections is None else sum(counts[section] for section in sections)


def execute_on_golden(
    config: Config, hbm: np.ndarray, images: Sequence[Image], traces: list | None = None
) -> list[CoreOutcome]:
    """Execute images in `hbm` one after another on golden; on-chip memories keep their contents between images.

    `traces` receives each image's list of retired records, which grows during the run.
    """
    expected = []
    for image in images:
        core = Core(config, hbm)
        if traces is not None:
            traces.append(core.machine.trace)
        if expected:
            engines = core.machine.engines
            engines.sbuf[...], engines.psum[...] = expected[-1].sbuf, expected[-1].psum
        expected.append(core.run(image.base))
    return expected

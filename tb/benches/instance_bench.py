"""What the TESTs of whole cores on links share: an image on every core, on the RTL and on golden; every byte of every
core's HBM is compared, and what else can be wrong is looked for on each of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.golden.core import run_instance as golden_instance
from neuroncore_rtl.kernels.program.image import Image
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.link import MAX_CORES
from neuroncore_rtl.tb.benches.core_bench import LISTED, failures_of
from neuroncore_rtl.tb.check.link_table import link_summary, link_table
from neuroncore_rtl.tb.harness.collective_faults import link_name
from neuroncore_rtl.tb.harness.hbm import Hbm
from neuroncore_rtl.tb.harness.instance_run import ROOM_BYTES, InstanceOutcome, design, run_instance
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.report import progress, shown
from neuroncore_rtl.tb.sim.settings import Option, Settings, UsageError
from neuroncore_rtl.tb.view.link_picture import draw_links
from neuroncore_rtl.tb.view.timeline import write_instance_timeline
from neuroncore_rtl.tb.view.waves import waveform, write_save_file

__all__ = ["CORE", "PAGE", "InstanceExecuted", "execute_images", "memories_of"]

PAGE = 4096
"""The HBM of each core is so many bytes, or a multiple."""


CHIP_LEVELS = 2
"""Levels of the hierarchy between the harness and a core, more than where there is one core alone."""

CORE = Option(
    name="CORE",
    type=int,
    default=None,
    help="core whose insides a waveform shows; for few chips, as every core is compiled for itself",
    minimum=0,
    maximum=MAX_CORES - 1,
)


@dataclass(frozen=True)
class InstanceExecuted:
    """Images that ran on all cores of both.

    Arguments:
        outcome: what became of them on the RTL.
        compared, mismatches: bytes of all cores' HBM.
        failures: what is wrong, a sentence each.
        files: what was recorded, by what it is.
        links: what each link did; see `tb.check.link_table.link_table`.
        link_summary: the same in a few lines, for a report.
    """

    outcome: InstanceOutcome
    compared: int
    mismatches: int
    failures: tuple[str, ...]
    files: Mapping[str, str]
    links: Mapping[str, Mapping[str, object]]
    link_summary: Mapping[str, object]


def memories_of(images: Sequence[Image], data: np.ndarray | None = None) -> np.ndarray:
    """Return what the HBM of each core holds before the start, uint8 [cores, bytes].

    Arguments:
        images: of each core.
        data: uint8 [cores, bytes], what else is there from address 0 on.
    """
    size = max([0 if data is None else data.shape[1], *(image.base + len(image.data) for image in images)])
    memories = np.zeros((len(images), -(-size // PAGE) * PAGE), np.uint8)
    if data is not None:
        memories[:, : data.shape[1]] = data
    for image, memory in zip(images, memories, strict=True):
        image.store(memory)
    return memories


def execute_images(
    instance: Instance,
    images: Sequence[Image],
    settings: Settings,
    label: str,
    *,
    behaviour: Hbm,
    data: np.ndarray | None = None,
    delays: Sequence[int] | None = None,
    errors: float = 0.0,
    pictures: str | None = None,
    limit: int = 50_000_000,
) -> InstanceExecuted:
    """Run an image on every core of an instance and of golden, and compare all memories byte for byte.

    Arguments:
        instance: the instance.
        images: of each core.
        settings: with the options SIM, WAVES, DEPTH, SEED and `CORE`.
        label: names the waveform.
        behaviour: of HBM.
        data: see `memories_of`.
        delays: of each core, the cycles that pass before it is started.
        errors: share of the frames that are disturbed.
        pictures: names the timeline and the picture of the links; if None, there are none.
        limit: cycles after which the run is given up.
    """
    inside = settings.core is not None
    if inside and settings.core >= instance.cores:
        raise UsageError(f"CORE must be below the {instance.cores} cores of the instance, not {settings.core}")
    memories = memories_of(images, data)
    room = max(ROOM_BYTES, 1 << (memories.size - 1).bit_length())
    waves = waveform(label) if settings.waves else None
    built = simulation.build(
        design(instance, room=room, waves=waves is not None, inside=waves is not None and inside),
        settings.sim,
        waves=waves is not None,
    )
    boots = [image.base for image in images]
    with progress("golden"):
        expected = golden_instance(instance.core, memories.copy(), bases=boots)
    records = sum(len(part) for image in images for part in image.records)
    with progress(f"{settings.sim}: running {records:,} records on {instance.cores} cores"):
        outcome = run_instance(
            built,
            instance,
            memories,
            boots,
            delays=delays,
            behaviour=behaviour,
            errors=errors,
            seed=settings.seed,
            limit=limit,
            sampled=pictures is not None,
            waves=waves,
            waves_levels=settings.depth + CHIP_LEVELS if inside and settings.depth else settings.depth,
        )
    mismatches = sum(_differences(core, outcome.memories[core], golden.hbm) for core, golden in enumerate(expected))
    failures = [f"{link_name(instance, wire)} is dead" for wire in outcome.dead]
    for core, (run, golden) in enumerate(zip(outcome.runs, expected, strict=True)):
        failures += [f"core {core}: {failure}" for failure in failures_of(run, golden, memories[core], instance.core)]
    links = link_table(instance, outcome.links, outcome.cycles, outcome.dead)
    files = {"waveform": shown(write_save_file(waves, settings.core))} if waves else {}
    if pictures is not None:
        files = _pictures(pictures, instance, images, outcome, links) | files
    return InstanceExecuted(
        outcome=outcome,
        compared=memories.size,
        mismatches=mismatches,
        failures=tuple(failures),
        files=files,
        links=links,
        link_summary=link_summary(instance, links, sum(outcome.disturbed)),
    )


def _differences(core: int, found: np.ndarray, expected: np.ndarray) -> int:
    """Return how many bytes of a core's HBM differ, and print the first of them."""
    differs = np.flatnonzero(found != expected)
    for address in differs[:LISTED]:
        print(f"core {core}, HBM {address:#x}: RTL {found[address]:02x}, golden {expected[address]:02x}")
    return len(differs)


def _pictures(
    label: str,
    instance: Instance,
    images: Sequence[Image],
    outcome: InstanceOutcome,
    links: Mapping[str, Mapping[str, object]],
) -> dict[str, str]:
    """Write the timeline and the picture of a run; return where they are."""
    timeline = write_instance_timeline(
        SIM_BUILD / "timelines" / f"{label}.json",
        instance,
        outcome.runs,
        [lambda address, image=image: image.locate(address)[1] for image in images],
        outcome.samples,
    )
    what = f"images on {instance.cores} cores"
    picture = draw_links(SIM_BUILD / "plots" / f"{label}.png", instance, links, what, f"{outcome.cycles:,} cycles")
    return {"timeline": shown(timeline), "picture": shown(picture)}

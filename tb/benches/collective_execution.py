"""A workload of collectives on the RTL and on golden: every byte of every core's HBM is compared, those that no
collective may write among them, and what else can be wrong is looked for."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.golden.collective import run as golden_run
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa.collective import CollectiveKind
from neuroncore_rtl.spec.link import CHANNELS
from neuroncore_rtl.tb.check.link_table import link_summary, link_table
from neuroncore_rtl.tb.harness.collective_faults import link_name
from neuroncore_rtl.tb.harness.collective_run import ROOM_BYTES, Ending, Outcome, design, run_collectives
from neuroncore_rtl.tb.harness.hbm import Hbm
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.report import progress, shown
from neuroncore_rtl.tb.sim.settings import Settings
from neuroncore_rtl.tb.stimulus.collective_programs import Workload
from neuroncore_rtl.tb.view.collective_timeline import write_collective_timeline
from neuroncore_rtl.tb.view.link_picture import draw_links
from neuroncore_rtl.tb.view.waves import waveform, write_save_file

__all__ = ["Executed", "execute", "failures_of"]

LISTED = 5
"""Differences that are printed one by one."""


@dataclass(frozen=True)
class Executed:
    """A workload that ran on both.

    Arguments:
        outcome: what became of it on the RTL.
        cycles: from the first instruction that was taken to the last that was retired.
        compared, mismatches: bytes of all cores' HBM.
        failures: what is wrong, a sentence each.
        files: what was recorded, by what it is.
        links: what each link did; see `tb.check.link_table.link_table`.
        link_summary: the same in a few lines, for a report.
    """

    outcome: Outcome
    cycles: int
    compared: int
    mismatches: int
    failures: tuple[str, ...]
    files: Mapping[str, str]
    links: Mapping[str, Mapping[str, object]]
    link_summary: Mapping[str, object]


def execute(
    instance: Instance,
    workload: Workload,
    settings: Settings,
    label: str,
    *,
    behaviour: Hbm,
    errors: float = 0.0,
    check_axi: bool = True,
    pictures: str | None = None,
) -> Executed:
    """Run a workload on the engines of an instance and on golden, and compare all memories byte for byte.

    Arguments:
        instance: the instance.
        workload: what the cores execute.
        settings: with the options SIM, WAVES, DEPTH and SEED.
        label: names the waveform.
        behaviour: of HBM.
        errors: share of the frames that are disturbed.
        check_axi: whether the AXI ports are watched.
        pictures: names the timeline and the picture of the links; if None, there are none.
    """
    room = max(ROOM_BYTES, 1 << (workload.memories.size - 1).bit_length())
    waves = waveform(label) if settings.waves else None
    harness = design(instance, room=room, check_axi=check_axi, waves=waves is not None)
    built = simulation.build(harness, settings.sim, waves=waves is not None)
    with progress("golden"):
        expected = workload.memories.copy()
        golden_run(workload.lists, {core: expected[core] for core in workload.lists}, instance.cores)
    with progress(f"{settings.sim}: running {len(workload.issues):,} collectives on {instance.cores} cores"):
        outcome = run_collectives(
            built,
            instance,
            workload.lists,
            workload.memories,
            delays=workload.delays,
            behaviour=behaviour,
            errors=errors,
            seed=settings.seed,
            sampled=pictures is not None,
            waves=waves,
            waves_levels=settings.depth,
        )
    differs = np.argwhere(outcome.memories != expected)
    for core, address in differs[:LISTED]:
        print(
            f"core {core}, HBM {address:#x}: RTL {outcome.memories[core, address]:02x}, "
            f"golden {expected[core, address]:02x}"
        )
    events = [event for listed in outcome.events for event in listed]
    begin = min((event.taken for event in events), default=0)
    cycles = outcome.cycles - begin
    links = link_table(instance, outcome.links, cycles, outcome.dead)
    files = {"waveform": shown(write_save_file(waves))} if waves else {}
    if pictures is not None:
        files = _pictures(pictures, instance, workload, outcome, links, cycles) | files
    return Executed(
        outcome=outcome,
        cycles=cycles,
        compared=expected.size,
        mismatches=len(differs),
        failures=tuple(failures_of(instance, workload, outcome)),
        files=files,
        links=links,
        link_summary=link_summary(instance, links, sum(outcome.disturbed)),
    )


def _pictures(
    label: str,
    instance: Instance,
    workload: Workload,
    outcome: Outcome,
    links: Mapping[str, Mapping[str, object]],
    cycles: int,
) -> dict[str, str]:
    """Write the timeline and the picture of a run; return where they are."""
    timeline = write_collective_timeline(
        SIM_BUILD / "timelines" / f"{label}.json", instance, workload.lists, outcome.events, outcome.samples
    )
    kinds = {issue.kind.name.lower().replace("_", "-") for issue in workload.issues}
    what = f"{len(workload.issues):,} collectives" if len(kinds) > 1 else kinds.pop()
    plot = SIM_BUILD / "plots" / f"{label}.png"
    picture = draw_links(plot, instance, links, what, f"{cycles:,} cycles")
    return {"timeline": shown(timeline), "picture": shown(picture)}


def failures_of(instance: Instance, workload: Workload, outcome: Outcome) -> Sequence[str]:
    """Return what is wrong besides the contents of HBM."""
    found = [f"an engine must report no error, but does: {fault}" for fault in outcome.faults.values()]
    found += [f"{link_name(instance, wire)} is dead" for wire in outcome.dead]
    if outcome.ending != Ending.RETIRED:
        found.append(f"every instruction must be retired, but the run ended as {outcome.ending.name}")
        found += [
            f"core {core} hangs in instruction {outcome.retired[core]}, {listed[outcome.retired[core]].kind.name}"
            for core, listed in sorted(workload.lists.items())
            if outcome.retired[core] < outcome.taken[core] and core not in outcome.faults
        ][: 2 * LISTED]
    flits = {
        way: sum(counters[f"channel{channel}"][way] for counters in outcome.counters for channel in range(CHANNELS))
        for way in ("sent", "received")
    }
    if flits["sent"] != flits["received"] and outcome.ending == Ending.RETIRED:
        found.append(f"as many flits must be received as are sent, {flits['sent']:,}, not {flits['received']:,}")
    return found + list(_hasty(workload, outcome))


def _hasty(workload: Workload, outcome: Outcome) -> Iterator[str]:
    """Name the barriers that let a core through before another one has come."""
    for issue in workload.issues:
        events = [outcome.events[core][place : place + 1] for core, place in issue.places.items()]
        if issue.kind != CollectiveKind.BARRIER or not any(event and event[0].retired for event in events):
            continue
        last = max(event[0].taken if event else math.inf for event in events)
        for core, event in zip(issue.places, events, strict=True):
            if event and event[0].retired is not None and event[0].retired <= last:
                place = issue.places[core]
                yield f"core {core} must wait in barrier {place} until cycle {last}, not {event[0].retired}"

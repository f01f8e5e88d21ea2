"""Jobs of collective workloads, for the collective engines and links only, or for whole cores."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuroncore_rtl.golden.collective import execute_lists as golden_run
from neuroncore_rtl.kernels.library.collectives import collectives_program
from neuroncore_rtl.kernels.program.image import Image, build_image
from neuroncore_rtl.run.check.image_failures import LISTED
from neuroncore_rtl.run.harness.collective_faults import CollectiveFault, link_name
from neuroncore_rtl.run.harness.cores import room_of
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.harness.links.collective import CollectiveDevice, CollectiveWork
from neuroncore_rtl.run.harness.outcome import Ending, Event, Outcome
from neuroncore_rtl.run.job import ALIGNMENT, DeviceJob, Expected, ImageJob, Job, first_differences
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.run.view.timeline import TrackGroup
from neuroncore_rtl.run.view.tracks import engine_tracks, link_tracks
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa import collective_queue
from neuroncore_rtl.spec.isa.collective import CollectiveKind
from neuroncore_rtl.spec.link import CHANNELS
from neuroncore_rtl.tb.stimulus.collective_programs import Workload

__all__ = ["collective_events", "engine_job", "span_of", "workload_failures", "workload_job"]


def workload_job(
    instance: Instance, workload: Workload, settings: Settings, *, check_axi: bool = True, **given: object
) -> Job:
    """Return a workload's job for engines or cores (TARGET); a core ignores all delays except its first."""
    if settings.target == "engine":
        return engine_job(instance, workload, check_axi=check_axi, **given)
    return _CollectiveImageJob(
        machine=instance,
        workload=workload,
        images=collective_images(instance, workload),
        data=workload.memories,
        delays=[workload.delays[core][0] if workload.delays.get(core) else 0 for core in range(instance.cores)],
        core=settings.core,
        **given,
    )


def engine_job(
    instance: Instance,
    workload: Workload,
    *,
    behaviour: Hbm,
    errors: float = 0.0,
    check_axi: bool = True,
    limit: int = 20_000_000,
    **names: object,
) -> "CollectiveJob":
    """Return the job of a workload for the collective engines only; `errors` is the share of disturbed frames."""
    kinds = {issue.kind.name.lower().replace("_", "-") for issue in workload.issues}
    own = {name: getattr(workload, name) for name in ("lists", "memories", "delays")}
    return CollectiveJob(
        on=CollectiveDevice(instance=instance, room=room_of(workload.memories.size), check_axi=check_axi),
        load=CollectiveWork(**own, behaviour=behaviour, errors=errors, limit=limit),
        doing=f"running {len(workload.issues):,} collectives on {instance.cores} cores",
        title=f"{len(workload.issues):,} collectives" if len(kinds) > 1 else kinds.pop(),
        instance=instance,
        workload=workload,
        **names,
    )


def collective_images(instance: Instance, workload: Workload) -> list[Image]:
    """Return the image of each core, at an address after the workload's data; empty for a core without a list."""
    base = -(-workload.memories.shape[1] // ALIGNMENT) * ALIGNMENT
    return [
        build_image(collectives_program(instance.core, workload.lists.get(core, []), base))
        for core in range(instance.cores)
    ]


def collective_events(instance: Instance, outcome: Outcome) -> list[list[Event]]:
    """Return the events of each core's collectives, in order."""
    queue = collective_queue(instance.core)
    return [[event for event in part.events if event.queue == queue] for part in outcome.parts.values()]


def span_of(instance: Instance, outcome: Outcome) -> tuple[int, int]:
    """Return the cycles in which the first collective was accepted and the last one retired; 0 without collectives."""
    events = [event for own in collective_events(instance, outcome) for event in own]
    return (
        min((event.issued for event in events), default=0),
        max((event.retired for event in events if event.retired is not None), default=0),
    )


def workload_failures(instance: Instance, workload: Workload, outcome: Outcome) -> Iterator[str]:
    """Yield the failures of the collectives, except wrong bytes of HBM and errors of whole cores."""
    events = collective_events(instance, outcome)
    faults = outcome.faults
    for fault in faults.values():
        if isinstance(fault, CollectiveFault):
            yield f"an engine must report no error, but does: {fault}"
    yield from (f"{link_name(instance, wire)} is dead" for wire in outcome.links.dead)
    if outcome.ending != Ending.FINISHED:
        yield f"every instruction must be retired, but the run ended as {outcome.ending.name}"
        retired = [sum(event.retired is not None for event in own) for own in events]
        yield from [
            f"core {core} hangs in instruction {retired[core]}, {listed[retired[core]].kind.name}"
            for core, listed in sorted(workload.lists.items())
            if retired[core] < len(events[core]) and core not in faults
        ][: 2 * LISTED]
    else:
        counted = [part.counters["collective"] for part in outcome.parts.values()]
        channels = [counters[f"channel{channel}"] for counters in counted for channel in range(CHANNELS)]
        sent, received = (sum(counters[way] for counters in channels) for way in ("sent", "received"))
        if sent != received:
            yield f"{sent:,} sent flits must be received, not {received:,}"
    yield from _hasty(workload, events)


def _hasty(workload: Workload, events: Sequence[Sequence[Event]]) -> Iterator[str]:
    """Yield a failure for each barrier that a core finished before another core started it."""
    for issue in workload.issues:
        found = [events[core][place : place + 1] for core, place in issue.places.items()]
        if issue.kind != CollectiveKind.BARRIER or not any(event and event[0].retired for event in found):
            continue
        last = max(event[0].issued if event else math.inf for event in found)
        for core, event in zip(issue.places, found, strict=True):
            if event and event[0].retired is not None and event[0].retired <= last:
                place = issue.places[core]
                yield f"core {core} must wait in barrier {place} until cycle {last}, not {event[0].retired}"


def _duration(instance: Instance, outcome: Outcome) -> int:
    begin, end = span_of(instance, outcome)
    return end - begin


@dataclass(frozen=True, kw_only=True)
class CollectiveJob(DeviceJob):
    """A workload on the collective engines only."""

    workload: Workload

    def work(self, seed: int, *, sampled: bool = False, profiled: bool = False) -> CollectiveWork:
        return replace(self.load, seed=seed, sampled=sampled)

    def golden(self) -> Expected:
        memories = self.workload.memories.copy()
        golden_run(self.workload.lists, {core: memories[core] for core in self.workload.lists}, self.instance.cores)
        return Expected(memories={"hbm": memories})

    def failures(self, outcome: Outcome, expected: Expected) -> Iterator[str]:
        return workload_failures(self.instance, self.workload, outcome)

    def differences(self, found: Mapping[str, np.ndarray], expected: Expected) -> Iterator[str]:
        return first_differences(found["hbm"], expected.memories["hbm"])

    def cycles(self, outcome: Outcome) -> int:
        return _duration(self.instance, outcome)

    def tracks(self, outcome: Outcome) -> list[TrackGroup]:
        samples, events = outcome.links.samples, collective_events(self.instance, outcome)
        return [engine_tracks(self.workload.lists, events, samples[-1].cycle), *link_tracks(self.instance, samples)]


@dataclass(frozen=True, kw_only=True)
class _CollectiveImageJob(ImageJob):
    workload: Workload

    def failures(self, outcome: Outcome, expected: Expected) -> Iterable[str]:
        own = workload_failures(self.machine, self.workload, outcome)
        return dict.fromkeys([*super().failures(outcome, expected), *own])

    def cycles(self, outcome: Outcome) -> int:
        return _duration(self.machine, outcome)

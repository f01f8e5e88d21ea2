"""Run of an image for profiles, simulated or modelled."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from neuroncore_rtl.golden.timing import Prediction, Timed
from neuroncore_rtl.kernels.program import Allocator, Image
from neuroncore_rtl.kernels.program.entries import Entry
from neuroncore_rtl.kernels.source import SourceLine
from neuroncore_rtl.run.check.runs import tile_runs
from neuroncore_rtl.run.harness.activity import STARTED
from neuroncore_rtl.run.harness.outcome import Event, Outcome
from neuroncore_rtl.run.view.source_lines import LineCycles, cycles_by_line, merge_spans
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Engine, Record, queue_count, queue_name
from neuroncore_rtl.spec.isa.engine import ENGINE_QUEUES

__all__ = ["ProfiledRun", "Ran", "modelled_run", "simulated_run"]

Spans = Sequence[tuple[int, int]]  # disjoint intervals (first cycle, cycle after the last), in order


@dataclass(frozen=True)
class Ran:
    """An executed record; `number`: its index in the order of issue.

    In the cycle `fetched` the queue could first check its semaphores; `retired` is None if the run ended before.
    """

    number: int
    address: int
    record: Record
    entry: Entry
    fetched: int
    issued: int
    retired: int | None

    @property
    def queue(self) -> int:
        return self.entry.queue


@dataclass(frozen=True, kw_only=True)
class ProfiledRun:
    """Run of an image, with records in the order of issue.

    Arguments:
        image: the image; it must contain the program entries of its records.
        cycles: cycles from the start to the end of the control program.
        busy: busy intervals of each queue's engine; of the tensor engine, while columns enter the array.
        controller: intervals of the controller by activity.
        modelled: cycles of the timing model, without an RTL simulation.
    """

    name: str
    image: Image
    cycles: int
    records: Sequence[Ran]
    busy: Mapping[int, Spans]
    controller: Mapping[str, Spans]
    modelled: bool = False

    @property
    def config(self) -> Config:
        return self.image.config

    @property
    def space(self) -> Allocator:
        assert self.image.space is not None, "an image with entries has an allocator"
        return self.image.space

    @cached_property
    def queues(self) -> dict[int, list[Ran]]:
        ordered = sorted(self.records, key=lambda ran: (ran.queue, ran.number))
        return {queue: [*records] for queue, records in groupby(ordered, key=lambda ran: ran.queue)}

    @cached_property
    def sections(self) -> list[tuple[int, int, int]]:
        """Executions of sections, in order: index and issue cycle of the first record, last retirement."""
        runs = (self.records[part] for part in tile_runs(self.image, [ran.address for ran in self.records]))
        return [(run[0].number, run[0].issued, max(map(self.end_of, run))) for run in runs]

    def section(self, ran: Ran) -> int:
        """Return the index of a record's execution in `sections`."""
        return bisect_right(self.sections, ran.number, key=lambda section: section[0]) - 1

    @cached_property
    def completed(self) -> dict[tuple[int | None, int], list[Ran]]:
        """Executed records of each program entry, by lane and number in the lane."""
        found: dict[tuple[int | None, int], list[Ran]] = {}
        for ran in self.records:
            found.setdefault((ran.entry.lane, ran.entry.number), []).append(ran)
        return found

    def awaited(self, ran: Ran) -> list[Ran]:
        """Return the earlier records that must retire before a record is issued, as its semaphores demand."""
        found = []
        for lane, count in ran.entry.waits:
            before = [one for one in self.completed.get((lane, count - 1), ()) if one.number < ran.number]
            found += before[-1:]
        return found

    @cached_property
    def waiting(self) -> dict[int, list[Ran]]:
        """Records that wait for a record by semaphores, by the number of the awaited record."""
        found: dict[int, list[Ran]] = {}
        for ran in self.records:
            for one in self.awaited(ran):
                found.setdefault(one.number, []).append(ran)
        return found

    def neighbours(self, ran: Ran) -> tuple[list[Ran], list[Ran]]:
        """Return lists of the previous and the next record in the same queue; empty if there is no such record."""
        queue = self.queues[ran.queue]
        place = bisect_left(queue, ran.number, key=lambda one: one.number)
        return queue[max(0, place - 1) : place], queue[place + 1 : place + 2]

    def end_of(self, ran: Ran) -> int:
        return self.cycles if ran.retired is None else ran.retired

    def worked(self, queue: int) -> int:
        return sum(end - begin for begin, end in self.busy[queue])

    @cached_property
    def busiest(self) -> int:
        """Queue of the busiest engine; of equally busy ones, a computing engine precedes a DMA engine."""
        return max(self.queues, key=lambda queue: (self.worked(queue), -queue))

    @property
    def costs(self) -> dict[SourceLine, LineCycles]:
        """Cost of each line that appends instructions, and of the line of the user's kernel that calls it."""
        ran = ((ran.entry, ran.issued, ran.retired) for ran in self.records)
        return cycles_by_line(ran, self.cycles, lambda one: one)

    def queue_name(self, queue: int) -> str:
        return queue_name(queue, self.config)


def simulated_run(name: str, image: Image, outcome: Outcome) -> ProfiledRun:
    """Return a run on the RTL; without the core's activity, fetches and the work of engines are not known."""
    activity, config = outcome.activity, image.config
    events = sorted(outcome.events, key=lambda event: (event.issued, event.queue))
    if not any(activity.values()):
        records = [_ran(image, number, event, event.issued) for number, event in enumerate(events)]
        return ProfiledRun(name=name, image=image, cycles=outcome.cycles, records=records, busy={}, controller={})
    queues = (f"queues.{queue}" for queue in range(queue_count(config)))
    looks = [merge_spans([*activity[f"{at}.wait_semaphore"], *activity[f"{at}.wait_engine"]]) for at in queues]
    before, records = {}, []
    for number, event in enumerate(events):
        fetched = _first(looks[event.queue], before.get(event.queue, 0), event.issued)
        before[event.queue] = event.issued + 1
        records.append(_ran(image, number, event, fetched))
    names = [*map(_BUSY.__getitem__, ENGINE_QUEUES), *(f"dma.{number}.busy" for number in range(config.dma_engines))]
    busy, controller = {queue: activity[name] for queue, name in enumerate(names)}, _controller(outcome)
    return ProfiledRun(name=name, image=image, cycles=outcome.cycles, records=records, busy=busy, controller=controller)


def modelled_run(name: str, image: Image, found: Prediction) -> ProfiledRun:
    """Return a run of the timing model."""
    timed = sorted(found.records, key=lambda one: (one.issued, one.queue))
    records = [_ran(image, number, one, one.fetched) for number, one in enumerate(timed)]
    busy = {queue: [] for queue in range(queue_count(image.config))}
    for ran, one in zip(records, timed, strict=True):
        instruction = ran.record.instruction
        if instruction.columns:
            busy[ran.queue].append((one.began, one.began + instruction.columns))
        elif instruction.lane == 0:
            busy[ran.queue].append((one.issued, one.retired))
    first = min((ran.fetched for ran in records), default=found.cycles)
    whole = {"name": name, "image": image, "cycles": found.cycles, "modelled": True}
    busy = {queue: merge_spans(spans) for queue, spans in busy.items()}
    controller = {"boot": [(0, first)], "control program": [(first, found.cycles)]}
    return ProfiledRun(**whole, records=records, busy=busy, controller=controller)


def _ran(image: Image, number: int, event: Event | Timed, fetched: int) -> Ran:
    at = event.address
    return Ran(number, at, image.locate(at)[1], image.entry(at), fetched, event.issued, event.retired)


# Counter of the busy cycles of each engine.
_BUSY = {Engine.TENSOR: "tensor.columns", Engine.VECTOR: "vector.busy", Engine.SCALAR: "scalar.busy"}


def _controller(outcome: Outcome) -> dict[str, Spans]:
    """Return the controller's intervals: it boots up to its first instruction, then runs or awaits an interrupt."""
    activity, cycles = outcome.activity, outcome.cycles
    begin = activity[STARTED][0][0] if activity[STARTED] else cycles
    waiting, running, since = activity["controller.waiting"], [], begin
    for first, end in waiting:
        running.append((since, first))
        since = end
    running.append((since, cycles))
    running = [(first, end) for first, end in running if first < end]
    return {"boot": [(0, begin)], "control program": running, "waits for an interrupt": waiting}


def _first(spans: Spans, since: int, until: int) -> int:
    """Return the first cycle from `since` to `until` that is in one of the intervals, or else `until`."""
    place = bisect_right(spans, since, key=lambda span: span[1])
    return min(max(spans[place][0], since), until) if place < len(spans) else until

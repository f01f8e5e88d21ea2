"""Timeline of a profile: instructions with the names of their tensors, stalls, and occupancy of on-chip memories."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.run.view.profile.run import ProfiledRun, Ran
from neuroncore_rtl.run.view.profile.stalls import MEANINGS, StallCause, causes_of, spans_of
from neuroncore_rtl.run.view.timeline import Slice, TrackGroup
from neuroncore_rtl.run.view.tracks import record_details
from neuroncore_rtl.spec.isa import Region, Storage, queue_count

__all__ = ["Names", "occupancy", "profile_tracks", "track_kind"]

LOADING = "tensor, loading"
"""Track of weight loads, which overlap multiplications."""


def track_kind(ran: Ran) -> str:
    """Return a record's kind (`run.view.timeline.KINDS`)."""
    instruction = ran.record.instruction
    if instruction.transfers:
        source, target = (storage for _, storage, _ in instruction.transfers)
        if Storage.HBM not in (source, target):
            return "copy"
        return "load" if source == Storage.HBM else "store"
    if instruction.columns:
        return "multiply"
    # Only the tensor queue has more than one lane.
    return "weights" if instruction.lane else instruction.engine.name.lower()


def profile_tracks(run: ProfiledRun) -> Iterator[TrackGroup]:
    """Yield the tracks of a profiled run, from top to bottom."""
    yield TrackGroup(name="controller", tracks=["controller"], slices=_controller(run))
    queues = [run.queue_name(queue) for queue in range(queue_count(run.config))]
    arrows = ((one.number, ran.number) for ran in run.records for one in run.awaited(ran))
    yield TrackGroup(name="engines", tracks=[*queues, LOADING], slices=_instructions(run, len(queues)), arrows=arrows)
    yield TrackGroup(name="stalls", tracks=queues, slices=_stalls(run))
    curves = {
        f"{storage.name}, bytes of a partition": [*occupancy(run, storage), (run.cycles, 0)]
        for storage in (Storage.SBUF, Storage.PSUM)
    }
    yield TrackGroup(name="memories on chip", curves=curves)


def _controller(run: ProfiledRun) -> Iterator[Slice]:
    spans = sorted((begin, end, what) for what, spans in run.controller.items() for begin, end in spans)
    for begin, end, what in spans:
        yield Slice(0, begin, end, what, {}, "rest" if what.startswith("waits") else "control")


def _instructions(run: ProfiledRun, loading: int) -> Iterator[Slice]:
    names = Names(run.space)
    for ran in run.records:
        instruction, shape = ran.record.instruction, " x ".join(map(str, ran.record.instruction.sizes))
        args = {
            "shape": shape,
            **{f"tensor {name}": tensor for name, tensor in names.of(ran).items()},
            "source": str(ran.entry.source),
            **instruction.details,
            **record_details(ran, ran.record),
        }
        track = loading if instruction.lane else ran.queue
        name = f"{instruction.summary} {shape}".strip()
        yield Slice(track, ran.issued, run.end_of(ran), name, args, track_kind(ran), ran.number)


def _stalls(run: ProfiledRun) -> Iterator[Slice]:
    for queue in run.queues:
        for begin, end, cause in spans_of(causes_of(run, queue)):
            kind = "rest" if cause in (StallCause.START, StallCause.END) else "stall"
            yield Slice(queue, begin, end, cause.name.lower(), {"meaning": MEANINGS[cause]}, kind)


class Names:
    """Names of a program's tensors."""

    def __init__(self, space: Allocator):
        self._buffers = space.buffers
        placed = [*space.hbm_tensors, *space.kept]
        self._places: dict[Storage, list[tuple[int, int, str]]] = {storage: [] for storage in Storage}
        for tensor in placed:
            end = tensor.address + tensor.size * tensor.format.bits // 8
            self._places[tensor.storage].append((tensor.address, end, tensor.name))
        for places in self._places.values():
            places.sort()

    def of(self, ran: Ran) -> dict[str, str]:
        """Return the names of a record's tensors, by operand, such as dst."""
        return {region.name: found for region, buffer in _touched(ran) if (found := self._of(region, buffer))}

    def _of(self, region: Region, buffer: int) -> str | None:
        if buffer:
            return self._buffers[buffer].name
        places = self._places[region.storage]
        at = bisect_right(places, region.span[0], key=lambda place: place[0]) - 1
        return places[at][2] if at >= 0 and region.span[0] < places[at][1] else None


def occupancy(run: ProfiledRun, storage: Storage) -> list[tuple[int, int]]:
    """Return the allocated bytes per partition over time, as (cycle, bytes from there on).

    Temporaries are allocated from their first instruction's issue until the last one retires.
    """
    buffers, lives = run.space.buffers, {}
    for ran in run.records:
        for region, number in _touched(ran):
            if number and region.storage == storage:
                begin, end = lives.get(number, (ran.issued, 0))
                lives[number] = min(begin, ran.issued), max(end, run.end_of(ran))
    changes = Counter({0: run.space.fixed_end(storage)})
    for number, (begin, end) in lives.items():
        changes[begin] += buffers[number].size
        changes[end] -= buffers[number].size
    cycles = sorted(changes)
    return list(zip(cycles, accumulate(changes[cycle] for cycle in cycles), strict=True))


def _touched(ran: Ran) -> Iterator[tuple[Region, int]]:
    """Return the regions that a record accesses, writes first, each with its entry of `buffers`."""
    instruction = ran.entry.instruction
    return zip((*instruction.writes, *instruction.reads), ran.entry.buffers, strict=True)

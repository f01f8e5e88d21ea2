"""Timeline of a profile: instructions with the names of their tensors, stalls, and occupancy of on-chip memories."""

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate

from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.run.view.profile.run import ProfiledRun, Ran
from neuroncore_rtl.run.view.profile.stalls import MEANINGS, StallCause, causes_of, spans_of
from neuroncore_rtl.run.view.timeline import Slice, TrackGroup
from neuroncore_rtl.run.view.tracks import queue_tracks, record_details
from neuroncore_rtl.spec.isa import Region, Storage, queue_count

__all__ = [
    "Names", "controller_slices", "hbm_occupancy", "instruction_name", "instruction_track", "occupancy",
    "profile_tracks", "stall_slices", "track_kind",
]  # fmt: skip


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
    yield TrackGroup(name="controller", tracks=["controller"], slices=controller_slices(run))
    names = queue_tracks(run.config)
    arrows = ((one.number, ran.number) for ran in run.records for one in run.awaited(ran))
    yield TrackGroup(name="engines", tracks=names, slices=_instructions(run), arrows=arrows)
    yield TrackGroup(name="stalls", tracks=names[:-1], slices=stall_slices(run))
    used = {storage.name: occupancy(run, storage) for storage in (Storage.SBUF, Storage.PSUM)}
    curves = {f"{name}, bytes of a partition": [*points, (run.cycles, 0)] for name, points in used.items()}
    yield TrackGroup(name="memories on chip", curves=curves)


def controller_slices(run: ProfiledRun) -> Iterator[Slice]:
    """Yield the activities of the controller."""
    spans = sorted((begin, end, what) for what, spans in run.controller.items() for begin, end in spans)
    for begin, end, what in spans:
        yield Slice(0, begin, end, what, {}, "rest" if what.startswith("waits") else "control")


def instruction_track(run: ProfiledRun, ran: Ran) -> int:
    """Return the index in `queue_tracks` of a record's track."""
    return queue_count(run.config) if ran.record.instruction.lane else ran.queue


def instruction_name(ran: Ran) -> str:
    """Return the instruction and its shape."""
    return f"{ran.record.instruction.summary} {_shape(ran)}".strip()


def _shape(ran: Ran) -> str:
    return " x ".join(map(str, ran.record.instruction.sizes))


def _instructions(run: ProfiledRun) -> Iterator[Slice]:
    names = Names(run.space)
    for ran in run.records:
        tensors = {f"tensor {name}": tensor for name, tensor in names.of(ran).items()}
        args = {"shape": _shape(ran), **tensors, "source": str(ran.entry.source)}
        args |= {**ran.record.instruction.details, **record_details(ran, ran.record)}
        place = instruction_track(run, ran), ran.issued, run.end_of(ran)
        yield Slice(*place, instruction_name(ran), args, track_kind(ran), ran.number)


def stall_slices(run: ProfiledRun) -> Iterator[Slice]:
    """Yield the stalls of every queue by cause."""
    for queue in run.queues:
        for begin, end, cause in spans_of(causes_of(run, queue)):
            kind = "rest" if cause in (StallCause.START, StallCause.END) else "stall"
            yield Slice(queue, begin, end, cause.name.lower(), {"meaning": MEANINGS[cause]}, kind)


class Names:
    """Names of a program's tensors."""

    def __init__(self, space: Allocator):
        self._buffers = space.buffers
        self._places: dict[Storage, list[tuple[int, int, str]]] = {storage: [] for storage in Storage}
        for one in (*space.hbm_tensors, *space.kept):
            insort(self._places[one.storage], (one.address, one.address + one.size * one.format.bits // 8, one.name))

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

    Temporaries live from their first instruction's issue until the last retires; of one section, in each execution.
    """
    buffers, lives, homes = run.space.buffers, {}, {}
    touched = ((ran, region, number) for ran in run.records for region, number in _touched(ran))
    touched = [(number, ran) for ran, region, number in touched if number and region.storage == storage]
    for number, ran in touched:
        homes.setdefault(number, set()).add(ran.entry.section)
    for number, ran in touched:
        life = number, run.section(ran) if len(homes[number]) == 1 else None
        begin, end = lives.get(life, (ran.issued, 0))
        lives[life] = min(begin, ran.issued), max(end, run.end_of(ran))
    sized = ((*life, buffers[number].size) for (number, _), life in lives.items())
    return _summed(sized, run.space.fixed_end(storage))


def hbm_occupancy(run: ProfiledRun) -> list[tuple[int, int]]:
    """Return the bytes of the live tensors in HBM over time, as (cycle, bytes from there on).

    A tensor that is read first lives from the start, and one that is written last up to the end.
    """
    tensors, lives = sorted(run.space.hbm_tensors, key=lambda tensor: tensor.address), {}
    for ran in run.records:
        reads, writes = ran.record.instruction.reads, ran.record.instruction.writes
        for region, writing in (*((one, False) for one in reads), *((one, True) for one in writes)):
            at = bisect_right(tensors, region.span[0], key=lambda tensor: tensor.address) - 1
            if region.storage == Storage.HBM and at >= 0:
                begin, end = lives.get(at, (ran.issued if writing else 0, None))
                lives[at] = begin, None if writing else max(end or 0, run.end_of(ran))
    sizes = {at: tensors[at].size * tensors[at].format.bits // 8 for at in lives}
    return _summed(((begin, end or run.cycles, sizes[at]) for at, (begin, end) in lives.items()), 0)


def _summed(lives: Iterable[tuple[int, int, int]], fixed: int) -> list[tuple[int, int]]:
    """Return the bytes over time, as (cycle, bytes from there on), of lives: first cycle, end, bytes."""
    changes = Counter({0: fixed})
    for begin, end, size in lives:
        changes[begin] += size
        changes[end] -= size
    cycles = sorted(changes)
    return list(zip(cycles, accumulate(changes[cycle] for cycle in cycles), strict=True))


def _touched(ran: Ran) -> Iterator[tuple[Region, int]]:
    """Return the regions that a record accesses, writes first, each with its entry of `buffers`."""
    instruction = ran.entry.instruction
    return zip((*instruction.writes, *instruction.reads), ran.entry.buffers, strict=True)

"""The timeline of collectives on an instance, for https://ui.perfetto.dev: a track for each core's engine with a slice
for each instruction, and for each direction of each link curves of what it did."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from spec.instance import Instance
from spec.isa.collective import (
    BLOCKS_OF_DST,
    BLOCKS_OF_SRC,
    REDUCTION_KINDS,
    ROOTED,
    Collective,
    CollectiveKind,
    CollectiveType,
    Group,
    collective_fields,
    collective_of,
    element_bytes,
)
from tb.collective_faults import link_name
from tb.collective_run import Event
from tb.link_view import Sample
from tb.trace_events import Slice, counter_track, slice_tracks, write_trace

__all__ = ["write_collective_timeline", "write_link_timeline"]

ENGINES, UTILISATION, STALLED, PLACES, RETRIES = range(1, 6)
"""Groups of tracks, from top to bottom."""


def write_collective_timeline(
    path: Path,
    instance: Instance,
    lists: Mapping[int, Sequence[Collective | int]],
    events: Sequence[Sequence[Event]],
    samples: Sequence[Sample],
) -> Path:
    """Write the timeline of a run of collectives; return its path.

    Arguments:
        path: the file.
        instance: the instance.
        lists: by core, its instructions.
        events: of each core, what became of them.
        samples: of the links; the last is of the end.
    """
    end = max([0, *(sample.cycle for sample in samples)])
    tracks = [f"core {core}" for core in range(instance.cores)]
    slices = [
        _slice(event, lists[core][place], end) for core, found in enumerate(events) for place, event in enumerate(found)
    ]
    return write_trace(
        path,
        [*slice_tracks(ENGINES, "collective engines", tracks, slices), *_link_tracks(instance, samples, places=True)],
    )


def write_link_timeline(path: Path, instance: Instance, samples: Sequence[Sample]) -> Path:
    """Write the timeline of the links alone, whose ends cannot be looked into; return its path."""
    return write_trace(path, _link_tracks(instance, samples, places=False))


def _slice(event: Event, instruction: Collective | int, end: int) -> Slice:
    """Return the slice of an instruction that an engine took; an instruction that is none such has no details."""
    args = {"taken": event.taken, "retired": event.retired}
    name = "illegal"
    try:
        one = collective_of(collective_fields(instruction)) if isinstance(instruction, int) else instruction
    except ValueError:
        one = None
    if one is not None:
        name, described = _description(one)
        args = {**described, **args}
    return Slice(event.core, event.taken, end if event.retired is None else event.retired, name, args)


def _description(one: Collective) -> tuple[str, dict[str, object]]:
    """Return what a slice is called, and what is told of it."""
    name = one.kind.name.lower()
    args: dict[str, object] = {"kind": name, "group": _cores(one.group), "rank": one.rank}
    if one.kind == CollectiveKind.BARRIER:
        return name, args
    dtype = CollectiveType(one.dtype)
    blocks = one.group.ranks if one.kind in BLOCKS_OF_SRC | BLOCKS_OF_DST else 1
    size = blocks * one.count * element_bytes(dtype)
    args |= {"type": dtype.name.lower(), "bytes": size, "blocks": blocks, "elements of a block": one.count}
    if one.kind in REDUCTION_KINDS:
        args["op"] = one.op.name.lower()
    if one.kind in ROOTED:
        args["root"] = one.root
    if dtype == CollectiveType.BF16 and one.kind in REDUCTION_KINDS:
        args |= {"narrow": one.narrow, "rounding": "stochastic" if one.stochastic else "to nearest even"}
    return f"{name} {dtype.name.lower()} {_size(size)}", args


def _cores(group: Group) -> str:
    """Return who is in a group."""
    step = "" if abs(group.stride) == 1 else f", every {abs(group.stride)}"
    return f"{group.ranks} cores from {group.cores[0]} to {group.cores[-1]}{step}"


def _size(size: int) -> str:
    for unit, one in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= one and size % (one // 4) == 0:
            return f"{size / one:g} {unit}"
    return f"{size:,} bytes"


def _link_tracks(instance: Instance, samples: Sequence[Sample], *, places: bool) -> Iterator[Mapping[str, object]]:
    """Yield the curves of all wires. What is counted belongs to the window from a sample to the next, places to the
    moment of the sample."""
    names = [link_name(instance, wire).removeprefix("link ") for wire in range(instance.chips * instance.directions)]
    zero = dict.fromkeys(samples[0].counters[0], 0) if samples else {}
    begin = Sample(0, [0] * len(names), [zero] * len(names))
    windows = [(a, b) for a, b in pairwise([begin, *samples]) if b.cycle > a.cycle]

    def curves(value: Callable[[Sample, Sample, int], float]) -> dict[str, list[tuple[int, float]]]:
        end = [(samples[-1].cycle, 0)] if samples else []
        return {name: [*((a.cycle, value(a, b, wire)) for a, b in windows), *end] for wire, name in enumerate(names)}

    def counted(a: Sample, b: Sample, wire: int, counter: str) -> int:
        return b.counters[wire][counter] - a.counters[wire][counter]

    def share(counter: str) -> Callable[[Sample, Sample, int], float]:
        return lambda a, b, wire: 100 * counted(a, b, wire, counter) / (b.cycle - a.cycle)

    yield from counter_track(UTILISATION, "links: utilisation, percent", curves(share("flits")))
    yield from counter_track(STALLED, "links: cycles stalled for want of a place, percent", curves(share("stalled")))
    if places:
        taken = {name: [(s.cycle, s.places[wire]) for s in [begin, *samples]] for wire, name in enumerate(names)}
        yield from counter_track(PLACES, "links: places taken at the other end", taken)
    yield from counter_track(RETRIES, "links: retries", curves(lambda a, b, wire: counted(a, b, wire, "replays")))

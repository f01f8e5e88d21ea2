"""The timeline of collectives on an instance, for https://ui.perfetto.dev: a track for each core's engine with a slice
for each instruction, and for each direction of each link curves of what it did."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa.collective import Collective
from neuroncore_rtl.tb.harness.link_view import Sample
from neuroncore_rtl.tb.harness.outcome import Event
from neuroncore_rtl.tb.view.link_tracks import link_tracks
from neuroncore_rtl.tb.view.trace_events import Slice, slice_tracks, write_trace

__all__ = ["write_collective_timeline", "write_link_timeline"]

ENGINES, LINKS = 1, 2
"""Numbers of the first groups of tracks, from top to bottom."""


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
        _slice(core, event, lists[core][place], end)
        for core, found in enumerate(events)
        for place, event in enumerate(found)
    ]
    return write_trace(
        path,
        [
            *slice_tracks(ENGINES, "collective engines", tracks, slices),
            *link_tracks(LINKS, instance, samples, credits=True),
        ],
    )


def write_link_timeline(path: Path, instance: Instance, samples: Sequence[Sample]) -> Path:
    """Write the timeline of the links alone, whose ends cannot be looked into; return its path."""
    return write_trace(path, link_tracks(LINKS, instance, samples, credits=False))


def _slice(core: int, event: Event, instruction: Collective | int, end: int) -> Slice:
    """Return the slice of an instruction that an engine took; an instruction that is none such has no details."""
    args = {"taken": event.issued, "retired": event.retired}
    name = "illegal"
    try:
        one = Collective.decode(Collective.unpack(instruction)) if isinstance(instruction, int) else instruction
    except ValueError:
        one = None
    if one is not None:
        name, args = one.summary, {**one.details, **args}
    return Slice(core, event.issued, end if event.retired is None else event.retired, name, args)

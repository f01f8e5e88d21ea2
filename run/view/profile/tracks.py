"""Timeline of a profile."""

from collections.abc import Iterator

from neuroncore_rtl.run.view.profile.run import ProfiledRun, Ran
from neuroncore_rtl.run.view.profile.stalls import MEANINGS, StallCause, causes_of, spans_of
from neuroncore_rtl.run.view.profile.tensors import Names, occupancy, tensor_shape
from neuroncore_rtl.run.view.timeline import Slice, TrackGroup
from neuroncore_rtl.run.view.tracks import record_details
from neuroncore_rtl.spec.isa import Storage, queue_count

__all__ = ["profile_tracks", "track_kind"]

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
        instruction, shape = ran.record.instruction, tensor_shape(ran)
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

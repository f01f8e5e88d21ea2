"""The timeline of a run on the core, for https://ui.perfetto.dev: a track for each queue, a slice for each record."""

from collections.abc import Callable, Iterator
from pathlib import Path

from spec.config import Config
from spec.isa import DmaCopy, Elementwise, LoadStationary, Record, queue_count, queue_name
from tb.core import Run
from tb.trace_events import Slice, slice_tracks, write_trace

__all__ = ["write_timeline"]

PROCESS = 1


def write_timeline(path: Path, run: Run, config: Config, record_at: Callable[[int], Record]) -> Path:
    """Write the timeline of a run; return its path.

    Arguments:
        path: the file, which gets a suffix of .json if it has none.
        run: what was recorded.
        config: the machine's parameters.
        record_at: finds the record of an HBM address.
    """
    tracks = [*(queue_name(queue, config) for queue in range(queue_count(config))), "tensor, loading"]
    return write_trace(path, slice_tracks(PROCESS, "core", tracks, _slices(run, len(tracks) - 1, record_at)))


def _slices(run: Run, loads: int, record_at: Callable[[int], Record]) -> Iterator[Slice]:
    """Yield a slice for each record, on its queue's track; those of LoadStationary overlap others, on their own."""
    for event in run.events:
        record = record_at(event.address)
        yield Slice(
            track=loads if isinstance(record.instruction, LoadStationary) else event.queue,
            begin=event.issued,
            end=run.cycles if event.retired is None else event.retired,
            name=_name(record),
            args={
                "record": f"{event.address:#x}",
                "issued": event.issued,
                "retired": event.retired,
                "waits": [f"semaphore {wait.semaphore} >= {wait.value}" for wait in record.waits],
                "updates": [f"semaphore {u.semaphore} {u.op.name.lower()} {u.value}" for u in record.updates],
            },
        )


def _name(record: Record) -> str:
    instruction = record.instruction
    if isinstance(instruction, Elementwise):
        return instruction.opcode.name.lower()
    if isinstance(instruction, DmaCopy):
        return f"dma {instruction.src.storage.name} to {instruction.dst.storage.name}".lower()
    return "load_stationary" if isinstance(instruction, LoadStationary) else "multiply_moving"

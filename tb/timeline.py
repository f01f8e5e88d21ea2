"""The timeline of a run on the core, for https://ui.perfetto.dev: a track for each queue, a slice for each record.

The format is the JSON of Chrome's trace viewer ("Trace Event Format"), which Perfetto opens. A microsecond there is a
cycle here.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from spec.config import Config
from spec.isa import DmaCopy, Elementwise, LoadStationary, Record, queue_count, queue_name
from tb.core import Event, Run

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
    path = path if path.suffix else path.with_suffix(".json")
    path.parent.mkdir(parents=True, exist_ok=True)
    tracks = [*(queue_name(queue) for queue in range(queue_count(config))), "tensor, loading"]
    events = [
        {"ph": "M", "pid": PROCESS, "name": "process_name", "args": {"name": "core"}},
        *(
            {"ph": "M", "pid": PROCESS, "tid": _thread(track), "name": "thread_name", "args": {"name": name}}
            for track, name in enumerate(tracks)
        ),
        *_slices(run.events, run.cycles, len(tracks) - 1, record_at),
    ]
    path.write_text(json.dumps({"displayTimeUnit": "ns", "traceEvents": events}))
    return path


def _slices(events: Sequence[Event], end: int, loads: int, record_at: Callable[[int], Record]):
    """Yield a slice for each record, on its queue's track; those of LoadStationary overlap others and have their own.

    On a track slices come one after the other: a record that is still in the engine when the next one is taken counts
    from the end of the one before it.
    """
    free: dict[int, int] = {}
    for event in events:
        record = record_at(event.address)
        track = loads if isinstance(record.instruction, LoadStationary) else event.queue
        begin = max(event.issued, free.get(track, 0))
        finish = end if event.retired is None else event.retired
        free[track] = max(begin, finish)
        yield {
            "ph": "X",
            "pid": PROCESS,
            "tid": _thread(track),
            "ts": begin,
            "dur": max(finish - begin, 0),
            "name": _name(record),
            "args": {
                "record": f"{event.address:#x}",
                "issued": event.issued,
                "retired": event.retired,
                "waits": [f"semaphore {wait.semaphore} >= {wait.value}" for wait in record.waits],
                "updates": [f"semaphore {u.semaphore} {u.op.name.lower()} {u.value}" for u in record.updates],
            },
        }


def _thread(track: int) -> int:
    """Return the thread that stands for a track; 0 would be the idle one."""
    return track + 1


def _name(record: Record) -> str:
    instruction = record.instruction
    if isinstance(instruction, Elementwise):
        return instruction.opcode.name.lower()
    if isinstance(instruction, DmaCopy):
        return f"dma {instruction.src.storage.name} to {instruction.dst.storage.name}".lower()
    return "load_stationary" if isinstance(instruction, LoadStationary) else "multiply_moving"

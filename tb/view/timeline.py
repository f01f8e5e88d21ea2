"""The timeline of a run on the core, for https://ui.perfetto.dev: a track for each queue, a slice for each record."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa import Record, queue_count, queue_name
from neuroncore_rtl.tb.harness.link_view import Sample
from neuroncore_rtl.tb.harness.outcome import Outcome
from neuroncore_rtl.tb.view.link_tracks import link_tracks
from neuroncore_rtl.tb.view.trace_events import Slice, slice_tracks, write_trace

__all__ = ["write_instance_timeline", "write_timeline"]

PROCESS = 1


def write_timeline(path: Path, run: Outcome, config: Config, record_at: Callable[[int], Record]) -> Path:
    """Write the timeline of a run; return its path.

    Arguments:
        path: the file, which gets a suffix of .json if it has none.
        run: what was recorded.
        config: the machine's parameters.
        record_at: finds the record of an HBM address.
    """
    return write_trace(path, _core_tracks(PROCESS, "core", run, config, record_at))


def write_instance_timeline(
    path: Path,
    instance: Instance,
    runs: Sequence[Outcome],
    records_at: Sequence[Callable[[int], Record]],
    samples: Sequence[Sample],
) -> Path:
    """Write the timeline of all cores of an instance and of its links; return its path.

    Arguments:
        path: the file.
        instance: the instance.
        runs: of each core, what was recorded.
        records_at: of each core, what finds the record of an address of its HBM.
        samples: of the links; the last is of the end.
    """
    events = [
        event
        for core, (run, record_at) in enumerate(zip(runs, records_at, strict=True))
        for event in _core_tracks(PROCESS + core, f"core {core}", run, instance.core, record_at)
    ]
    return write_trace(path, [*events, *link_tracks(PROCESS + instance.cores, instance, samples, credits=True)])


def _core_tracks(
    process: int, name: str, run: Outcome, config: Config, record_at: Callable[[int], Record]
) -> Iterator[Mapping[str, object]]:
    tracks = [*(queue_name(queue, config) for queue in range(queue_count(config))), "tensor, loading"]
    return slice_tracks(process, name, tracks, _slices(run, len(tracks) - 1, record_at))


def _slices(run: Outcome, loads: int, record_at: Callable[[int], Record]) -> Iterator[Slice]:
    """Yield a slice for each record, on its queue's track; those of LoadStationary overlap others, on their own."""
    for event in run.events:
        record = record_at(event.address)
        yield Slice(
            track=loads if record.instruction.lane else event.queue,
            begin=event.issued,
            end=run.cycles if event.retired is None else event.retired,
            name=record.instruction.summary,
            args={
                **record.instruction.details,
                "record": f"{event.address:#x}",
                "issued": event.issued,
                "retired": event.retired,
                "waits": [f"semaphore {wait.semaphore} >= {wait.value}" for wait in record.waits],
                "updates": [f"semaphore {u.semaphore} {u.op.name.lower()} {u.value}" for u in record.updates],
            },
        )

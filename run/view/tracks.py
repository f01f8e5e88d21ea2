"""Timeline tracks of a device."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from neuroncore_rtl.run.harness.collective_faults import link_name
from neuroncore_rtl.run.harness.link_view import LinkSample
from neuroncore_rtl.run.harness.outcome import Event, Outcome
from neuroncore_rtl.run.view.timeline import Slice, TrackGroup
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa import Record, queue_count, queue_name
from neuroncore_rtl.spec.isa.collective import Collective

__all__ = ["core_tracks", "engine_tracks", "link_tracks", "queue_tracks", "record_details"]


def queue_tracks(config: Config) -> list[str]:
    """Return the names of a core's tracks: its queues, and loads of weights, which overlap multiplications."""
    return [*(queue_name(queue, config) for queue in range(queue_count(config))), "tensor, loading"]


def core_tracks(name: str, run: Outcome, config: Config, record_at: Callable[[int], Record]) -> TrackGroup:
    """Return the tracks of a core, named as by `queue_tracks`."""
    tracks = queue_tracks(config)

    def slices() -> Iterator[Slice]:
        for event in run.events:
            record = record_at(event.address)
            args = {**record.instruction.details, **record_details(event, record)}
            track = len(tracks) - 1 if record.instruction.lane else event.queue
            end = run.cycles if event.retired is None else event.retired
            yield Slice(track, event.issued, end, record.instruction.summary, args)

    return TrackGroup(name=name, tracks=tracks, slices=slices())


def record_details(event: Any, record: Record) -> dict[str, object]:
    """Return the details of an executed record that its slice shows; `event` has its address and cycles."""
    return {
        "record": f"{event.address:#x}",
        **{name: getattr(event, name) for name in ("fetched", "issued", "retired") if hasattr(event, name)},
        "waits": [f"semaphore {wait.semaphore} >= {wait.value}" for wait in record.waits],
        "updates": [f"semaphore {u.semaphore} {u.op.name.lower()} {u.value}" for u in record.updates],
    }


def engine_tracks(
    lists: Mapping[int, Sequence[Collective | int]], events: Sequence[Sequence[Event]], end: int
) -> TrackGroup:
    """Return the tracks of the collective engines; an illegal instruction is an integer without details."""

    def slices() -> Iterator[Slice]:
        for core, found in enumerate(events):
            # Later instructions were not accepted.
            for event, instruction in zip(found, lists.get(core, ()), strict=False):
                name, args = "illegal", {"taken": event.issued, "retired": event.retired}
                with suppress(ValueError):
                    one = instruction
                    one = Collective.decode(Collective.unpack(one)) if isinstance(one, int) else one
                    name, args = one.summary, {**one.details, **args}
                yield Slice(core, event.issued, end if event.retired is None else event.retired, name, args)

    tracks = [f"core {core}" for core in range(len(events))]
    return TrackGroup(name="collective engines", tracks=tracks, slices=slices())


def link_tracks(instance: Instance, samples: Sequence[LinkSample], *, credits: bool = True) -> Iterator[TrackGroup]:
    """Yield the curves of all wires; the last sample is at the end, `credits`: the samples include credits.

    Counters give the gain in the window from one sample to the next.
    """
    names = [link_name(instance, wire).removeprefix("link ") for wire in range(instance.chips * instance.directions)]
    zero = dict.fromkeys(samples[0].counters[0], 0) if samples else {}
    begin = LinkSample(0, [0] * len(names), [zero] * len(names))
    windows = [(a, b) for a, b in pairwise([begin, *samples]) if b.cycle > a.cycle]
    end = [(samples[-1].cycle, 0)] if samples else []

    def curves(counter: str, value: Callable[[int, int], float]) -> dict[str, list[tuple[int, float]]]:
        """Return a curve per wire; `value` computes it from the counter's gain and the cycles since the last sample."""
        found = {}
        for wire, name in enumerate(names):
            gains = ((a.cycle, b.cycle, b.counters[wire][counter] - a.counters[wire][counter]) for a, b in windows)
            found[name] = [*((first, value(gain, last - first)) for first, last, gain in gains), *end]
        return found

    for title, counter in (("utilisation", "flits"), ("cycles stalled for want of a credit", "stalled")):
        shares = curves(counter, lambda gained, cycles: 100 * gained / cycles)
        yield TrackGroup(name=f"links: {title}, percent", curves=shares)
    if credits:
        taken = {name: [(s.cycle, s.credits_used[wire]) for s in [begin, *samples]] for wire, name in enumerate(names)}
        yield TrackGroup(name="links: credits used", curves=taken)
    yield TrackGroup(name="links: retries", curves=curves("replays", lambda gained, cycles: gained))

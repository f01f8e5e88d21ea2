"""What the links did in the course of a run, as curves of a timeline."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.tb.harness.collective_faults import link_name
from neuroncore_rtl.tb.harness.link_view import Sample
from neuroncore_rtl.tb.view.trace_events import counter_track

__all__ = ["link_tracks"]


def link_tracks(
    first: int, instance: Instance, samples: Sequence[Sample], *, credits: bool
) -> Iterator[Mapping[str, object]]:
    """Yield the curves of all wires. What is counted belongs to the window from a sample to the next, credits to the
    moment of the sample.

    Arguments:
        first: number of the first group of tracks; three others follow.
        instance: the instance.
        samples: of its links; the last is of the end.
        credits: whether they tell of credits.
    """
    utilisation, stalled, credits_used, retries = range(first, first + 4)
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

    yield from counter_track(utilisation, "links: utilisation, percent", curves(share("flits")))
    yield from counter_track(stalled, "links: cycles stalled for want of a credit, percent", curves(share("stalled")))
    if credits:
        taken = {name: [(s.cycle, s.credits_used[wire]) for s in [begin, *samples]] for wire, name in enumerate(names)}
        yield from counter_track(credits_used, "links: credits used", taken)
    yield from counter_track(retries, "links: retries", curves(lambda a, b, wire: counted(a, b, wire, "replays")))

"""TEST=gradients: the hardware adds the gradients of a network, each core's from its own shard of the training set.

The network classifies handwritten digits (`kernels.models.digits`) and is untrained; numpy computes each rank's
gradient in FP32. Every rank must get golden's bits under all conditions (`tb.tests.links.gradient_sums`). The report
has the distance of each sum from the float64 average, compared with the bound of the roundings.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from neuroncore_rtl.kernels.models.digits.gradients import shard_gradients
from neuroncore_rtl.run.job import Job
from neuroncore_rtl.run.report import Report, Share, progress
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import Settings, switch
from neuroncore_rtl.run.sim.packages import require_packages
from neuroncore_rtl.tb.tests.links.gradient_sums import GIVEN, SUM_DTYPES, Added, conditions_of, sum_jobs
from neuroncore_rtl.tb.tests.links.options import collective_options
from neuroncore_rtl.tb.tests.scenario import Scenario

__all__ = ["TEST"]


def disagreements(sums: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Yield the differences between ranks, and between conditions."""
    first, expected = next(iter(sums.items()))
    for name, codes in sums.items():
        for rank in np.flatnonzero((codes != codes[0]).any(axis=1)):
            count = int((codes[rank] != codes[0]).sum())
            yield f"{name}: every rank must have the same sums, but {count} of rank {rank} are not those of rank 0"
        if count := int((codes[0] != expected[0]).sum()):
            yield f"{name}: the sums must be the same as {first}, but {count} are not"


def _failures(one: Added) -> Iterator[str]:
    for result in one.results.values():
        if result.mismatches:
            yield f"{result.job.subject.label}: {result.mismatches} bytes of HBM are not golden's"
    yield from (f"{one.dtype.name}, {difference}" for difference in disagreements(one.sums))
    for name, found in one.errors.items():
        if found.of_bound > 1:
            yield f"{name}: a sum is {found.of_bound:.3g} times as far from float64's as rounding allows"


def _rows_of(one: Added) -> Iterator[tuple[str, object]]:
    name, sums, bound = one.dtype.name.lower(), [*one.sums.values()], one.ring_cycles
    yield f"{name}_cycles", {_key(what): result.cycles for what, result in one.results.items()}
    yield f"{name}_ring_bound", {"cycles": bound, "efficiency": Share(bound / max(one.reference.cycles, 1))}
    same = all((codes == codes[0]).all() for codes in sums), all((codes[0] == sums[0][0]).all() for codes in sums)
    yield f"{name}_same_bits", dict(zip(("on_every_rank", "under_all_conditions"), map(bool, same), strict=True))
    yield f"{name}_sums", {"sha256": hashlib.sha256(sums[0][0].tobytes()).hexdigest()[:16]}
    for what, found in one.errors.items():
        yield _key(f"error of {what}"), found.rows()


def _key(words: str) -> str:
    return re.sub(r"\W+", "_", words.lower())


def _jobs(settings: Settings) -> Iterator[Job]:
    require_packages("references")
    conditions = conditions_of(settings)
    ranks = conditions[GIVEN].group.ranks
    with progress(f"gradients of {ranks} shards"):
        gradients = shard_gradients(ranks, settings.seed)
    for dtype in SUM_DTYPES:
        yield from sum_jobs(dtype, gradients, conditions, settings)


def _rows(settings: Settings, results: Sequence[Result]) -> Report:
    of = {dtype: [one for one in results if one.job.subject.dtype == dtype] for dtype in SUM_DTYPES}
    both = [Added(dtype, {one.job.subject.name: one for one in own}) for dtype, own in of.items()]
    ranks, parameters = results[0].job.subject.gradients.shape
    activities = [one.outcome.links for one in results]
    return Report(
        names=[one.job.subject.label for one in results],
        cycles=sum(one.reference.cycles for one in both),
        ideal_cycles=sum(one.ring_cycles for one in both),
        rows={
            "ranks": ranks,
            "parameters": parameters,
            "average": "sum / ranks, divided by the host in float64; errors are relative to the average in float64",
            **{name: row for one in both for name, row in _rows_of(one)},
            "disturbed_frames": sum(sum(links.disturbed) for links in activities),
            "retries": sum(link["replays"] for links in activities for link in links.counters),
            **{_key(f"{what} of {one.job.subject.label}"): path for one in results for what, path in one.files.items()},
        },
        failures=[failure for one in both for failure in _failures(one)],
    )


TEST = Scenario(
    name="gradients",
    summary="gradients of a network, one shard per core, added by the hardware: the same bits on every rank",
    options=collective_options(switch("BOTH", 0, "1 also adds the gradients on the other topology (another build)")),
    jobs=_jobs,
    rows=_rows,
)

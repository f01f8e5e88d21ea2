"""TEST=gradients: real input. The gradients of a network, of one shard of the training set on each core, are added by
the hardware.

The network is the one that reads handwritten digits (`kernels.models.digits`), before its first step; numpy computes
each rank's gradient in FP32. All parameters' gradients, one vector, are all-reduced twice: in FP32, and in BF16 with
stochastic rounding. Every rank must get the same bits, and golden's; and the same under all conditions
(`tb.tests.links.gradient_sums`). Beside that stands the average in float64: how far each of the sums is from it, and
from what rounding allows. The division by the number of ranks, to an average, is the host's, in float64.
"""

import hashlib
from collections.abc import Iterator, Mapping

import numpy as np

from neuroncore_rtl.kernels.models.digits.gradients import shard_gradients
from neuroncore_rtl.run.report import Report, progress
from neuroncore_rtl.run.settings import Command, Settings, switch
from neuroncore_rtl.tb.check.gradient_errors import Errors
from neuroncore_rtl.tb.tests.links.gradient_sums import DTYPES, GIVEN, Added, add, conditions_of
from neuroncore_rtl.tb.tests.links.options import collective_options
from neuroncore_rtl.tb.tests.links.workloads import target_label

__all__ = ["TEST", "disagreements"]


def disagreements(sums: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Say where ranks have other sums than rank 0, or a condition has other sums than the first one.

    Arguments:
        sums: codes [ranks, elements] by condition.
    """
    first, expected = next(iter(sums.items()))
    for name, codes in sums.items():
        for rank in np.flatnonzero((codes != codes[0]).any(axis=1)):
            count = int((codes[rank] != codes[0]).sum())
            yield f"{name}: every rank must have the same sums, but {count} of rank {rank} are not those of rank 0"
        if count := int((codes[0] != expected[0]).sum()):
            yield f"{name}: the sums must be the same as {first}, but {count} are not"


def _failures(added: Added, errors: Mapping[str, Errors]) -> Iterator[str]:
    for name, one in added.sums.items():
        yield from (f"{added.dtype.name}, {name}: {failure}" for failure in one.done.failures)
        if one.done.mismatches:
            yield f"{added.dtype.name}, {name}: {one.done.mismatches} bytes of HBM are not golden's"
    different = disagreements({name: one.codes for name, one in added.sums.items()})
    yield from (f"{added.dtype.name}, {difference}" for difference in different)
    for name, found in errors.items():
        if found.of_bound > 1:
            yield f"{name}: a sum is {found.of_bound:.3g} times as far from float64's as rounding allows"


def _rows(added: Added, errors: Mapping[str, Errors], bound: int) -> Iterator[tuple[str, object]]:
    """Yield the rows of the report that are of one format."""
    name, sums = added.dtype.name, [one.codes for one in added.sums.values()]
    cycles = added.given.done.cycles
    yield f"{name} cycles", {what: one.done.cycles for what, one in added.sums.items()}
    yield f"{name} ring bound", {"cycles": bound, "efficiency": f"{bound / max(cycles, 1):.1%}"}
    same = all((codes == codes[0]).all() for codes in sums), all((codes[0] == sums[0][0]).all() for codes in sums)
    words = ["yes" if answer else "no" for answer in same]
    yield f"{name} same bits", {"on every rank": words[0], "under all conditions": words[1]}
    yield f"{name} sums", {"sha256": hashlib.sha256(sums[0][0].tobytes()).hexdigest()[:16]}
    for what, found in errors.items():
        yield f"error of {what}", found.shown()


def _run(settings: Settings) -> Report:
    conditions = conditions_of(settings)
    given = conditions[GIVEN]
    ranks = given.group.ranks
    with progress(f"gradients of {ranks} shards"):
        gradients = shard_gradients(ranks, settings.seed)
    failures, rows, every, cycles, bound = [], {}, [], 0, 0
    for dtype in DTYPES:
        added = add(dtype, gradients, conditions, settings)
        errors = added.errors(gradients)
        bound += added.bound(given)
        failures += _failures(added, errors)
        rows |= _rows(added, errors, added.bound(given))
        every += [(f"{dtype.name}, {name}", one.done) for name, one in added.sums.items()]
        cycles += added.given.done.cycles
    activities = [done.outcome.links for _, done in every]
    return Report(
        test="gradients",
        label=f"{target_label(settings)}{given.instance.chips}x{settings.cores}-{settings.topology}-{settings.sim}",
        settings=dict(settings.values),
        compared=sum(done.compared for _, done in every),
        mismatches=sum(done.mismatches for _, done in every),
        cycles=cycles,
        ideal_cycles=bound,
        extra={
            "ranks": ranks,
            "parameters": f"{gradients.shape[1]:,}, as training begins with them (He's, drawn from SEED)",
            "average": "sum / ranks, divided by the host in float64; errors are relative to the average in float64",
            **rows,
            "disturbed_frames": sum(sum(links.disturbed) for links in activities),
            "retries": sum(link["replays"] for links in activities for link in links.counters),
            **{f"{what} of {name}": path for name, done in every for what, path in done.files.items()},
        },
        failures=tuple(failures),
    )


TEST = Command(
    name="gradients",
    summary="gradients of a network that learns to read handwritten digits, of a shard on each core, added by the "
    "hardware: the same bits on every rank, wherever it sits and whatever delays it",
    options=collective_options(
        switch("BOTH", 0, "1 adds the gradients on the other topology, too, which takes a build of its own")
    ),
    run=_run,
)

"""All-reduce of gradients in one format, and the errors of the sums. No condition may change a bit of the sums.

Relative errors refer to the average of the gradients, in float64; the host divides the sum by the number of gradients.
Where gradients cancel, an element's relative error may be large, so the bound refers to the magnitudes of the summands:
the error of a sum of n FP32 numbers g is at most (1 + u) ** (n - 1) - 1 times the sum of |g|, with u half a last place
of 1. In BF16 each g is first rounded to nearest, and the sum is rounded once more.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.golden.collective import reduce_blocks
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.run.harness.hbm import Hbm, hbm_of
from neuroncore_rtl.run.job import Job
from neuroncore_rtl.run.report import Share
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import Settings, UsageError
from neuroncore_rtl.spec.formats import BF16, FP32, FloatFormat
from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.spec.isa.collective import MAX_RANKS, CollectiveKind, CollectiveType, Group, element_bytes
from neuroncore_rtl.spec.link import CORES_PER_CHIP
from neuroncore_rtl.tb.stimulus.collective_programs import COLLECTIVE_FORMATS, Workload, lists_side_by_side
from neuroncore_rtl.tb.tests.links.collective import ring_bound
from neuroncore_rtl.tb.tests.links.options import groups_of, instance_of, share_of
from neuroncore_rtl.tb.tests.links.workloads import workload_job

__all__ = ["GIVEN", "SUM_DTYPES", "Added", "GradientErrors", "Vectors", "conditions_of", "errors_of", "sum_jobs"]

SUM_DTYPES = (CollectiveType.FP32, CollectiveType.BF16)  # BF16 rounds stochastically
STEP = 1  # as in the first training step
GIVEN = "as given"
PAUSES = 96  # additional pauses of a slow HBM, in cycles per 256
DISTURBED = 0.005  # least share of disturbed frames in the condition with late ranks
LATE = 1000  # largest delay of a rank in cycles


@dataclass(frozen=True)
class Condition:
    """Condition of a run: instance, each rank's core, HBM, share of disturbed frames, and largest delay in cycles."""

    instance: Instance
    group: Group
    behaviour: Hbm
    errors: float = 0.0
    late: int = 0


def conditions_of(settings: Settings) -> Mapping[str, Condition]:
    """Return the conditions by name; UsageError if the instance is illegal or exceeds a group."""
    instance, errors = instance_of(settings), share_of(settings)
    ranks = instance.chips * settings.cores
    if ranks > MAX_RANKS:
        raise UsageError(f"CHIPS times CORES must be at most {MAX_RANKS} ranks, not {ranks}")
    (group,) = groups_of(instance, settings.cores, 1, 1)
    behaviour = hbm_of(settings)
    latency, stall = 150 if behaviour.latency < 100 else 20, min(behaviour.stall + PAUSES, 240)
    slow = replace(behaviour, latency=latency, stall=stall, seed=behaviour.seed + 1)
    given = Condition(instance, group, behaviour, errors)
    found = {
        GIVEN: given,
        "stalled": replace(given, behaviour=slow),
        "late and disturbed": replace(given, errors=max(errors, DISTURBED), late=LATE),
        "reversed": replace(given, group=Group(instance.cores - 1, -group.stride, ranks)),
    }
    if settings.cores < CORES_PER_CHIP:
        found["on half of the chips"] = replace(given, group=Group(instance.chips // 2, 1, ranks))
    if settings.both:
        tied = Topology.RING if settings.topology == Topology.TORUS else Topology.TORUS
        other = instance_of(Settings({**settings.values, "TOPOLOGY": tied.value}))
        found[f"on a {tied.value}"] = replace(given, instance=other)
    return found


def workload_of(condition: Condition, codes: np.ndarray, dtype: CollectiveType, seed: int) -> Workload:
    """Return the all-reduce of `codes`, [ranks, elements]; `seed` draws the rest."""
    rng = np.random.default_rng(seed)
    kind, stochastic = CollectiveKind.ALL_REDUCE, dtype == CollectiveType.BF16
    made = lists_side_by_side(
        rng, condition.instance, kind, [condition.group], codes.shape[1], dtype, stochastic=stochastic
    )
    lists, delays = {}, {}
    for core, own in zip(condition.group.cores, codes, strict=True):
        (one,) = made.lists[core]
        made.memories[core, one.src : one.src + own.nbytes] = own.view(np.uint8)
        lists[core] = [replace(one, seed=seed, stream=STEP)]
        delays[core] = [int(rng.integers(0, condition.late + 1))]
    return replace(made, lists=lists, delays=delays)


@dataclass(frozen=True)
class Vectors:
    """Vectors of an all-reduce under a condition: float32 [ranks, elements], and their codes, rounded to nearest."""

    dtype: CollectiveType
    name: str
    condition: Condition
    gradients: np.ndarray
    codes: np.ndarray

    @property
    def label(self) -> str:
        return f"{self.dtype.name}, {self.name}"


def sum_jobs(
    dtype: CollectiveType, gradients: np.ndarray, conditions: Mapping[str, Condition], settings: Settings
) -> Iterator[Job]:
    """Yield a job per condition; the subjects are `Vectors`."""
    codes = encode(gradients, COLLECTIVE_FORMATS[dtype])
    for name, condition in conditions.items():
        first = dtype == SUM_DTYPES[0] and name == GIVEN
        yield workload_job(
            condition.instance,
            workload_of(condition, codes, dtype, settings.seed),
            settings,
            check_axi=False,
            behaviour=condition.behaviour,
            errors=condition.errors,
            name="" if first else f"{dtype.name.lower()}-{name.replace(' ', '-')}",
            pictures=False,
            subject=Vectors(dtype, name, condition, gradients, codes),
        )


@dataclass(frozen=True)
class GradientErrors:
    """Relative errors of an average's elements and norm; a sum is wrong if the largest error exceeds its bound."""

    largest: float
    rms: float
    of_norm: float
    of_bound: float

    def rows(self) -> dict[str, float]:
        errors = {"largest": self.largest, "rms": self.rms, "of_norm": self.of_norm}
        return errors | {"of_what_rounding_allows": Share(self.of_bound)}


def errors_of(sums: np.ndarray, gradients: np.ndarray, fmt: FloatFormat, *, stochastic: bool = False) -> GradientErrors:
    """Return the errors of sums as averages; a `stochastic` last rounding has errors of up to a whole last place."""
    exact = gradients.astype(np.float64)
    ranks, average = len(exact), exact.mean(axis=0)
    error = np.abs(sums.astype(np.float64) / ranks - average)
    allowed = _error_bound(ranks, fmt, stochastic) * np.abs(exact).mean(axis=0)
    there = average != 0
    relative = error[there] / np.abs(average[there])
    shares = np.divide(error, allowed, out=np.where(error > 0, np.inf, 0.0), where=allowed > 0)
    return GradientErrors(
        largest=float(relative.max(initial=0)),
        rms=float(np.sqrt(np.mean(relative**2))),
        of_norm=float(np.linalg.norm(error) / np.linalg.norm(average)),
        of_bound=float(shares.max()) if np.isfinite(error).all() else np.inf,
    )


def _error_bound(ranks: int, fmt: FloatFormat, stochastic: bool) -> float:
    fp32, bf16 = (2.0 ** -(one.mantissa_bits + 1) for one in (FP32, BF16))  # half a last place of 1
    added = (1 + fp32) ** (ranks - 1)
    if fmt is BF16:
        added *= (1 + bf16) * (1 + bf16 * (2 if stochastic else 1))
    return added - 1


@dataclass(frozen=True)
class Added:
    """Sums of gradients in one format, and the jobs' results by condition."""

    dtype: CollectiveType
    results: Mapping[str, Result]

    @property
    def reference(self) -> Result:
        return self.results[GIVEN]

    @cached_property
    def sums(self) -> dict[str, np.ndarray]:
        """Sums that each rank computed, by condition, [ranks, elements]."""
        found = {}
        for name, result in self.results.items():
            vectors, lists = result.job.subject, result.job.workload.lists
            parts = [result.hbm[core, lists[core][0].dst :] for core in vectors.condition.group.cores]
            found[name] = np.stack([part[: vectors.codes[0].nbytes].view(vectors.codes.dtype) for part in parts])
        return found

    @property
    def ring_cycles(self) -> int:
        """Least cycles of a ring's links under the reference condition."""
        vectors = self.reference.job.subject
        elements, condition = vectors.codes.shape[1], vectors.condition
        size, reduced = (elements * element_bytes(dtype) for dtype in (self.dtype, CollectiveType.FP32))
        return ring_bound(condition.instance, CollectiveKind.ALL_REDUCE, condition.group, size, reduced)

    @cached_property
    def errors(self) -> dict[str, GradientErrors]:
        """Errors of the sums, and of golden's rounding to nearest."""
        name, fmt, job = self.dtype.name, COLLECTIVE_FORMATS[self.dtype], self.reference.job
        summed, gradients = self.sums[GIVEN][0], job.subject.gradients
        if self.dtype != CollectiveType.BF16:
            return {name: errors_of(decode(summed, fmt), gradients, fmt)}
        instructions = [replace(one, stochastic=False) for (one,) in job.workload.lists.values()]
        nearest = reduce_blocks(job.subject.codes, instructions)
        return {
            f"{name} stochastically": errors_of(decode(summed, fmt), gradients, fmt, stochastic=True),
            f"{name} to nearest even by golden": errors_of(decode(nearest, fmt), gradients, fmt),
        }

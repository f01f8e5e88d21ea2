"""All-reduces over the links, with results known from nccl-tests."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from neuroncore_rtl.run.harness.hbm import hbm_of
from neuroncore_rtl.run.report import Report, progress
from neuroncore_rtl.run.settings import Settings
from neuroncore_rtl.run.targets import execute, target_of
from neuroncore_rtl.spec.isa import collective
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind, CollectiveType, Group, ReduceOp
from neuroncore_rtl.tb.stimulus.collective_programs import COLLECTIVE_PAGE, LINE, CollectiveIssue, Workload
from neuroncore_rtl.tb.stimulus.verifiable import expected, inputs
from neuroncore_rtl.tb.tests.links.collective import ALLREDUCE
from neuroncore_rtl.tb.tests.links.options import instance_of
from neuroncore_rtl.tb.tests.links.workloads import engine_job

__all__ = ["AllReduce", "all_reduces", "run_all_reduces", "wrong_results"]

NOT_THERE = "int8, uint8, uint32, int64, uint64, float16, float64, fp8; prod, avg, premulsum"
"""Types and operations of nccl-tests that the hardware does not have."""


@dataclass(frozen=True)
class AllReduce:
    """An all-reduce of the first cores; the results follow the operands at `src`."""

    dtype: CollectiveType
    op: ReduceOp
    narrow: bool
    ranks: int
    count: int
    src: int

    @property
    def name(self) -> str:
        return f"{self.dtype.name.lower()} {self.op.name.lower()}{', narrow' if self.narrow else ''}"

    @property
    def pitch(self) -> int:
        return -(-self.count * collective.element_bytes(self.dtype) // LINE) * LINE

    @property
    def dst(self) -> int:
        return self.src + self.pitch

    def instruction(self, rank: int) -> Collective:
        kind, group = CollectiveKind.ALL_REDUCE, Group(0, 1, self.ranks)
        chunk = collective.best_chunk(self.count, self.ranks, kind)
        places = {"rank": rank, "src": self.src, "dst": self.dst, "pitch": self.pitch}
        what = {"dtype": self.dtype, "op": self.op, "narrow": self.narrow, "count": self.count}
        return Collective(kind=kind, group=group, chunk=chunk, **places, **what)


def all_reduces(cores: int, largest: int) -> Iterator[AllReduce]:
    """Yield all-reduces of 2, of 3 and of all cores; the number of elements is a power of two, or one less."""
    place = 0
    kinds = [(dtype, op, False) for dtype, op in product(CollectiveType, ReduceOp)]
    kinds.append((CollectiveType.BF16, ReduceOp.SUM, True))  # sent as BF16, without any rounding here
    for ranks, (dtype, op, narrow) in product(sorted({2, 3, cores}), kinds):
        most = largest // collective.element_bytes(dtype)
        powers = [1 << power for power in range(most.bit_length())]
        for count in sorted({*powers, *(count - 1 for count in powers[2:]), most}):
            one = AllReduce(dtype, op, narrow, ranks, count, place)
            yield one
            place = one.dst + one.pitch


def workload_of(cores: int, listed: Sequence[AllReduce], seed: int) -> Workload:
    """Return the all-reduces as a workload, one after another."""
    memories = np.zeros((cores, -(-(listed[-1].dst + listed[-1].pitch) // COLLECTIVE_PAGE) * COLLECTIVE_PAGE), np.uint8)
    lists, issues = {core: [] for core in range(cores)}, []
    for one in listed:
        places = {core: len(lists[core]) for core in range(one.ranks)}
        issues.append(CollectiveIssue(CollectiveKind.ALL_REDUCE, Group(0, 1, one.ranks), one.count, places))
        for rank in range(one.ranks):
            codes = inputs(one.dtype, one.op, one.ranks, rank, seed, one.count)
            memories[rank, one.src : one.src + codes.nbytes] = codes.view(np.uint8)
            lists[rank].append(one.instruction(rank))
    return Workload(lists, {core: [0] * len(own) for core, own in lists.items()}, memories, issues)


def wrong_results(one: AllReduce, seed: int, memories: Sequence[np.ndarray]) -> int:
    """Return the number of wrong results over all ranks, given each core's memory, uint8 [bytes], and the seed."""
    results = expected(one.dtype, one.op, one.ranks, seed, one.count)
    found = [memories[rank][one.dst : one.dst + results.nbytes].view(results.dtype) for rank in range(one.ranks)]
    return sum(int((own != results).sum()) for own in found)


def run_all_reduces(settings: Settings) -> Report:
    """Run all all-reduces, and compare every element on every rank."""
    engines = ALLREDUCE.settings(CHIPS=settings.chips, SIM=settings.sim, SEED=settings.seed)
    instance = instance_of(engines)
    listed = list(all_reduces(instance.cores, settings.bytes))
    with progress(f"inputs of {len(listed):,} all-reduces"):
        workload = workload_of(instance.cores, listed, settings.seed)
    job = engine_job(instance, workload, behaviour=hbm_of(engines), check_axi=False)
    done = execute(job, target_of(engines.values))
    table, failures = defaultdict(Counter), list(done.failures)
    for one in listed:
        row = table[one.name]
        row.update(all_reduces=1, results=one.ranks * one.count)
        for who, memories in (("hardware", done.hbm), ("golden", done.expected.memories["hbm"])):
            wrong = wrong_results(one, settings.seed, memories)
            row[f"{who}_wrong"] += wrong
            if wrong:
                what = f"{one.name} of {one.count:,} elements, {one.ranks} ranks"
                failures.append(f"{what}: {wrong:,} results of {who} are not those of nccl-tests")
    return Report(
        compared=done.compared,
        mismatches=done.mismatches,
        cycles=done.cycles,
        failures=tuple(failures),
        rows={
            "ranks": sorted({one.ranks for one in listed}),
            "all_reduces": [{"kind": name, **row} for name, row in table.items()],
            "not_there": NOT_THERE,
        },
    )

"""TESTs of one kind of collective each; every byte of every core's HBM is compared."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from neuroncore_rtl.kernels.library.collectives import torus_all_reduce
from neuroncore_rtl.run.check.link_table import link_rows
from neuroncore_rtl.run.harness.hbm import hbm_of
from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.job import Job
from neuroncore_rtl.run.report import Report, Share
from neuroncore_rtl.run.result import Result
from neuroncore_rtl.run.settings import Settings, UsageError, choice, integer, switch
from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.spec.isa.collective import CollectiveKind, CollectiveType, Group, ReduceOp, element_bytes
from neuroncore_rtl.spec.link import CHANNELS
from neuroncore_rtl.tb.stimulus.collective_programs import blocks_of, lists_side_by_side
from neuroncore_rtl.tb.tests.links.options import collective_options, groups_of, instance_of, share_of
from neuroncore_rtl.tb.tests.links.workloads import span_of, workload_job
from neuroncore_rtl.tb.tests.scenario import Scenario

__all__ = ["ALLREDUCE", "TESTS", "ring_bound", "torus_bound"]

_DTYPES = {kind.name.lower(): kind for kind in CollectiveType}
_OPS = {op.name.lower(): op for op in ReduceOp}


def torus_bound(instance: Instance, cores: int, size: int, reduced: int) -> int:
    """Return the least cycles of an all-reduce over the chips of a torus, of `cores` vectors at once, rounded up.

    The bound assumes that all links of a chip, and the channels of its participating cores, send data in every cycle.
    """
    moved = cores * (instance.chips - 1) / instance.chips * (size + reduced)
    return int(-(-moved // (min(instance.directions, CHANNELS * cores) * instance.link_bytes)))


def ring_bound(instance: Instance, kind: CollectiveKind, group: Group, size: int, reduced: int) -> int | None:
    """Return the least cycles of a collective of one group on a ring, rounded up; None where the ring gives no bound.

    The bound assumes that the links send data in both directions in every cycle. `size` is the bytes of the longer of
    src and dst, `reduced` the bytes of as many elements in the format of partial results.
    """
    share = (group.ranks - 1) / group.ranks
    moved = {
        CollectiveKind.ALL_REDUCE: share * (size + reduced),
        CollectiveKind.REDUCE_SCATTER: share * reduced,
        CollectiveKind.ALL_GATHER: share * size,
        CollectiveKind.BROADCAST: size,
        CollectiveKind.SEND: size,
    }.get(kind)
    return None if moved is None else int(-(-moved // (CHANNELS * instance.link_bytes)))


_SHARED = (CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_GATHER, CollectiveKind.ALL_TO_ALL)
BUS_SHARES = {
    CollectiveKind.ALL_REDUCE: lambda n: 2 * (n - 1) / n,
    **dict.fromkeys(_SHARED, lambda n: (n - 1) / n),
    **dict.fromkeys((CollectiveKind.BROADCAST, CollectiveKind.SEND), lambda n: 1),
}
"""By kind, bytes that a rank must send for each byte of BYTES, given the number of ranks, as NCCL's benchmarks count;
`bus_bytes_per_cycle` is this number of bytes for each rank and cycle."""


def _jobs(kind: CollectiveKind, settings: Settings) -> Iterator[Job]:
    instance, errors = instance_of(settings), share_of(settings)
    values = settings.values
    torus = values.get("ALGORITHM") == "torus"
    if torus and (instance.topology != Topology.TORUS or (settings.groups, settings.stride) != (1, 1)):
        raise UsageError("ALGORITHM=torus must be given with TOPOLOGY=torus, without GROUPS and STRIDE")
    apart = (settings.cores, settings.cores) if torus else (settings.groups, settings.stride)
    groups = groups_of(instance, settings.cores, *apart)
    dtype = _DTYPES[values.get("DTYPE", "fp32")]
    rounding = {"narrow": bool(values.get("NARROW", 0)), "stochastic": values.get("ROUND", "rne") == "sr"}
    if dtype != CollectiveType.BF16 and any(rounding.values()):
        raise UsageError("NARROW=1 and ROUND=sr must be given with DTYPE=bf16")
    blocks = max(blocks_of(kind, groups[0].ranks))
    count = values.get("BYTES", 0) // max(blocks, 1) // element_bytes(dtype)
    if kind != CollectiveKind.BARRIER and count == 0:
        raise UsageError(f"BYTES must hold an element of each of {blocks} blocks, not {settings.bytes}")
    rng, op = np.random.default_rng(settings.seed), _OPS[values.get("OP", "sum")]
    if torus:
        rounding["steps"] = partial(torus_all_reduce, instance)
    workload = lists_side_by_side(rng, instance, kind, groups, count, dtype, op=op, **rounding)
    size = blocks * count * element_bytes(dtype)
    reduced = 2 * size if dtype == CollectiveType.BF16 and not rounding["narrow"] else size
    yield workload_job(
        instance,
        workload,
        settings,
        behaviour=hbm_of(settings),
        errors=errors,
        check_axi=False,
        name="",
        subject=(kind, groups[0], size, reduced),
    )


def _rows(settings: Settings, results: Sequence[Result]) -> Report:
    (done,) = results
    instance, workload, outcome = done.job.instance, done.job.workload, done.outcome
    kind, group, size, reduced = done.job.subject
    _, end = span_of(instance, outcome)
    if settings.values.get("ALGORITHM") == "torus":
        bound, name = torus_bound(instance, settings.cores, size, reduced), "torus_bound_cycles"
    else:
        bound, name = ring_bound(instance, kind, group, size, reduced), "ring_bound_cycles"
    cycles = max(done.cycles, 1)
    measures = {}
    if bound is not None:
        measures |= {name: bound, "efficiency": Share(bound / cycles)}
    if kind in BUS_SHARES:
        measures["bus_bytes_per_cycle"] = BUS_SHARES[kind](group.ranks) * size / cycles
    return Report(
        ideal_cycles=bound,
        rows={
            "ranks": group.ranks,
            "groups": len(done.job.workload.issues),
            "block_elements": workload.issues[0].count,
            **measures,
            "bytes_compared": done.compared,
            "waits": waits_of(outcome, sorted(workload.lists), cycles),
            **done.link_summary,
            "simulated_cycles_per_second": round(end / outcome.seconds),
            **done.files,
        },
        details={"links": link_rows(done.links)},
    )


def waits_of(outcome: Outcome, cores: Sequence[int], cycles: int) -> dict[str, Share]:
    """Return by cause the share of cycles in which a channel stalls, as an average over all channels of `cores`."""
    counted = [outcome.parts[core].counters["collective"] for core in cores]
    channels = [counters[f"channel{channel}"] for counters in counted for channel in range(CHANNELS)]
    names = [name for name in channels[0] if name.startswith("wait_")]
    totals = {name: sum(counters[name] for counters in channels) for name in names}
    return {name.removeprefix("wait_"): Share(total / cycles / len(channels)) for name, total in totals.items()}


_BYTES = "bytes of the longer of a rank's src and dst, rounded down to whole elements per block"
_DATA = (integer("BYTES", 65536, _BYTES, 2, 1 << 26), choice("DTYPE", "fp32", "format of the elements", _DTYPES))
_REDUCTION = (
    choice("OP", "sum", "operation on two elements", _OPS),
    choice("ROUND", "rne", "final rounding of bf16: to nearest even, or stochastic", ("rne", "sr")),
    switch("NARROW", 0, "1 sends partial results as bf16"),
)


_ALGORITHM = choice(
    "ALGORITHM",
    "ring",
    "ring: all ranks; torus: one group of each core of a chip, along rows and columns",
    ("ring", "torus"),
)


def _test(name: str, kind: CollectiveKind, summary: str) -> Scenario:
    options = collective_options(
        integer("GROUPS", 1, "concurrent groups", 1, 64),
        integer("STRIDE", 1, "participating cores from one rank to the next; as many groups interleave", 1, 63),
        *(() if kind == CollectiveKind.BARRIER else _DATA),
        *((_ALGORITHM,) if kind == CollectiveKind.ALL_REDUCE else ()),
        *(_REDUCTION if kind in (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER) else ()),
    )
    return Scenario(name=name, summary=summary, options=options, jobs=partial(_jobs, kind), rows=_rows)


TESTS = tuple(
    _test(name, kind, f"{what} over the links, against golden")
    for name, kind, what in (
        ("allreduce", CollectiveKind.ALL_REDUCE, "all-reduce"),
        ("reducescatter", CollectiveKind.REDUCE_SCATTER, "reduce-scatter"),
        ("allgather", CollectiveKind.ALL_GATHER, "all-gather"),
        ("broadcast", CollectiveKind.BROADCAST, "broadcast from a group's first core"),
        ("alltoall", CollectiveKind.ALL_TO_ALL, "all-to-all"),
        ("sendrecv", CollectiveKind.SEND, "transfer from every core to the next one of its group"),
        ("barrier", CollectiveKind.BARRIER, "barrier"),
    )
)

ALLREDUCE = TESTS[0]

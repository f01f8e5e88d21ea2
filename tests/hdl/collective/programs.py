"""Random lists of collectives for a few cores, which any order of events must end."""

import numpy as np

from neuroncore_rtl.spec.isa.collective import (
    Collective,
    CollectiveKind,
    CollectiveType,
    Group,
    ReduceOp,
    element_bytes,
)
from tests.hdl.collective.jobs import random_group
from tests.hdl.collective.machine import HBM_BYTES

__all__ = ["random_memories", "random_operation", "random_programs"]

K = CollectiveKind


def random_memories(rng, cores):
    """Return bytes that hold numbers of every format, among them infinities, NaN and subnormals, but mostly not."""
    memories = rng.integers(0, 256, (cores, HBM_BYTES), np.uint8)
    words = memories.view("<u2")
    exponents = rng.integers(118, 134, words.shape, np.uint16) << 7
    ordinary = rng.random(words.shape) < 0.97
    words[:] = np.where(ordinary, words & 0x807F | exponents, words)
    return memories


def _count(rng, ranks, chunk, most):
    segment = 32 * chunk
    counts = (1, 31, 33, 64, segment, segment + 1, ranks * segment, 2 * ranks * segment - 5, int(rng.integers(1, most)))
    return min(int(rng.choice(counts)), most)


def random_operation(rng, cores, kind=None, most=2000):
    """Return what each core of a group executes."""
    kind = K(int(rng.choice((0, 1, 2, 3, 4, 5, 7)))) if kind is None else kind
    ranks = int(rng.integers(2, cores + 1))
    base, stride = random_group(rng, cores, ranks)
    group, chunk = Group(base, stride, ranks), int(rng.choice((1, 1, 2, 5, 32)))
    dtype = CollectiveType(int(rng.integers(3)))
    reduces = kind in (K.ALL_REDUCE, K.REDUCE_SCATTER)
    count = _count(rng, ranks, chunk, most)
    pitch = -(-count * element_bytes(dtype) // 64) * 64 + 64 * int(rng.integers(3))
    common = {
        "kind": kind,
        "group": group,
        "count": count,
        "dtype": dtype,
        "pitch": pitch,
        "chunk": chunk,
        "op": ReduceOp(int(rng.integers(3))) if reduces else ReduceOp.SUM,
        "narrow": bool(reduces and dtype == CollectiveType.BF16 and rng.random() < 0.4),
        "stochastic": bool(reduces and dtype == CollectiveType.BF16 and rng.random() < 0.4),
        "seed": int(rng.integers(1 << 32)),
        "stream": int(rng.integers(1 << 32)),
    }
    one, other = (int(rank) for rank in rng.permutation(ranks)[:2])
    found = {}
    in_place = kind == K.ALL_REDUCE and rng.random() < 0.3
    for rank, core in enumerate(group.cores):
        halves = rng.permutation((0, HBM_BYTES // 2))  # so that what one operation writes others read
        src, dst = (int(half) + 64 * int(rng.integers(100)) for half in halves)
        places = {"src": src, "dst": src if in_place else dst}
        if kind == K.SEND:
            if rank in (one, other):
                role = {"kind": K.SEND, "root": other} if rank == one else {"kind": K.RECEIVE, "root": one}
                found[core] = Collective(**common | role, rank=rank, **places)
        else:
            found[core] = Collective(**common, rank=rank, root=one, **places)
    return found


def random_programs(rng, cores, operations, kind=None, most=2000):
    """Return a list of collectives for each core."""
    programs = {core: [] for core in range(cores)}
    for _ in range(operations):
        for core, instruction in random_operation(rng, cores, kind, most).items():
            programs[core].append(instruction)
    return programs

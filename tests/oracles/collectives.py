"""Collectives element by element in Python, following `spec.isa.collective`: rounds, segments, ranks.

It adds numpy scalars and rounds with ml_dtypes. For stochastic rounding it adds the upper half of the random word to
the bits of the FP32 sum.
"""

from dataclasses import replace
from itertools import chain, cycle, repeat

import ml_dtypes
import numpy as np

from neuroncore_rtl.golden.arith import random_words
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa.collective import (
    BLOCKS_OF_DST,
    BLOCKS_OF_SRC,
    CHUNK_GRANULES,
    COLLECTIVE_ALIGNMENT,
    GRANULE,
    REDUCTION_KINDS,
    Collective,
    ReduceOp,
    element_bytes,
)
from neuroncore_rtl.spec.isa.collective import CollectiveKind as K
from neuroncore_rtl.spec.isa.collective import CollectiveType as T
from neuroncore_rtl.tb.stimulus import operands as stimulus
from neuroncore_rtl.tb.stimulus.collective_programs import COLLECTIVE_FORMATS, random_group

__all__ = [
    "STORAGE", "blocks_of", "large_collective", "on_every_rank", "random_codes_of", "random_collective",
    "ranks_in_order", "reduced", "results",
]  # fmt: skip

STORAGE = {T.FP32: np.float32, T.BF16: ml_dtypes.bfloat16, T.INT32: np.int32}


def ranks_in_order(kind, count: int, ranks: int, chunk: int, block: int = 0) -> list[list[int]]:
    """Return the order in which the ranks are added, for every element of a block."""
    granules = -(-count // GRANULE)
    half = -(-granules // 2)
    orders = []
    for granules_of_half, direction in ((half, 1), (granules - half, -1)):
        rounds = chain.from_iterable(repeat(segment, chunk) for segment in cycle(range(ranks)))
        starts = repeat(block) if kind == K.REDUCE_SCATTER else rounds
        for _, start in zip(range(granules_of_half), starts, strict=False):
            orders.append([(start + direction * step) % ranks for step in range(1, ranks + 1)])
    return [orders[element // GRANULE] for element in range(count)]


def _combine(op: ReduceOp, a, b):
    if op == ReduceOp.SUM:
        return a + b
    if np.isnan(a) or np.isnan(b):
        return np.float32(np.nan)
    if a == b and isinstance(a, np.float32):  # -0 is below +0
        return (a if np.signbit(a) else b) if op == ReduceOp.MIN else (b if np.signbit(a) else a)
    return max(a, b) if op == ReduceOp.MAX else min(a, b)


def _stochastic(value, seed: int, stream: int, element: int):
    if not np.isfinite(value):
        return ml_dtypes.bfloat16(value)
    word = int(random_words(seed, stream, element))
    return np.uint16((int(value.view(np.uint32)) + (word >> 16)) >> 16).view(ml_dtypes.bfloat16)


def reduced(parts: list[np.ndarray], instructions: list[Collective], block: int = 0) -> np.ndarray:
    first = instructions[0]
    narrow, bf16 = ml_dtypes.bfloat16, first.dtype == T.BF16
    out = []
    with np.errstate(all="ignore"):
        for element, order in enumerate(ranks_in_order(first.kind, first.count, first.group.ranks, first.chunk, block)):
            terms = [parts[rank][element] for rank in order]
            if bf16:
                terms = [np.float32(term) for term in terms]
            total = terms[0]
            for number, term in enumerate(terms[1:], 1):
                total = _combine(first.op, total, term)
                if first.narrow and number < len(terms) - 1:
                    total = np.float32(narrow(total))
            last = instructions[order[-1]]
            if bf16 and last.stochastic:
                total = _stochastic(total, last.seed, last.stream, element)
            out.append(narrow(total) if bf16 else total)
    return np.array(out, STORAGE[first.dtype])


def results(blocks: list[list[np.ndarray]], instructions: list[Collective]) -> list[list[np.ndarray] | None]:
    """Return the blocks that each rank stores, from the blocks in every rank's src; None if it stores nothing."""
    first, ranks = instructions[0], len(instructions)
    match first.kind:
        case K.ALL_REDUCE:
            return [[reduced([b[0] for b in blocks], instructions)]] * ranks
        case K.REDUCE_SCATTER:
            return [[reduced([b[rank] for b in blocks], instructions, rank)] for rank in range(ranks)]
        case K.ALL_GATHER:
            return [[b[0] for b in blocks]] * ranks
        case K.BROADCAST:
            return [[blocks[first.root][0]]] * ranks
        case K.ALL_TO_ALL:
            return [[b[rank] for b in blocks] for rank in range(ranks)]
        case K.BARRIER:
            return [None] * ranks
    (source,) = [b[0] for b, i in zip(blocks, instructions, strict=True) if i.kind == K.SEND]
    return [None if i.kind == K.SEND else [source] for i in instructions]


def random_collective(rng, *, cores=128, kind=None, ranks=None, count=None, chunk=None, most=1 << 20) -> Collective:
    """Return one rank's legal random collective with the given properties; `most` limits a random count."""
    kind = K(int(rng.integers(8))) if kind is None else kind
    n = min(ranks or int(rng.choice((2, 2, 3, 4, 5, 8, 13, 64))), cores)
    dtype, reduces = T(int(rng.integers(3))), kind in REDUCTION_KINDS
    bf16 = dtype == T.BF16 and reduces
    chunk = chunk or int(rng.choice((1, 1, 2, 3, 5, 7, 32)))
    segment = GRANULE * chunk
    counts = (1, 31, 32, 33, 64, segment, segment + 1, n * segment, 2 * n * segment - 5, 2 * n * segment + 32)
    count = count or min(int(rng.choice((*counts, rng.integers(1, min(most, 5000))))), most)
    rank, root = (int(v) for v in rng.permutation(n)[:2])
    src, dst = (64 * int(rng.integers(1 << 20)) for _ in range(2))
    pitch = 64 * (-(-4 * count // 64) + int(rng.integers(4)))
    if kind == K.ALL_GATHER and rng.random() < 0.4:
        src = dst + rank * pitch
    return Collective(
        kind=kind,
        group=random_group(rng, cores, n),
        rank=rank,
        root=rank if kind == K.BROADCAST and rng.random() < 0.3 else root,
        count=count,
        dtype=dtype,
        src=src,
        dst=dst,
        pitch=pitch,
        op=ReduceOp(int(rng.integers(3))) if reduces else ReduceOp.SUM,
        chunk=chunk,
        narrow=bool(bf16 and rng.random() < 0.4),
        stochastic=bool(bf16 and rng.random() < 0.4),
        seed=int(rng.integers(1 << 32)),
        stream=int(rng.integers(1 << 32)),
    )


def large_collective(rng, **options) -> Collective:
    one, bits = random_collective(rng, **options), int(rng.integers(1, 31))
    count = int(rng.integers(1, 1 << bits))
    pitch = -(-count * element_bytes(one.dtype) // COLLECTIVE_ALIGNMENT) * COLLECTIVE_ALIGNMENT
    pitch += int(rng.integers(max(1, (1 << min(bits + 2, 31)) // COLLECTIVE_ALIGNMENT))) * COLLECTIVE_ALIGNMENT
    pitch = min(pitch, (1 << 32) - COLLECTIVE_ALIGNMENT)
    room = (1 << HBM_ADDRESS_BITS) - one.group.ranks * pitch
    src, dst = (int(rng.integers(room // COLLECTIVE_ALIGNMENT)) * COLLECTIVE_ALIGNMENT for _ in range(2))
    return replace(one, chunk=int(rng.integers(1, CHUNK_GRANULES + 1)), count=count, pitch=pitch, src=src, dst=dst)


def on_every_rank(instruction: Collective) -> list[Collective]:
    """Return all ranks' collectives in rank order, given rank 0's; for SEND only rank 0's and its root's."""
    if instruction.kind == K.SEND:
        other = {"kind": K.RECEIVE, "rank": instruction.root, "root": instruction.rank}
        return sorted((instruction, replace(instruction, **other)), key=lambda i: i.rank)
    return [replace(instruction, rank=rank) for rank in range(instruction.group.ranks)]


def blocks_of(instruction: Collective) -> tuple[int, int]:
    ranks = instruction.group.ranks
    return tuple(ranks if instruction.kind in kinds else 1 for kinds in (BLOCKS_OF_SRC, BLOCKS_OF_DST))


def random_codes_of(rng, dtype: T, shape, special: float = 0.05) -> np.ndarray:
    """Return random elements: integers of all sizes; floats mostly near 1, a share of `special` of any pattern."""
    fmt, count = COLLECTIVE_FORMATS[dtype], int(np.prod(shape))
    anything = rng.random(count) < special
    codes = np.where(anything, stimulus.random_codes(rng, fmt, count), stimulus.ordinary_codes(rng, fmt, count))
    return codes.view(STORAGE[dtype]).reshape(shape)

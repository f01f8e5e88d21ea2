"""Lists of collectives for the cores of an instance, and their memories."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuroncore_rtl.spec.formats import BF16, FP32, INT32
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa import collective
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind, CollectiveType, Group, ReduceOp
from neuroncore_rtl.tb.stimulus import operands as stimulus

__all__ = [
    "COLLECTIVE_FORMATS", "COLLECTIVE_PAGE", "LINE", "CollectiveIssue", "Workload", "blocks_of", "lists_side_by_side",
    "random_group", "random_workload",
]  # fmt: skip

COLLECTIVE_PAGE = 4096  # alignment of memories, and of the results of a single collective
LINE = 64  # alignment of operands
COLLECTIVE_FORMATS = {CollectiveType.FP32: FP32, CollectiveType.BF16: BF16, CollectiveType.INT32: INT32}
REDUCTIONS = (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER)


@dataclass(frozen=True)
class CollectiveIssue:
    """A collective of a group of cores; `places`: by core, the index of its instruction in the core's list."""

    kind: CollectiveKind
    group: Group
    count: int
    places: Mapping[int, int]


@dataclass(frozen=True)
class Workload:
    """Collectives in their order, memories uint8 [cores, bytes], and `delays`, cycles before each instruction."""

    lists: dict[int, list[Collective]]
    delays: dict[int, list[int]]
    memories: np.ndarray
    issues: Sequence[CollectiveIssue]


def blocks_of(kind: CollectiveKind, ranks: int) -> tuple[int, int]:
    """Return the number of blocks of src and of dst."""
    if kind == CollectiveKind.BARRIER:
        return 0, 0
    src, dst = (ranks if kind in several else 1 for several in (collective.BLOCKS_OF_SRC, collective.BLOCKS_OF_DST))
    return src * (kind != CollectiveKind.RECEIVE), dst * (kind != CollectiveKind.SEND)


def _aligned(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _extent(blocks: int, pitch: int, size: int) -> int:
    """Return the bytes from the start of the first block to the end of the last."""
    return (blocks - 1) * pitch + size if blocks else 0


def lists_side_by_side(
    rng: np.random.Generator,
    instance: Instance,
    kind: CollectiveKind,
    groups: Sequence[Group],
    count: int,
    dtype: CollectiveType,
    steps: Callable[[Collective], list[Collective]] = lambda one: [one],
    **fields: object,
) -> Workload:
    """Return one collective of every group, all at the same time; memories other than src are random bytes.

    `steps` returns the collectives by which a core executes its collective.

    SEND means transfers around the group: each rank sends to the next one and receives from the previous one. Even
    ranks send first, odd ranks receive first. The groups have no core in common; a block has `count` elements.
    """
    size = count * collective.element_bytes(dtype)
    pitch = _aligned(size, LINE)
    ranks = max(group.ranks for group in groups)
    kinds = (CollectiveKind.SEND, CollectiveKind.RECEIVE) if kind == CollectiveKind.SEND else (kind,)
    src_bytes, dst_bytes = (max(_extent(blocks_of(k, ranks)[end], pitch, size) for k in kinds) for end in (0, 1))
    dst = _aligned(src_bytes, COLLECTIVE_PAGE)
    room = max(dst + _aligned(dst_bytes, COLLECTIVE_PAGE), COLLECTIVE_PAGE)
    memories = rng.integers(0, 256, (instance.cores, room), np.uint8)
    shared = {"kind": kind, "dtype": dtype, "pitch": pitch, **fields}
    shared |= {"count": 0 if kind == CollectiveKind.BARRIER else count, "dst": dst, "seed": 0x1234567, "stream": 5}
    lists = {}
    for group in groups:
        for rank, core in enumerate(group.cores):
            if src_bytes:
                memories[core, :src_bytes] = _data(rng, dtype, src_bytes, group.ranks)
            one = Collective(**shared, group=group, rank=rank, chunk=collective.best_chunk(count, group.ranks, kind))
            lists[core] = list(_transfers(one)) if kind == CollectiveKind.SEND else steps(one)
    delays = {core: [0] * len(lists[core]) for core in lists}
    issues = [CollectiveIssue(kind, group, count, dict.fromkeys(group.cores, 0)) for group in groups]
    return Workload(lists, delays, memories, issues)


def _transfers(one: Collective) -> Iterator[Collective]:
    ranks, rank = one.group.ranks, one.rank
    send = replace(one, kind=CollectiveKind.SEND, root=(rank + 1) % ranks)
    receive = replace(one, kind=CollectiveKind.RECEIVE, root=(rank - 1) % ranks)
    yield from (receive, send) if rank % 2 else (send, receive)


def _data(rng: np.random.Generator, dtype: CollectiveType, size: int, ranks: int) -> np.ndarray:
    """Return elements as bytes: near 1, with special values in a tenth of the sums."""
    fmt = COLLECTIVE_FORMATS[dtype]
    n = -(-size * 8 // fmt.bits)
    codes = stimulus.ordinary_codes(rng, fmt, n)
    special = rng.random(n) < 0.1 / ranks
    return np.where(special, stimulus.random_codes(rng, fmt, n), codes).astype(codes.dtype).view(np.uint8)[:size]


def random_group(rng: np.random.Generator, cores: int, ranks: int | None = None) -> Group:
    """Return a random group: cores at a constant distance, from any start."""
    most = min(cores, collective.MAX_RANKS)
    if ranks is None:
        ranks = int(rng.choice([2, 3, 4, most, rng.integers(2, most + 1)]))
    ranks = min(ranks, most)
    widest = min((cores - 1) // (ranks - 1), 63)
    stride = int(rng.choice([1, 1, 2, rng.integers(1, widest + 1)]))
    stride = min(stride, widest) * int(rng.choice([1, 1, -1]))
    span = abs(stride) * (ranks - 1)
    low = int(rng.integers(0, cores - span))
    return Group(low if stride > 0 else low + span, stride, ranks)


def random_workload(
    rng: np.random.Generator, instance: Instance, collectives: int, largest: int, longest_delay: int = 300
) -> Workload:
    """Return random collectives; each core executes its collectives in the order of their creation.

    As this order is the same for all cores, no deadlock can occur. Delays are drawn on a logarithmic scale.
    """
    room = 4 * _aligned(largest, COLLECTIVE_PAGE)
    words = [stimulus.random_fp32(rng, room // 4) for _ in range(instance.cores)]
    memories = np.stack([word.view(np.uint8) for word in words])
    lists = {core: [] for core in range(instance.cores)}
    issues = []
    kinds = [kind for kind in CollectiveKind if kind != CollectiveKind.RECEIVE]
    weights = np.array([2.0 if kind in REDUCTIONS else 1.0 for kind in kinds])  # reductions have more features
    for _ in range(collectives):
        kind = kinds[rng.choice(len(kinds), p=weights / weights.sum())]
        group = random_group(rng, instance.cores)
        made = list(_random_collective(rng, kind, group, largest, room))
        issues.append(CollectiveIssue(kind, group, made[0].count, {one.core: len(lists[one.core]) for one in made}))
        for one in made:
            lists[one.core].append(one)
    lists = {core: found for core, found in lists.items() if found}
    delays = {
        core: [int(10 ** rng.uniform(0, math.log10(longest_delay + 1))) - 1 for _ in found]
        for core, found in lists.items()
    }
    return Workload(lists, delays, memories, issues)


def _random_collective(
    rng: np.random.Generator, kind: CollectiveKind, group: Group, largest: int, room: int
) -> Iterator[Collective]:
    dtype = CollectiveType(rng.integers(len(CollectiveType)))
    blocks = max(1, *blocks_of(kind, group.ranks))
    most = max(1, (largest // blocks // LINE * LINE) // collective.element_bytes(dtype))
    count = min(most, int(10 ** rng.uniform(0, math.log10(most) + 0.1)))
    size = count * collective.element_bytes(dtype)
    slack = largest // blocks - _aligned(size, LINE)
    pitch = _aligned(size, LINE) + (int(rng.integers(0, slack // LINE + 1)) * LINE if slack > 0 else 0)
    shared = {
        "kind": kind,
        "group": group,
        "count": count,
        "dtype": dtype,
        "op": ReduceOp(rng.integers(len(ReduceOp))) if kind in REDUCTIONS else ReduceOp.SUM,
        "chunk": int(rng.choice([collective.best_chunk(count, group.ranks, kind), _any_chunk(rng)])),
        "root": int(rng.integers(group.ranks)),
    }
    if dtype == CollectiveType.BF16 and kind in REDUCTIONS:
        shared |= {"narrow": bool(rng.integers(2)), "stochastic": bool(rng.integers(2))}
    if kind == CollectiveKind.SEND:
        sender, receiver = map(int, rng.permutation(group.ranks)[:2])
        ranks = {sender: (CollectiveKind.SEND, receiver), receiver: (CollectiveKind.RECEIVE, sender)}
    else:
        ranks = {rank: (kind, shared["root"]) for rank in range(group.ranks)}
    in_place = rng.random() < 0.3
    for rank, (own, root) in ranks.items():
        if kind == CollectiveKind.BROADCAST:  # each rank may choose its own chunk
            shared["chunk"] = _any_chunk(rng)
        src, dst = _random_places(rng, [_extent(n, pitch, size) for n in blocks_of(own, group.ranks)], room)
        if in_place and own in (CollectiveKind.ALL_REDUCE, CollectiveKind.BROADCAST):
            dst = src
        elif in_place and own == CollectiveKind.REDUCE_SCATTER:
            dst = src + rank * pitch
        elif in_place and own == CollectiveKind.ALL_GATHER:
            src = dst + rank * pitch
        numbers = {"seed": int(rng.integers(1 << 32)), "stream": int(rng.integers(1 << 32))}
        places = {"rank": rank, "src": src, "dst": dst, "pitch": pitch}
        yield Collective(**shared | {"kind": own, "root": root} | places | numbers)


def _any_chunk(rng: np.random.Generator) -> int:
    return int(rng.integers(1, collective.CHUNK_GRANULES + 1))


def _random_places(rng: np.random.Generator, sizes: Sequence[int], room: int) -> tuple[int, int]:
    half = room // 2
    first = [half * (n ^ int(flip)) for flip in (rng.integers(2),) for n in (0, 1)]
    free = [(half - _aligned(size, LINE)) // LINE for size in sizes]
    return tuple(base + LINE * int(rng.integers(0, places + 1)) for base, places in zip(first, free, strict=True))

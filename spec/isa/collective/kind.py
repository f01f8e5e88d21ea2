"""Kinds, reductions and types of collectives, and the division of a vector."""

import enum

__all__ = [
    "BLOCKS_OF_DST", "BLOCKS_OF_SRC", "CHUNK_GRANULES", "GRANULE", "MAX_RANKS", "OTHER_SIDE", "RANK_BITS",
    "REDUCTION_KINDS", "ROOTED", "CollectiveKind", "CollectiveType", "ReduceOp", "best_chunk", "element_bytes",
    "uses_dst", "uses_src",
]  # fmt: skip

GRANULE = 32
"""Elements of the smallest part of a vector: a line of BF16, two lines of FP32."""

CHUNK_GRANULES = 32
"""Maximum granules of a segment; a receiver's buffer holds two such segments in FP32."""

MAX_RANKS = 64
"""Maximum number of ranks in a group."""

RANK_BITS = (MAX_RANKS - 1).bit_length()
"""Width of a rank, and of the number of ranks minus one."""


class CollectiveKind(enum.IntEnum):
    """Operation of a group. A block is `count` elements; several blocks lie `pitch` bytes apart."""

    ALL_REDUCE = 0
    """dst = the reduction of every rank's src, one block."""
    REDUCE_SCATTER = 1
    """dst = the reduction of block `rank` of every rank's src, `ranks` blocks."""
    ALL_GATHER = 2
    """Block i of dst = src of rank i."""
    BROADCAST = 3
    """dst = src of rank `root`; the root's own dst is written too."""
    ALL_TO_ALL = 4
    """Block i of dst = block `rank` of rank i's src."""
    SEND = 5
    """Send src to rank `root`, which executes RECEIVE; other ranks do not take part."""
    RECEIVE = 6
    """dst = src of rank `root`, which executes SEND."""
    BARRIER = 7
    """Finishes on each rank only after every rank has begun it."""


REDUCTION_KINDS = frozenset({CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER})
"""Kinds that reduce."""

ROOTED = frozenset({CollectiveKind.BROADCAST, CollectiveKind.SEND, CollectiveKind.RECEIVE})
"""Kinds that use `root`."""

BLOCKS_OF_SRC = frozenset({CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_TO_ALL})
"""Kinds with one block of src per rank."""

BLOCKS_OF_DST = frozenset({CollectiveKind.ALL_GATHER, CollectiveKind.ALL_TO_ALL})
"""Kinds with one block of dst per rank."""


class ReduceOp(enum.IntEnum):
    """Reduction of two elements. MAX and MIN are those of the vector engine, including NaN; INT32 sums wrap."""

    SUM = 0
    """a + b."""
    MAX = 1
    """Maximum of a and b."""
    MIN = 2
    """Minimum of a and b."""


class CollectiveType(enum.IntEnum):
    """Format of the elements in memory. Between ranks, partial results of BF16 are FP32."""

    FP32 = 0
    """4 bytes."""
    BF16 = 1
    """2 bytes."""
    INT32 = 2
    """4 bytes."""


def element_bytes(dtype: int) -> int:
    """Return the bytes of an element in memory."""
    return 2 if dtype == CollectiveType.BF16 else 4


OTHER_SIDE = {CollectiveKind.SEND: CollectiveKind.RECEIVE, CollectiveKind.RECEIVE: CollectiveKind.SEND}
"""Kinds that match another kind."""


def uses_src(values: dict[str, int]) -> bool:
    """Return whether the executing rank reads src."""
    kind = values["kind"]
    if kind == CollectiveKind.BROADCAST:
        return values["rank"] == values["root"]
    return kind not in (CollectiveKind.RECEIVE, CollectiveKind.BARRIER)


def uses_dst(values: dict[str, int]) -> bool:
    """Return whether the executing rank writes dst."""
    return values["kind"] not in (CollectiveKind.SEND, CollectiveKind.BARRIER)


def best_chunk(count: int, ranks: int, kind: CollectiveKind = CollectiveKind.ALL_REDUCE) -> int:
    """Return the granules per segment for `count` elements of a block: the fewest rounds, all of similar size.

    A round costs the latency of its steps whatever its size.
    """
    granules = -(-max(count, 1) // GRANULE)
    part = (granules + 1) // 2  # granules of channel 0, the larger part
    segments = ranks if kind == CollectiveKind.ALL_REDUCE else 1
    rounds = -(-part // (segments * CHUNK_GRANULES))
    return -(-part // (segments * rounds))

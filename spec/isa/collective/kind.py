"""What a group of cores can do: kinds, reductions and types, and how a vector is cut."""

import enum

__all__ = [
    "BLOCKS_OF_DST", "BLOCKS_OF_SRC", "CHUNK_GRANULES", "GRANULE", "MAX_RANKS", "OTHER_SIDE", "RANK_BITS",
    "REDUCTION_KINDS", "ROOTED", "CollectiveKind", "CollectiveType", "ReduceOp", "best_chunk", "element_bytes",
    "uses_dst", "uses_src",
]  # fmt: skip

GRANULE = 32
"""Elements that a vector is divided by: a line of BF16, two of FP32."""

CHUNK_GRANULES = 32
"""Granules of a segment at most; a receiver has room for two such segments in FP32."""

MAX_RANKS = 64
"""Ranks of a group, at most; at least 2."""

RANK_BITS = (MAX_RANKS - 1).bit_length()
"""Bits of a rank, and of the number of ranks less one."""


class CollectiveKind(enum.IntEnum):
    """What the group does. A block is `count` elements; blocks of several lie `pitch` bytes apart."""

    ALL_REDUCE = 0
    """dst = the reduction of every rank's src, one block."""
    REDUCE_SCATTER = 1
    """dst = the reduction of block `rank` of every rank's src, `ranks` blocks."""
    ALL_GATHER = 2
    """Block i of dst = src of rank i."""
    BROADCAST = 3
    """dst = src of rank `root`; the root's own dst is written, too."""
    ALL_TO_ALL = 4
    """Block i of dst = block `rank` of rank i's src."""
    SEND = 5
    """src goes to rank `root`, which executes RECEIVE; no other rank takes part."""
    RECEIVE = 6
    """dst = src of rank `root`, which executes SEND."""
    BARRIER = 7
    """Ends on no rank before it has begun on every one; addresses, count, op and dtype mean nothing."""


REDUCTION_KINDS = frozenset({CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER})
"""Kinds that reduce; to the others op, narrow and stochastic mean nothing."""

ROOTED = frozenset({CollectiveKind.BROADCAST, CollectiveKind.SEND, CollectiveKind.RECEIVE})
"""Kinds to which `root` means something."""

BLOCKS_OF_SRC = frozenset({CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_TO_ALL})
"""Kinds whose src is a block for each rank; then, or of dst, `pitch` means something."""

BLOCKS_OF_DST = frozenset({CollectiveKind.ALL_GATHER, CollectiveKind.ALL_TO_ALL})
"""Kinds whose dst is a block for each rank."""


class ReduceOp(enum.IntEnum):
    """How two elements become one. MAX and MIN as the vector engine's, NaN included; sums of INT32 wrap."""

    SUM = 0
    """a + b."""
    MAX = 1
    """The larger one."""
    MIN = 2
    """The smaller one."""


class CollectiveType(enum.IntEnum):
    """Format of the elements in memory. Between ranks partial results of BF16 are FP32."""

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
"""Kinds that go together with another one; every other kind goes together with itself."""


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
    """Return the granules of a segment with which there are as few rounds as can be, and all of them are alike.

    A round costs its steps' latency whatever is in it, so fewer are better; and a last one that is almost empty
    costs as many steps as a full one, so what there is is spread over all.

    Arguments:
        count: elements of a block.
        ranks: of the group.
        kind: a round of ALL_REDUCE has `ranks` segments of the vector; of the others, one of each block.
    """
    granules = -(-max(count, 1) // GRANULE)
    part = (granules + 1) // 2  # of channel 0, the larger one
    segments = ranks if kind == CollectiveKind.ALL_REDUCE else 1
    rounds = -(-part // (segments * CHUNK_GRANULES))
    return -(-part // (segments * rounds))

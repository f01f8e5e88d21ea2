"""The instruction of the collective engine: one rank's part of an operation of a group of cores.

Ranks of a group are the cores base, base + stride, base + 2 * stride, ...; every one of them executes an instruction
that says the same of kind, op, dtype, narrow, stochastic, chunk, count, base, stride, ranks and BROADCAST's root, as
far as they mean something (`SIGNATURE_USES`), and its own addresses in its own HBM.

How a vector is reduced is a function of these fields alone. Its elements come in granules of `GRANULE`; channel 0 takes
the first half of the granules, rounded up, channel 1 the others. A channel goes through its part in rounds of `ranks`
segments of `chunk` granules; segment s of a round is the s-th, and the last round may end early, in or before any of
them. Channel 0 sums segment s in the order of ranks s + 1, s + 2, ..., s (modulo ranks), channel 1 in the order s - 1,
s - 2, ..., s; each sum is one addition to what has come so far. REDUCE_SCATTER has segment s of block s, with as many
rounds as a block has chunks. The rank that adds last, s, rounds by its own seed and stream, and what it stores is what
all store.

A rank's src and dst are apart, or the same block: src = dst of ALL_REDUCE and BROADCAST, dst = block `rank` of src of
REDUCE_SCATTER, src = block `rank` of dst of ALL_GATHER. What else overlaps is undefined.
"""

import enum
from dataclasses import dataclass
from typing import ClassVar

from neuroncore_rtl.spec.isa.dma import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.isa.fields import Layout, pack, unpack, width_of

__all__ = [
    "BLOCKS_OF_DST", "BLOCKS_OF_SRC", "CHUNK_GRANULES", "COLLECTIVE", "COLLECTIVE_BITS", "COLLECTIVE_FIELDS",
    "GRANULE", "MAX_RANKS", "OTHER_SIDE", "REDUCTION_KINDS", "ROOTED", "SIGNATURE_BITS", "SIGNATURE_FIELDS",
    "SIGNATURE_OFFSETS", "SIGNATURE_USES", "Collective", "CollectiveKind", "CollectiveType", "Group", "ReduceOp",
    "best_chunk", "collective_fields", "collective_of", "disagreement", "element_bytes", "signature",
    "signature_fields",
]  # fmt: skip

COLLECTIVE = 56
"""Opcode, apart from those of the other engines."""

GRANULE = 32
"""Elements that a vector is divided by: a line of BF16, two of FP32."""

CHUNK_GRANULES = 32
"""Granules of a segment at most; a receiver has room for two such segments in FP32."""

MAX_RANKS = 64
"""Ranks of a group, at most; at least 2."""


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
    MAX = 1
    MIN = 2


class CollectiveType(enum.IntEnum):
    """Format of the elements in memory. Between ranks partial results of BF16 are FP32."""

    FP32 = 0
    BF16 = 1
    INT32 = 2


def element_bytes(dtype: int) -> int:
    """Return the bytes of an element in memory."""
    return 2 if dtype == CollectiveType.BF16 else 4


COLLECTIVE_FIELDS: Layout = (
    ("opcode", 6),
    ("kind", 3),
    ("op", 2),
    ("dtype", 2),
    ("narrow", 1),
    ("stochastic", 1),
    ("chunk", 5),
    ("ranks", 6),
    ("base", 7),
    ("stride", 7),
    ("rank", 6),
    ("root", 6),
    ("count", 30),
    ("src_address", HBM_ADDRESS_BITS),
    ("dst_address", HBM_ADDRESS_BITS),
    ("pitch", 32),
    ("seed", 32),
    ("stream", 32),
)
"""Name and width of each field, from the least significant bit up. chunk: granules less one. ranks: less one. stride:
two's complement, not 0. narrow: partial results of BF16 travel rounded to BF16, to nearest even, at every rank.
stochastic: the last rounding of BF16, by (seed, stream) and the element's number in the vector (in the block, of
REDUCE_SCATTER); else to nearest even. Addresses and pitch are multiples of 64 bytes. rank: the executing core's own.
root: of BROADCAST; the other side, of SEND and RECEIVE."""

COLLECTIVE_BITS = width_of(COLLECTIVE_FIELDS)

SIGNATURE_FIELDS: Layout = (
    ("kind", 3),
    ("op", 2),
    ("dtype", 2),
    ("narrow", 1),
    ("stochastic", 1),
    ("chunk", 5),
    ("ranks", 6),
    ("base", 7),
    ("stride", 7),
    ("count", 30),
    ("root", 6),
)
"""What a READY or REFUSE flit carries: by it two ranks find that they disagree, and name the field by its place in this
list. stride is two's complement. Bits of fields that mean nothing for the kind are 0."""

SIGNATURE_BITS = 64
"""What the smallest flit holds."""


def _signature_offsets() -> dict[str, int]:
    names = [name for name, _ in SIGNATURE_FIELDS]
    offsets = {name: width_of(SIGNATURE_FIELDS[:place]) for place, name in enumerate(names)}
    return offsets | {"root": offsets["stochastic"]}


SIGNATURE_OFFSETS = _signature_offsets()
"""Lowest bit of each field of a signature. They lie one after the other; but root of a BROADCAST, to which stochastic
and chunk mean nothing, lies where other kinds have those."""

_GROUP = frozenset({"kind", "ranks", "base", "stride"})
_DATA = _GROUP | {"dtype", "count"}
_REDUCTION = _DATA | {"op", "narrow", "stochastic", "chunk"}
SIGNATURE_USES: dict[CollectiveKind, frozenset[str]] = {
    CollectiveKind.ALL_REDUCE: _REDUCTION,
    CollectiveKind.REDUCE_SCATTER: _REDUCTION,
    CollectiveKind.ALL_GATHER: _DATA | {"chunk"},
    CollectiveKind.BROADCAST: _DATA | {"root"},
    CollectiveKind.ALL_TO_ALL: _DATA,
    CollectiveKind.SEND: _DATA,
    CollectiveKind.RECEIVE: _DATA,
    CollectiveKind.BARRIER: _GROUP,
}
"""The fields that mean something for a kind, of those in its signature. chunk of a BROADCAST is not among them: however
a rank cuts it, the same elements follow each other. SEND and RECEIVE name each other by where they send."""

OTHER_SIDE = {CollectiveKind.SEND: CollectiveKind.RECEIVE, CollectiveKind.RECEIVE: CollectiveKind.SEND}
"""Kinds that go together with another one; every other kind goes together with itself."""

_SIGNED = frozenset({"stride"})


@dataclass(frozen=True)
class Group:
    """Cores that take part.

    Arguments:
        base: the core of rank 0.
        stride: cores from a rank to the next; may be negative, not 0.
        ranks: 2 to `MAX_RANKS`.
    """

    base: int
    stride: int
    ranks: int

    @property
    def cores(self) -> tuple[int, ...]:
        """Core of every rank."""
        return tuple(self.base + rank * self.stride for rank in range(self.ranks))


@dataclass(frozen=True, kw_only=True)
class Collective:
    """One rank's part of an operation of a group.

    Arguments:
        kind: what the group does.
        group: who takes part.
        rank: of the core that executes this.
        count: elements of a block.
        dtype: their format.
        src, dst: byte addresses in the core's HBM.
        pitch: bytes from a block to the next, where there are several.
        op: of a reduction.
        root: rank that broadcasts; of SEND and RECEIVE the other side.
        chunk: granules of a segment, 1 to `CHUNK_GRANULES`.
        narrow: partial results of BF16 travel as BF16.
        stochastic: the last rounding of BF16 is by (seed, stream).
    """

    kind: CollectiveKind
    group: Group
    rank: int
    count: int = 0
    dtype: CollectiveType = CollectiveType.FP32
    src: int = 0
    dst: int = 0
    pitch: int = 0
    op: ReduceOp = ReduceOp.SUM
    root: int = 0
    chunk: int = CHUNK_GRANULES
    narrow: bool = False
    stochastic: bool = False
    seed: int = 0
    stream: int = 0

    opcode: ClassVar[int] = COLLECTIVE

    @property
    def core(self) -> int:
        """The core that executes this."""
        return self.group.base + self.rank * self.group.stride

    def fields(self) -> dict[str, int]:
        """Return the value of every field, as :func:`collective_fields` returns it."""
        return {
            "opcode": self.opcode,
            "kind": int(self.kind),
            "op": int(self.op),
            "dtype": int(self.dtype),
            "narrow": int(self.narrow),
            "stochastic": int(self.stochastic),
            "chunk": self.chunk - 1,
            "ranks": self.group.ranks - 1,
            "base": self.group.base,
            "stride": self.group.stride,
            "rank": self.rank,
            "root": self.root,
            "count": self.count,
            "src_address": self.src,
            "dst_address": self.dst,
            "pitch": self.pitch,
            "seed": self.seed,
            "stream": self.stream,
        }

    def encode(self) -> int:
        """Return the instruction word.

        Raises:
            ValueError: if a value does not fit its field.
        """
        return pack(COLLECTIVE_FIELDS, self.fields(), "collective", _SIGNED)


def collective_fields(word: int) -> dict[str, int]:
    """Return the value of every field of an instruction word."""
    return unpack(COLLECTIVE_FIELDS, word, _SIGNED)


def collective_of(values: dict[str, int]) -> Collective:
    """Return the instruction of its fields; op and dtype that mean nothing have their default if they must.

    Raises:
        ValueError: if a field that means something holds the code of nothing.
    """
    if values["opcode"] != COLLECTIVE:
        raise ValueError(f"opcode must be {COLLECTIVE}, not {values['opcode']}")
    kind = CollectiveKind(values["kind"])
    unused = {name for name in ("op", "dtype") if name not in SIGNATURE_USES[kind] and values[name] == 3}
    values = values | dict.fromkeys(unused, 0)
    return Collective(
        kind=kind,
        group=Group(values["base"], values["stride"], values["ranks"] + 1),
        rank=values["rank"],
        count=values["count"],
        dtype=CollectiveType(values["dtype"]),
        src=values["src_address"],
        dst=values["dst_address"],
        pitch=values["pitch"],
        op=ReduceOp(values["op"]),
        root=values["root"],
        chunk=values["chunk"] + 1,
        narrow=bool(values["narrow"]),
        stochastic=bool(values["stochastic"]),
        seed=values["seed"],
        stream=values["stream"],
    )


def signature(values: dict[str, int]) -> int:
    """Return what a rank announces itself with.

    Raises:
        ValueError: if a value does not fit its field.
    """
    word = 0
    for name, width in SIGNATURE_FIELDS:
        if name in SIGNATURE_USES[CollectiveKind(values["kind"])]:
            word |= pack(((name, width),), values, "signature", _SIGNED) << SIGNATURE_OFFSETS[name]
    return word


def signature_fields(word: int) -> dict[str, int]:
    """Return the value of every field that means something in a signature."""
    values = {
        name: unpack(((name, width),), word >> SIGNATURE_OFFSETS[name], _SIGNED)[name]
        for name, width in SIGNATURE_FIELDS
    }
    return {name: values[name] for name in values if name in SIGNATURE_USES[CollectiveKind(values["kind"])]}


def disagreement(own: int, other: int) -> str | None:
    """Return the lowest field in which two signatures do not go together; None if they do.

    They go together if they are the same; but SEND with RECEIVE, and not with itself.
    """
    own_fields, other_fields = signature_fields(own), signature_fields(other)
    kind = CollectiveKind(own_fields["kind"])
    if OTHER_SIDE.get(kind, kind) != other_fields["kind"]:
        return "kind"
    return next((name for name in own_fields if name != "kind" and own_fields[name] != other_fields[name]), None)


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


assert all(SIGNATURE_OFFSETS[name] + width <= SIGNATURE_BITS for name, width in SIGNATURE_FIELDS)

"""Instruction of the collective engine."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa.access import Storage
from neuroncore_rtl.spec.isa.collective.agreement import SIGNATURE_USES
from neuroncore_rtl.spec.isa.collective.kind import (
    BLOCKS_OF_DST,
    BLOCKS_OF_SRC,
    CHUNK_GRANULES,
    REDUCTION_KINDS,
    ROOTED,
    CollectiveKind,
    CollectiveType,
    ReduceOp,
    element_bytes,
    uses_dst,
    uses_src,
)
from neuroncore_rtl.spec.isa.collective.layout import COLLECTIVE, COLLECTIVE_FIELDS, COLLECTIVE_SIGNED
from neuroncore_rtl.spec.isa.collective.rules import collective_violation
from neuroncore_rtl.spec.isa.engine import Engine
from neuroncore_rtl.spec.isa.instruction import Context, Instruction
from neuroncore_rtl.spec.isa.region import Region
from neuroncore_rtl.spec.isa.rule import Broken

__all__ = ["Collective", "Group"]


@dataclass(frozen=True)
class Group:
    """Group of cores.

    Arguments:
        base: core of rank 0.
        stride: distance in cores from one rank to the next; may be negative, not 0.
        ranks: number of ranks, 2 to `MAX_RANKS`.
    """

    base: int
    stride: int
    ranks: int

    @property
    def cores(self) -> tuple[int, ...]:
        """Core of each rank."""
        return tuple(self.base + rank * self.stride for rank in range(self.ranks))

    def __str__(self) -> str:
        step = "" if abs(self.stride) == 1 else f", every {abs(self.stride)}"
        return f"{self.ranks} cores from {self.cores[0]} to {self.cores[-1]}{step}"


@dataclass(frozen=True, kw_only=True)
class Collective(Instruction):
    """Collective of a group.

    Arguments:
        kind: operation of the group.
        group: cores of the group.
        rank: rank of the executing core.
        count: elements of a block.
        dtype: format of the elements.
        src, dst: byte addresses in the core's HBM, multiples of 64.
        pitch: bytes from one block to the next, if there are several; a multiple of 64.
        op: operation of a reduction.
        root: rank that broadcasts; for SEND and RECEIVE the other rank.
        chunk: granules of a segment, 1 to `CHUNK_GRANULES`.
        narrow: partial results of BF16 are sent as BF16, rounded to nearest even at every rank.
        stochastic: the last rounding to BF16 is by (seed, stream) and the element's number in the vector (for
            REDUCE_SCATTER: in the block), not to nearest even.
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

    layout = COLLECTIVE_FIELDS
    signed = COLLECTIVE_SIGNED
    named_by = "kind", CollectiveKind
    engine: ClassVar[Engine] = Engine.COLLECTIVE
    in_turn: ClassVar[bool] = False

    opcode: ClassVar[int] = COLLECTIVE

    @property
    def name(self) -> str:
        """Name of the kind of collective."""
        return self.kind.name

    @property
    def core(self) -> int:
        """Executing core."""
        return self.group.base + self.rank * self.group.stride

    def fields(self, config: Config | None = None) -> dict[str, int]:
        """Return the value of every field."""
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

    @classmethod
    def decode(cls, values: dict[str, int], config: Config | None = None) -> Self:
        """Return the instruction; unused op and dtype fields with an unknown code have their default."""
        if values["opcode"] != COLLECTIVE:
            raise ValueError(f"opcode must be {COLLECTIVE}, not {values['opcode']}")
        kind = CollectiveKind(values["kind"])
        unused = {name for name in ("op", "dtype") if name not in SIGNATURE_USES[kind] and values[name] == 3}
        values = values | dict.fromkeys(unused, 0)
        return cls(
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

    @classmethod
    def violation(cls, engine: Engine, values: dict[str, int], context: Context) -> Broken | None:
        """Return the lowest broken rule with a message, or None."""
        return collective_violation(values, context.core, context.config.cores)

    @classmethod
    def unused(cls, values: dict[str, int]) -> frozenset[str]:
        """Return the unused fields."""
        kind = CollectiveKind(values["kind"])
        rounds = kind in REDUCTION_KINDS and values["stochastic"]
        meaningful = SIGNATURE_USES[kind] | {"opcode", "rank"}
        meaningful |= {"root"} if kind in ROOTED else set()
        meaningful |= {"chunk"} if kind == CollectiveKind.BROADCAST else set()
        meaningful |= {"src_address"} if uses_src(values) else set()
        meaningful |= {"dst_address"} if uses_dst(values) else set()
        meaningful |= {"pitch"} if kind in BLOCKS_OF_SRC | BLOCKS_OF_DST else set()
        meaningful |= {"seed", "stream"} if rounds else set()
        return frozenset(name for name, _ in COLLECTIVE_FIELDS) - meaningful

    @cached_property
    def reads(self) -> tuple[Region, ...]:
        """Region of src, if this rank reads it."""
        return (self._region("src", self.src, BLOCKS_OF_SRC),) * uses_src(self._rooted)

    @cached_property
    def writes(self) -> tuple[Region, ...]:
        """Region of dst, if this rank writes it."""
        return (self._region("dst", self.dst, BLOCKS_OF_DST),) * uses_dst(self._rooted)

    @property
    def _rooted(self) -> dict[str, int]:
        return {"kind": int(self.kind), "rank": self.rank, "root": self.root}

    def _region(self, name: str, address: int, several: frozenset[CollectiveKind]) -> Region:
        size = element_bytes(self.dtype)
        counts = (self.group.ranks if self.kind in several else 1, self.pitch), (self.count, size)
        return Region(name, Storage.HBM, 0, 1, address, size, tuple((n, step) for n, step in counts if n > 1))

    def may_overwrite(self, written: Region, other: Region) -> bool:
        """Return whether dst may be the same block as src."""
        own = self.rank * self.pitch
        same = {
            CollectiveKind.ALL_REDUCE: self.dst == self.src,
            CollectiveKind.BROADCAST: self.dst == self.src,
            CollectiveKind.REDUCE_SCATTER: self.dst == self.src + own,
            CollectiveKind.ALL_GATHER: self.src == self.dst + own,
        }
        return same.get(self.kind, False)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of elements of a block."""
        return (self.count,)

    @property
    def summary(self) -> str:
        """Kind, type and size."""
        name = super().summary
        return name if self.kind == CollectiveKind.BARRIER else f"{name} {self.dtype.name.lower()} {_words(self._size)}"

    @property
    def details(self) -> dict[str, object]:
        """Further values for timelines."""
        told: dict[str, object] = {"kind": super().summary, "group": str(self.group), "rank": self.rank}
        if self.kind == CollectiveKind.BARRIER:
            return told
        told |= {"type": self.dtype.name.lower(), "bytes": self._size, "blocks": self._blocks}
        told |= {"elements of a block": self.count}
        if self.kind in REDUCTION_KINDS:
            told["op"] = self.op.name.lower()
        if self.kind in ROOTED:
            told["root"] = self.root
        if self.dtype == CollectiveType.BF16 and self.kind in REDUCTION_KINDS:
            told |= {"narrow": self.narrow, "rounding": "stochastic" if self.stochastic else "to nearest even"}
        return told

    @property
    def _blocks(self) -> int:
        return self.group.ranks if self.kind in BLOCKS_OF_SRC | BLOCKS_OF_DST else 1

    @property
    def _size(self) -> int:
        return self._blocks * self.count * element_bytes(self.dtype)


def _words(size: int) -> str:
    for unit, one in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= one and size % (one // 4) == 0:
            return f"{size / one:g} {unit}"
    return f"{size:,} bytes"

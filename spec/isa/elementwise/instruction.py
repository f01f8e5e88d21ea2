"""Instruction of the vector and the scalar engine."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, Self

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import NARROW_FLOATS, format_of
from neuroncore_rtl.spec.isa.access import ACCESS_FIELDS, DIMENSIONS, POINTER_FIELDS, Access, Pointer, Storage
from neuroncore_rtl.spec.isa.alu import AluOp
from neuroncore_rtl.spec.isa.elementwise.index import Index
from neuroncore_rtl.spec.isa.elementwise.layout import ACCESSES, ELEMENTWISE_FIELDS, ELEMENTWISE_SIGNED
from neuroncore_rtl.spec.isa.elementwise.opcode import OPCODES, SCALAR_OPCODES, STOCHASTIC, Opcode
from neuroncore_rtl.spec.isa.elementwise.operands import counts_of, unused, uses
from neuroncore_rtl.spec.isa.elementwise.rules import elementwise_violation
from neuroncore_rtl.spec.isa.engine import Engine
from neuroncore_rtl.spec.isa.fields import pack, unpack
from neuroncore_rtl.spec.isa.instruction import Context, Instruction, Move
from neuroncore_rtl.spec.isa.region import Region
from neuroncore_rtl.spec.isa.rule import Broken

__all__ = ["Elementwise"]

_FLAGS = ("reverse0", "reverse1", "negate", "keep", "sum_continue", "sum_store", "stochastic", "overlap")
_NUMBERS = ("partitions", "axes", "function", "alpha", "seed", "stream")
_OWN_VALUES = ("opcode", "op0", "op1", *_FLAGS, *_NUMBERS)
_NO_VALUES = {name: int(name.startswith("count")) for name, _ in ELEMENTWISE_FIELDS}
_INNERMOST_LAST = tuple(reversed(range(DIMENSIONS)))


@dataclass(frozen=True, kw_only=True)
class Elementwise(Instruction):
    """Instruction of the vector or the scalar engine.

    Arguments:
        opcode: operation.
        partitions: number of partitions, from the first one of each operand on.
        shape: counts of the free dimensions, outermost first, of a, and of dst where it is written element by element.
        dst: destination.
        a, b: sources; for TENSOR_SCALAR_REDUCE and ACTIVATE b is the destination of the reduction, one
            element per partition.
        op0, op1, reverse0, reverse1, axes, negate, keep: see `Opcode`.
        s0, s1: scalars: an int is a 32-bit word of the instruction's arithmetic.
        function, alpha: code and FP32 parameter of ACTIVATE's function.
        sum_continue: ACTIVATE adds to the running sums of the partitions instead of starting them at +0.
        sum_store: ACTIVATE stores the running sums at b.
        stochastic: round dst's cast stochastically, by seed, stream and index.
        seed, stream: 32 bits each.
        index: numbers of the elements, for random words, IOTA and AFFINE_SELECT; see `Index`.
        overlap: reads may start while earlier instructions still write; the instruction must not read their results.
    """

    opcode: Opcode
    partitions: int
    shape: tuple[int, ...]
    dst: Access
    a: Access | None = None
    b: Access | None = None
    op0: AluOp = AluOp.BYPASS
    op1: AluOp = AluOp.BYPASS
    reverse0: bool = False
    reverse1: bool = False
    s0: int | Pointer = 0
    s1: int | Pointer = 0
    axes: int = 0
    negate: bool = False
    keep: bool = False
    function: int = 0
    alpha: int = 0
    sum_continue: bool = False
    sum_store: bool = False
    stochastic: bool = False
    seed: int = 0
    stream: int = 0
    index: Index = Index()
    overlap: bool = False

    layout = ELEMENTWISE_FIELDS
    signed = ELEMENTWISE_SIGNED
    named_by = "opcode", Opcode

    @property
    def sizes(self) -> tuple[int, ...]:
        """Partitions, then the shape."""
        return self.partitions, *self.shape

    @property
    def engine(self) -> Engine:
        """Engine that executes the instruction."""
        return Engine.SCALAR if self.opcode in SCALAR_OPCODES else Engine.VECTOR

    @property
    def name(self) -> str:
        """Name of the opcode."""
        return self.opcode.name

    @property
    def in_turn(self) -> bool:
        """True unless the instruction may overlap earlier instructions."""
        return not self.overlap

    @property
    def continues(self) -> bool:
        """True if the instruction adds to running sums of an earlier instruction."""
        return self.opcode == Opcode.ACTIVATE and self.sum_continue

    def moved(self, place: Move) -> Self:
        """Return a copy with other addresses on chip."""
        parts = {name: getattr(self, name) for name in (*ACCESSES, "s0", "s1")}
        return self._moved(place, **{
            name: part.at(place(getattr(part, "storage", Storage.SBUF), part.address))
            for name, part in parts.items()
            if isinstance(part, Access | Pointer)
        })  # fmt: skip

    def drawn(self, stream: int) -> Self:
        """Return a copy that rounds stochastically if dst is a narrow float, with row-major numbers of dst's elements.

        One that draws random words already remains as it is.
        """
        if self.opcode not in STOCHASTIC - {Opcode.DROPOUT} or self.stochastic or self.dst.format not in NARROW_FLOATS:
            return self
        kept = counts_of(self._count_fields, "dst")[: len(self.shape)]  # innermost first
        steps = tuple(prod(kept[:d]) if n > 1 else 0 for d, n in enumerate(kept))
        index = Index(partition=prod(kept), steps=steps[::-1])
        return self._with(stochastic=True, stream=stream, index=index)

    def fields(self, config: Config) -> dict[str, int]:
        """Return the value of every field."""
        if not 1 <= len(self.shape) <= DIMENSIONS:
            raise ValueError(f"shape must have 1 to {DIMENSIONS} dimensions, not {self.shape!r}")
        values = _NO_VALUES.copy()
        for name in _OWN_VALUES:
            values[name] = int(getattr(self, name))
        for d, count in enumerate(reversed(self.shape)):
            values[f"count{d}"] = count
        for name in ACCESSES:
            access = getattr(self, name)
            if access is not None:
                for field, value in self._access(name, access, config).items():
                    values[f"{name}_{field}"] = value
        for number, scalar in enumerate((self.s0, self.s1)):
            pointer = isinstance(scalar, Pointer)
            values[f"pointer{number}"] = int(pointer)
            where = f"s{number}"
            values[f"scalar{number}"] = (
                pack(POINTER_FIELDS, _pointer(where, scalar, config), where) if pointer else scalar & 0xFFFF_FFFF
            )
        values |= {"index": self.index.base, "index_partition": self.index.partition}
        if len(self.index.steps) not in (0, len(self.shape)):
            raise ValueError(
                f"index.steps must have one entry for each of {len(self.shape)} dimensions, not {self.index.steps!r}"
            )
        values |= {f"index_step{d}": step for d, step in enumerate(reversed(self.index.steps))}
        return values

    def _access(self, name: str, access: Access, config: Config) -> dict[str, int]:
        if len(access.steps) != len(self.shape):
            raise ValueError(
                f"{name}.steps must have one entry for each of {len(self.shape)} dimensions, not {access.steps!r}"
            )
        steps = {f"step{d}": step for d, step in enumerate(reversed(access.steps))}
        return _pointer(name, access, config) | {"storage": int(access.storage)} | steps

    @classmethod
    def decode(cls, values: dict[str, int], config: Config) -> Self:
        """Return the instruction, with four dimensions."""
        opcode = Opcode(values["opcode"])
        used = uses(values)
        needed = {"dst": True, "a": "a" in used, "b": bool(used & {"b", "result"})}
        parts: dict[str, Any] = {name: AluOp(values[name]) for name in ("op0", "op1") if name in used}
        parts |= {f"s{number}": _scalar_of(values, number, config) for number in (0, 1) if f"s{number}" in used}
        parts |= {name: _access_of(values, name, config) if used else None for name, used in needed.items()}
        parts |= {name: bool(values[name]) for name in _FLAGS}
        parts |= {name: values[name] for name in _NUMBERS}
        return cls(
            opcode=opcode,
            shape=tuple(values[f"count{d}"] for d in _INNERMOST_LAST),
            index=Index(
                base=values["index"],
                partition=values["index_partition"],
                steps=tuple(values[f"index_step{d}"] for d in _INNERMOST_LAST),
            ),
            **parts,
        )

    @classmethod
    def violation(cls, engine: Engine, values: dict[str, int], context: Context) -> Broken | None:
        """Return the lowest broken rule with a message, or None."""
        return elementwise_violation(values, context.config, OPCODES[engine])

    @classmethod
    def unused(cls, values: dict[str, int]) -> frozenset[str]:
        """Return the unused fields."""
        return unused(values)

    def shortened(self) -> Self:
        """Return the instruction without outer dimensions of one element and step 0."""
        short = self
        while len(short.shape) > 1 and short.shape[0] == 1:
            parts = {name: getattr(short, name) for name in (*ACCESSES, "index")}
            parts = {name: part.without(0) for name, part in parts.items() if part is not None}
            if None in parts.values():
                break
            short = replace(short, shape=short.shape[1:], **parts)
        if not any((short.index.base, short.index.partition, *short.index.steps)):
            short = replace(short, index=Index())
        return short

    @cached_property
    def reads(self) -> tuple[Region, ...]:
        """Regions of the sources, and of s0 and s1 if they are in memory."""
        used = uses(self._count_fields)
        tensors = [self._region(name) for name in ("a", "b") if name in used]
        scalars = {name: getattr(self, name) for name in ("s0", "s1") if name in used}
        return *tensors, *(
            Region(name, Storage.SBUF, at.partition, self.partitions, at.address, at.format.bits // 8, ())
            for name, at in scalars.items()
            if isinstance(at, Pointer)
        )

    @cached_property
    def writes(self) -> tuple[Region, ...]:
        """Regions of dst, and of a reduction's result at b."""
        result = ("b",) * ("result" in uses(self._count_fields))
        return tuple(self._region(name) for name in ("dst", *result))

    @cached_property
    def _count_fields(self) -> dict[str, int]:
        counts = dict.fromkeys((f"count{d}" for d in range(DIMENSIONS)), 1)
        counts |= {f"count{d}": count for d, count in enumerate(reversed(self.shape))}
        return counts | {"opcode": int(self.opcode), "axes": self.axes, "sum_store": int(self.sum_store)}

    def _region(self, name: str) -> Region:
        access: Access = getattr(self, name)
        size = access.format.bits // 8
        counts = reversed(counts_of(self._count_fields, name)[: len(access.steps)])
        dimensions = tuple((n, step * size) for n, step in zip(counts, access.steps, strict=True) if n > 1)
        return Region(name, access.storage, access.partition, self.partitions, access.address, size, dimensions)

    def may_overwrite(self, written: Region, other: Region) -> bool:
        """Return whether `written` may overlap `other`; always if `other` is a scalar, which is read first."""
        return other.name in ("s0", "s1") or super().may_overwrite(written, other)


def _pointer(name: str, pointer: Pointer | Access, config: Config) -> dict[str, int]:
    quadrant, rest = divmod(pointer.partition, config.quadrant)
    if rest or not 0 <= quadrant < 4:
        starts = ", ".join(str(q * config.quadrant) for q in range(config.partitions // config.quadrant))
        raise ValueError(f"{name}.partition must be one of {starts}, not {pointer.partition!r}")
    return {"address": pointer.address, "quadrant": quadrant, "dtype": pointer.format.code}


def _scalar_of(values: dict[str, int], number: int, config: Config) -> int | Pointer:
    word = values[f"scalar{number}"]
    if not values[f"pointer{number}"]:
        return word
    own = unpack(POINTER_FIELDS, word)
    return Pointer(format=format_of(own["dtype"]), address=own["address"], partition=own["quadrant"] * config.quadrant)


def _access_of(values: dict[str, int], name: str, config: Config) -> Access:
    own = {field: values[f"{name}_{field}"] for field, _ in ACCESS_FIELDS}
    return Access(
        format=format_of(own["dtype"]),
        address=own["address"],
        partition=own["quadrant"] * config.quadrant,
        storage=Storage(own["storage"]),
        steps=tuple(own[f"step{d}"] for d in _INNERMOST_LAST),
    )

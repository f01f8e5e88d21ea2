"""Instructions of the vector and the scalar engine on tiles of one shape, and a registry of functions made of them.

An operand is a tile on chip or a number; a result is a new tile. Arithmetic is FP32 with one rounding to the result's
type, or exact modulo 2^32 for integers.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import prod
from typing import Concatenate

from neuroncore_rtl.kernels.program import Program, Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.spec.formats import FP32, INT32, Format, IntFormat
from neuroncore_rtl.spec.functions import FUNCTIONS, TRIGONOMETRIC
from neuroncore_rtl.spec.isa import AluOp, Elementwise, Engine, Opcode, Storage

__all__ = ["ElementKind", "LaneOperand", "Lanes", "MissingUnit", "Registry", "with_sign", "wrap"]

LaneOperand = Tensor | float | int
"""A tile on chip, or a number."""
LaneTarget = Tensor | Format
"""A tile on chip, or the format of a new one."""

_UNITS = {
    AluOp.DIVIDE: "vector_division", AluOp.FMOD: "vector_division", AluOp.POWER: "vector_power",
}  # fmt: skip
_TRIGONOMETRY = frozenset(FUNCTIONS[name].code for name in TRIGONOMETRIC)

_DIVISIBLE = (
    Opcode.TENSOR_TENSOR, Opcode.TENSOR_SCALAR, Opcode.SCALAR_TENSOR_TENSOR, Opcode.TENSOR_COPY, Opcode.ACTIVATE,
)  # fmt: skip
_PART = 256
"""Elements of a part of a row."""


class MissingUnit(ValueError):
    """A machine without the unit for an operation; `rule` is the sentence, without a source line."""

    def __init__(self, operation: str, unit: str):
        self.rule = f"a machine for {operation} must have the unit, {unit.upper()}=1"
        super().__init__(self.rule)


@dataclass(frozen=True)
class ElementKind:
    """Kind of elements: their format; booleans are bytes of 0 or 1."""

    format: Format
    is_boolean: bool = False

    @property
    def is_float(self) -> bool:
        """Whether elements are floats."""
        return self.format.is_float

    @property
    def is_integer(self) -> bool:
        """Whether this is an integer kind other than boolean."""
        return not (self.is_float or self.is_boolean)

    @property
    def is_signed(self) -> bool:
        """Whether elements are integers, some of them negative."""
        return isinstance(self.format, IntFormat) and self.format.min < 0

    @property
    def bits(self) -> int:
        """Bits of an element in memory."""
        return self.format.bits


@dataclass
class Lanes:
    """Emitter of instructions on tiles of one shape.

    Arguments:
        program: where instructions are appended.
        shape: shape of the tiles in a partition.
        partitions: their number of partitions.
        busy: cycles of each engine so far.
        out: format of an FP32 result in its place.
        alone: whether no other tile keeps the engines busy meanwhile.
        in_psum: whether the result is in PSUM: an instruction reads an operand of each memory in a cycle.
    """

    program: Program
    shape: tuple[int, ...]
    partitions: int
    busy: Counter[Engine] = field(default_factory=Counter)
    out: Format | None = None
    alone: bool = False
    in_psum: bool = False

    @property
    def scalar_is_free(self) -> bool:
        """Whether the scalar engine has fewer elements to process than the vector engine."""
        scalar, vector = (self.busy[engine] for engine in (Engine.SCALAR, Engine.VECTOR))
        return scalar < vector

    def append(self, instruction: Elementwise) -> None:
        """Append an instruction and count its cycles: two operands in SBUF take two cycles an element.

        Raises MissingUnit if the machine does not have the unit for it.
        """
        self._check_unit(instruction)
        pair = instruction.opcode in (Opcode.TENSOR_TENSOR, Opcode.SCALAR_TENSOR_TENSOR)
        both = pair and all(one is not None and one.storage == Storage.SBUF for one in (instruction.a, instruction.b))
        divides = AluOp.DIVIDE in (instruction.op0, instruction.op1)
        self.busy[instruction.engine] += prod(instruction.shape) * (8 if divides else 2 if both else 1)
        for part in self._parts(instruction):
            self.program.append(part)

    def _check_unit(self, instruction: Elementwise) -> None:
        config = self.program.config
        for op in (instruction.op0, instruction.op1):
            if op in _UNITS and not getattr(config, _UNITS[op]):
                raise MissingUnit(AluOp(op).name, _UNITS[op])
        if instruction.opcode == Opcode.ACTIVATE and instruction.function in _TRIGONOMETRY:
            if not config.scalar_trigonometry:
                raise MissingUnit("sine and cosine", "scalar_trigonometry")

    def _parts(self, instruction: Elementwise) -> Iterator[Elementwise]:
        """Yield an instruction in parts of a row if its tile is the only one, so that engines overlap."""
        *outer, width = instruction.shape
        if not self.alone or instruction.opcode not in _DIVISIBLE or instruction.sum_store or width < 2 * _PART:
            yield instruction
            return
        for part in cut(0, width, _PART):
            sides = {
                name: replace(side, address=side.address + part.start * side.steps[-1] * side.format.bits // 8)
                for name in ("dst", "a", "b")
                if (side := getattr(instruction, name)) is not None
            }
            yield replace(instruction, shape=(*outer, length(part)), **sides)

    def new(self, fmt: Format = FP32, name: str = "scratch") -> Tensor:
        """Return a new tile."""
        return self.program.space.sbuf(name, fmt, self.shape, self.partitions)

    def result(self, fmt: Format, name: str) -> Tensor:
        """Return a new tile for the result of the operation."""
        if self.in_psum:
            return self.program.space.psum(name, fmt, self.shape, self.partitions)
        return self.new(self.out or fmt, name)

    def tile(self, operand: LaneOperand, fmt: Format) -> Tensor:
        """Return an operand as a tile; a number is written to a new one."""
        if isinstance(operand, Tensor):
            return operand
        tile = self.new(fmt, "number")
        self.append(isa.memset(tile, operand))
        return tile

    def _target(self, dst: LaneTarget) -> Tensor:
        return dst if isinstance(dst, Tensor) else self.new(dst)

    def apply(
        self, dst: LaneTarget, a: LaneOperand, op: AluOp, b: LaneOperand = 0, fmt: Format | None = None
    ) -> Tensor:
        """Append dst = op(a, b) and return dst; `fmt` is the format of a tile for two numbers."""
        dst = self._target(dst)
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            self.append(isa.tensor_tensor(dst, a, b, op))
        elif isinstance(b, Tensor):
            self.append(isa.tensor_scalar(dst, b, a, op, reverse0=True))
        else:
            self.append(isa.tensor_scalar(dst, self.tile(a, fmt or dst.format), b, op))
        return dst

    def chain(
        self, dst: LaneTarget, a: LaneOperand, op0: AluOp, s0: float, op1: AluOp = AluOp.BYPASS, s1: float = 0
    ) -> Tensor:
        """Append dst = op1(op0(a, s0), s1) and return dst."""
        dst = self._target(dst)
        self.append(isa.tensor_scalar(dst, self.tile(a, dst.format), s0, op0, s1, op1))
        return dst

    def function(self, dst: LaneTarget, a: LaneOperand, name: str, scale: float = 1.0) -> Tensor:
        """Append an instruction of the scalar engine, dst = name(scale * a), and return dst."""
        dst = self._target(dst)
        self.append(isa.activation(dst, self.tile(a, FP32), name, scale=scale))
        return dst

    def choose(self, dst: LaneTarget, condition: Tensor, yes: LaneOperand, no: LaneOperand) -> Tensor:
        """Append dst = yes where the condition is not 0, else no, and return dst."""
        dst = self._target(dst)
        if not isinstance(no, Tensor):
            self.append(isa.select(dst, condition, self.tile(yes, dst.format), no))
            return dst
        self.append(isa.tensor_copy(dst, no))
        self.append(isa.tensor_copy_predicated(dst, condition, self.tile(yes, dst.format)))
        return dst

    def wide(self, a: LaneOperand, fmt: Format = FP32) -> Tensor:
        """Return an operand as a new tile of the lanes' whole shape, cast to the format."""
        tile = self.new(fmt)
        self.append(isa.tensor_copy(tile, self.tile(a, fmt)))
        return tile


def wrap(lanes: Lanes, dst: Tensor, value: Tensor) -> None:
    """Append dst = value modulo 2^n, for integers of n bits, fewer than 32."""
    assert isinstance(dst.format, IntFormat)
    bits = dst.format.bits
    half, mask = 1 << (bits - 1), (1 << bits) - 1
    if dst.format.min == 0:
        lanes.apply(dst, value, AluOp.BITWISE_AND, mask)
    else:
        low = lanes.chain(INT32, value, AluOp.ADD, half, AluOp.BITWISE_AND, mask)
        lanes.apply(dst, low, AluOp.SUBTRACT, half)


def with_sign(lanes: Lanes, dst: Tensor, magnitude: Tensor, value: Tensor) -> None:
    """Append dst = magnitude with the sign of value, both FP32."""
    sign = lanes.apply(INT32, value.bitcast(INT32), AluOp.BITWISE_AND, -(1 << 31))
    both = lanes.new()
    lanes.apply(both.bitcast(INT32), magnitude.bitcast(INT32), AluOp.BITWISE_OR, sign)
    lanes.append(isa.tensor_copy(dst, both))


LaneFunction = Callable[Concatenate[Lanes, Tensor, ElementKind, ElementKind, ...], None]
"""Of lanes, destination, kinds of the result and of the first operand, operands."""


class Registry(dict[str, LaneFunction]):
    """Functions by name."""

    def named(self, name: str) -> Callable[[LaneFunction], LaneFunction]:
        """Return a decorator that registers a function."""

        def register(function: LaneFunction) -> LaneFunction:
            self[name] = function
            return function

        return register

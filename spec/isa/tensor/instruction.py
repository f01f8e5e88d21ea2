"""Instructions of the tensor engine: load weights, and stream a matrix through them."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Self, cast

from neuroncore_rtl.spec.config import LOAD_COLUMNS, Config
from neuroncore_rtl.spec.formats import INT8, Format, format_of
from neuroncore_rtl.spec.isa.access import Storage
from neuroncore_rtl.spec.isa.engine import LANES, Engine
from neuroncore_rtl.spec.isa.instruction import Context, Instruction, Move
from neuroncore_rtl.spec.isa.region import Region
from neuroncore_rtl.spec.isa.rule import Broken
from neuroncore_rtl.spec.isa.tensor.layout import LOAD_STATIONARY, MULTIPLY_MOVING, TENSOR_FIELDS
from neuroncore_rtl.spec.isa.tensor.rules import tensor_violation

__all__ = ["LoadStationary", "MultiplyMoving", "TensorInstruction"]

WORD = 4
"""Bytes of a word of PSUM."""


@dataclass(frozen=True, kw_only=True)
class TensorInstruction(Instruction):
    """Common part of both tensor instructions.

    Arguments:
        format: number format in memory of the operand, stationary or moving.
        half: half of an FP32 significand: 0 the upper, 1 the lower 12 bits; 0 for other formats.
        k: number of rows of the operand, stationary or moving; other rows of the array contribute nothing.
        address: byte address of the first element in every partition.
        row: first row of the array, and first partition of SBUF; the start of a quadrant.
        column: first column of the array, and first partition of PSUM; the start of a quadrant, and a multiple of
            `LOAD_COLUMNS`.
    """

    format: Format
    half: int = 0
    k: int
    address: int
    row: int = 0
    column: int = 0

    layout = TENSOR_FIELDS
    engine: ClassVar[Engine] = Engine.TENSOR
    in_turn: ClassVar[bool] = False

    opcode: ClassVar[int]

    def moved(self, place: Move) -> Self:
        """Return a copy with other addresses on chip."""
        return self._moved(place, address=place(Storage.SBUF, self.address))

    def fields(self, config: Config | None = None) -> dict[str, int]:
        """Return the value of every field."""
        values = {**vars(self), "opcode": self.opcode, "dtype": self.format.code}
        return {name: int(values.get(name, 0)) for name, _ in TENSOR_FIELDS}

    @classmethod
    def decode(cls, values: dict[str, int], config: Config | None = None) -> Self:
        """Return the instruction."""
        kinds = {kind.opcode: kind for kind in (LoadStationary, MultiplyMoving)}
        if values["opcode"] not in kinds:
            raise ValueError(f"opcode must be {LOAD_STATIONARY} or {MULTIPLY_MOVING}, not {values['opcode']}")
        kind: Any = kinds[values["opcode"]]
        own = {f.name: cast("type[int]", f.type)(values[f.name]) for f in fields(kind) if f.name != "format"}
        return kind(format=format_of(values["dtype"]), **own)

    @classmethod
    def violation(cls, engine: Engine, values: dict[str, int], context: Context) -> Broken | None:
        """Return the lowest broken rule with a message, or None."""
        return tensor_violation(values, context.config, context.loaded)

    @classmethod
    def unused(cls, values: dict[str, int]) -> frozenset[str]:
        """Return the unused fields."""
        own = {"accumulate", "transpose", "n", "stride", "psum"}
        return frozenset(own) if values["opcode"] == LOAD_STATIONARY else frozenset()


@dataclass(frozen=True, kw_only=True)
class LoadStationary(TensorInstruction):
    """Load `k` rows x `m` columns of weights into the shadow registers; the next MultiplyMoving activates them.

    The weights replace the whole stationary operand. The columns of a partition are contiguous in memory, and the first
    one is aligned to `LOAD_COLUMNS` elements. Columns from `m` to the next multiple of `LOAD_COLUMNS` are read too.
    """

    m: int

    name: ClassVar[str] = "LOAD_STATIONARY"
    opcode = LOAD_STATIONARY
    lane: ClassVar[int] = 1
    writes: ClassVar[tuple[Region, ...]] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rows and columns of the operand."""
        return self.k, self.m

    @cached_property
    def reads(self) -> tuple[Region, ...]:
        """Region of the weights in SBUF."""
        size = self.format.bits // 8
        columns = -(-self.m // LOAD_COLUMNS) * LOAD_COLUMNS
        return (Region("stationary", Storage.SBUF, self.row, self.k, self.address, size, ((columns, size),)),)

    def after(self, context: Context) -> Context:
        """Return the context with the loaded columns."""
        columns = range(self.column, self.column + self.m)
        return Context(context.config, context.core, loaded=(columns, self.format is INT8))


@dataclass(frozen=True, kw_only=True)
class MultiplyMoving(TensorInstruction):
    """Stream `n` columns of `k` elements through the array into PSUM: result[m, n] from stationary[k, m], moving[k, n].

    Only rows that are in both this instruction and the load contribute.

    Arguments:
        m: columns of the array, and PSUM partitions, that are written.
        n: moving columns.
        stride: bytes from one element of a partition to the next.
        psum: first PSUM word, bank * psum_words + word; the n words are in one bank.
        accumulate: add to PSUM instead of overwriting it.
        transpose: the moving operand is an identity matrix: its zeros contribute nothing, so the stationary elements
            pass bit for bit, including infinities and the sign of zeros.
    """

    m: int
    n: int
    stride: int
    psum: int
    accumulate: bool = False
    transpose: bool = False

    name: ClassVar[str] = "MULTIPLY_MOVING"
    opcode = MULTIPLY_MOVING
    continues: ClassVar[bool] = True

    def moved(self, place: Move) -> Self:
        """Return a copy with other addresses on chip."""
        psum = place(Storage.PSUM, WORD * self.psum) // WORD
        return self._moved(place, address=place(Storage.SBUF, self.address), psum=psum)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rows of the result, products in each sum, columns of the result."""
        return self.m, self.k, self.n

    @property
    def columns(self) -> int:
        """Number of moving columns."""
        return self.n

    @property
    def integer(self) -> bool:
        """True if the result in PSUM is INT32, else FP32."""
        return self.format is INT8

    @cached_property
    def reads(self) -> tuple[Region, ...]:
        """Region of the moving operand in SBUF."""
        dimensions = ((self.n, self.stride),) if self.n > 1 else ()
        return (Region("moving", Storage.SBUF, self.row, self.k, self.address, self.format.bits // 8, dimensions),)

    @cached_property
    def writes(self) -> tuple[Region, ...]:
        """Region of the result in PSUM."""
        dimensions = ((self.n, WORD),) if self.n > 1 else ()
        return (Region("psum", Storage.PSUM, self.column, self.m, WORD * self.psum, WORD, dimensions),)


assert LANES[Engine.TENSOR] == 1 + LoadStationary.lane

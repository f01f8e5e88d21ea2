"""The instructions of the tensor engine."""

from dataclasses import dataclass, fields
from typing import ClassVar

from neuroncore_rtl.spec.config import LOAD_COLUMNS, PSUM_BANKS, PSUM_WORDS, SBUF_BYTES, Config
from neuroncore_rtl.spec.formats import FP32, INT8, MATMUL_FORMATS, Format, format_of
from neuroncore_rtl.spec.isa.fields import Layout, pack, unpack, width_of
from neuroncore_rtl.spec.isa.legality import Rule

__all__ = [
    "LOAD_STATIONARY",
    "MULTIPLY_MOVING",
    "TENSOR_BITS",
    "TENSOR_FIELDS",
    "LoadStationary",
    "MultiplyMoving",
    "TensorInstruction",
    "tensor_fields",
    "tensor_violation",
]

LOAD_STATIONARY = 1
MULTIPLY_MOVING = 2

TENSOR_FIELDS: Layout = (
    ("opcode", 2),
    ("dtype", 4),
    ("half", 1),
    ("transpose", 1),
    ("accumulate", 1),
    ("k", 11),
    ("m", 11),
    ("n", 10),
    ("address", 18),
    ("stride", 16),
    ("psum", 12),
)
"""Name and width of each field of a tensor instruction, from the least significant bit up."""

TENSOR_BITS = width_of(TENSOR_FIELDS)
"""Width of a tensor instruction in bits."""


def _check(rule: str, holds: bool, value: object) -> None:
    if not holds:
        raise ValueError(f"{rule}, not {value!r}")


@dataclass(frozen=True, kw_only=True)
class _Tensor:
    """What both tensor instructions have.

    Arguments:
        format: format of the operand in memory.
        half: of FP32, which half of the significand: 0 the upper, 1 the lower 12 bits. 0 for other formats.
        k: rows that take part; the others are absent.
        address: byte address of the first element in every partition.
    """

    format: Format
    half: int = 0
    k: int
    address: int

    opcode: ClassVar[int]

    def check(self, config: Config) -> None:
        """Raise ValueError unless `config` can execute this."""
        names = ", ".join(f.name for f in MATMUL_FORMATS)
        _check(f"format must be one of {names}", self.format in MATMUL_FORMATS, self.format.name)
        _check("half must be 0, or for fp32 1", self.half == 0 or (self.half == 1 and self.format is FP32), self.half)
        _check(f"k must be between 1 and {config.rows}", 1 <= self.k <= config.rows, self.k)
        _check("address must be below 2**18", 0 <= self.address < 1 << 18, self.address)

    def encode(self) -> int:
        """Return the instruction word."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values |= {"opcode": self.opcode, "dtype": self.format.code}
        return pack(TENSOR_FIELDS, {name: int(values.get(name, 0)) for name, _ in TENSOR_FIELDS}, "tensor")


@dataclass(frozen=True, kw_only=True)
class LoadStationary(_Tensor):
    """Load `k` rows x `m` columns of weights into the shadow registers; the next MultiplyMoving makes them active.

    The columns of a partition are contiguous in memory, and the first one lies on a boundary of `LOAD_COLUMNS`
    elements. Columns from `m` to the next multiple of `LOAD_COLUMNS` are read too. Takes ceil(m / LOAD_COLUMNS) cycles.
    """

    m: int

    opcode = LOAD_STATIONARY

    def check(self, config: Config) -> None:
        """Raise ValueError unless `config` can execute this."""
        super().check(config)
        _check(f"m must be between 1 and {config.columns}", 1 <= self.m <= config.columns, self.m)
        step = LOAD_COLUMNS * self.format.bits // 8
        _check(f"address must be a multiple of {step} for {self.format.name}", self.address % step == 0, self.address)


@dataclass(frozen=True, kw_only=True)
class MultiplyMoving(_Tensor):
    """Stream `n` columns of `k` elements through the array into PSUM: result[m, n] from stationary[k, m], moving[k, n].

    Arguments:
        m: columns of the array, hence PSUM partitions, that are written.
        n: moving columns.
        stride: bytes from one element of a partition to the next.
        psum: first PSUM word, bank * PSUM_WORDS + word; the n words stay in one bank.
        accumulate: add to PSUM instead of overwriting it.
        transpose: the moving operand is an identity matrix: its zeros contribute nothing, so that the stationary
            elements pass bit for bit, infinities and the sign of zeros included.
    """

    m: int
    n: int
    stride: int
    psum: int
    accumulate: bool = False
    transpose: bool = False

    opcode = MULTIPLY_MOVING

    def check(self, config: Config) -> None:
        """Raise ValueError unless `config` can execute this."""
        super().check(config)
        _check(f"m must be between 1 and {config.columns}", 1 <= self.m <= config.columns, self.m)
        _check(f"n must be between 1 and {PSUM_WORDS}", 1 <= self.n <= PSUM_WORDS, self.n)
        size = self.format.bits // 8
        _check(f"address must be a multiple of {size} for {self.format.name}", self.address % size == 0, self.address)
        _check(f"stride must be a multiple of {size} below 2**16", self.stride % size == 0, self.stride)
        _check("stride must be a multiple of the element's size below 2**16", 0 <= self.stride < 1 << 16, self.stride)
        _check(f"psum must be below {PSUM_BANKS * PSUM_WORDS}", 0 <= self.psum < PSUM_BANKS * PSUM_WORDS, self.psum)
        end = self.psum % PSUM_WORDS + self.n
        _check(f"psum + n must stay within a bank of {PSUM_WORDS} words", end <= PSUM_WORDS, end)

    @property
    def integer(self) -> bool:
        """Whether PSUM accumulates INT32."""
        return self.format is INT8


TensorInstruction = LoadStationary | MultiplyMoving


def tensor_fields(word: int) -> dict[str, int]:
    """Return the value of every field of an instruction word."""
    return unpack(TENSOR_FIELDS, word)


def tensor_violation(
    values: dict[str, int], config: Config, loaded: tuple[int, bool] | None
) -> tuple[Rule, str] | None:
    """Return the lowest rule that an instruction breaks, and a message; None if it is legal.

    Arguments:
        values: of every field (:func:`tensor_fields`).
        config: the machine's parameters.
        loaded: columns that the LoadStationary before it filled, and whether they are INT8; None if there was none.
    """
    broken = sorted(_violations(values, config, loaded), key=lambda found: found[0])
    return broken[0] if broken else None


_CODES = {fmt.code for fmt in MATMUL_FORMATS}


def _violations(values: dict[str, int], config: Config, loaded: tuple[int, bool] | None):
    moving = values["opcode"] == MULTIPLY_MOVING
    if values["opcode"] not in (LOAD_STATIONARY, MULTIPLY_MOVING):
        yield Rule.OPCODE, f"opcode must be {LOAD_STATIONARY} or {MULTIPLY_MOVING}, not {values['opcode']}"
        return
    if values["dtype"] not in _CODES:
        names = ", ".join(fmt.name for fmt in MATMUL_FORMATS)
        yield Rule.FORMAT, f"format must be the code of one of {names}, not {values['dtype']}"
        return
    fmt = format_of(values["dtype"])
    size = fmt.bits // 8
    if values["half"] and fmt is not FP32:
        yield Rule.OPERATION, f"half must be 0, or for fp32 1, not {values['half']}"
    if not 1 <= values["m"] <= config.columns:
        yield Rule.SHAPE, f"m must be between 1 and {config.columns}, not {values['m']}"
    if not 1 <= values["k"] <= config.rows:
        yield Rule.PARTITIONS, f"k must be between 1 and {config.rows}, not {values['k']}"
    if moving:
        if not 1 <= values["n"] <= PSUM_WORDS:
            yield Rule.SHAPE, f"n must be between 1 and {PSUM_WORDS}, not {values['n']}"
        if values["address"] % size or values["stride"] % size:
            yield Rule.ALIGNMENT, f"address and stride must be multiples of {size} for {fmt.name}"
        end = values["address"] + (max(values["n"], 1) - 1) * values["stride"] + size
        if values["psum"] % PSUM_WORDS + values["n"] > PSUM_WORDS:
            yield Rule.RANGE, f"psum + n must stay within a bank of {PSUM_WORDS} words"
        if loaded is None:
            yield Rule.STATE, "a MultiplyMoving must come after a LoadStationary"
        elif values["m"] > loaded[0]:
            yield Rule.STATE, f"m must be at most {loaded[0]}, as was loaded, not {values['m']}"
        elif fmt is INT8 and not loaded[1]:
            yield Rule.STATE, "the stationary format must be int8 for int8"
    else:
        columns = -(-values["m"] // LOAD_COLUMNS) * LOAD_COLUMNS
        if values["address"] % (LOAD_COLUMNS * size):
            yield Rule.ALIGNMENT, f"address must be a multiple of {LOAD_COLUMNS * size} for {fmt.name}"
        end = values["address"] + columns * size
    if end > SBUF_BYTES:
        yield Rule.RANGE, f"bytes must lie from 0 to {SBUF_BYTES}, not to {end}"

"""Functions of elements as instructions of the vector and the scalar engine.

An operand is a tile on chip or a number; a result is a new tile. Arithmetic is FP32 with one rounding to the result's
type, or exact modulo 2^32 for integers; narrower integers wrap as in XLA.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, prod, sqrt
from typing import Concatenate

from neuroncore_rtl.frontends.xla.graph.types import ElementType
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.kernels.program import Program, Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.formats import FP32, INT32, UINT8, UINT32, Format, IntFormat
from neuroncore_rtl.spec.isa import AluOp, Elementwise, Engine, Opcode

__all__ = ["ACTIVATIONS", "FUNCTIONS", "Lanes", "Operand", "evaluate"]

Operand = Tensor | float | int
"""A tile on chip, or a number."""

_LARGEST = 2.0**23
"""From here on every FP32 number is an integer."""
_SIGN = -(1 << 31)


@dataclass
class Lanes:
    """Emitter of instructions on tiles of one shape.

    Arguments:
        program: where instructions are appended.
        shape: shape of the tiles in a partition.
        partitions: their number of partitions.
        busy: cycles of each engine so far.
    """

    program: Program
    shape: tuple[int, ...]
    partitions: int
    busy: Counter[Engine] = field(default_factory=Counter)

    @property
    def scalar_is_free(self) -> bool:
        """Whether the scalar engine has fewer elements to process than the vector engine."""
        return self.busy[Engine.SCALAR] + prod(self.shape) < self.busy[Engine.VECTOR] + prod(self.shape)

    def append(self, instruction: Elementwise) -> None:
        """Append an instruction and count its cycles: two operands in SBUF take two cycles an element."""
        both = instruction.b is not None and instruction.opcode in (Opcode.TENSOR_TENSOR, Opcode.SCALAR_TENSOR_TENSOR)
        divides = AluOp.DIVIDE in (instruction.op0, instruction.op1)
        self.busy[instruction.engine] += prod(instruction.shape) * (8 if divides else 2 if both else 1)
        self.program.append(instruction)

    def new(self, fmt: Format = FP32, name: str = "scratch") -> Tensor:
        """Return a new tile."""
        return self.program.space.sbuf(name, fmt, self.shape, self.partitions)

    def tile(self, operand: Operand, fmt: Format) -> Tensor:
        """Return an operand as a tile; a number is written to a new one."""
        if isinstance(operand, Tensor):
            return operand
        tile = self.new(fmt, "number")
        self.append(isa.memset(tile, operand))
        return tile

    def apply(self, dst: Tensor, a: Operand, op: AluOp, b: Operand = 0, fmt: Format | None = None) -> Tensor:
        """Append dst = op(a, b) and return dst; `fmt` is the format of a tile for two numbers."""
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            self.append(isa.tensor_tensor(dst, a, b, op))
        elif isinstance(b, Tensor):
            self.append(isa.tensor_scalar(dst, b, a, op, reverse0=True))
        else:
            self.append(isa.tensor_scalar(dst, self.tile(a, fmt or dst.format), b, op))
        return dst

    def chain(self, dst: Tensor, a: Operand, op0: AluOp, s0: float, op1: AluOp, s1: float) -> Tensor:
        """Append dst = op1(op0(a, s0), s1) and return dst."""
        self.append(isa.tensor_scalar(dst, self.tile(a, dst.format), s0, op0, s1, op1))
        return dst

    def function(self, dst: Tensor, a: Operand, name: str, scale: float = 1.0) -> Tensor:
        """Append an instruction of the scalar engine, dst = name(scale * a), and return dst."""
        self.append(isa.activation(dst, self.tile(a, FP32), name, scale=scale))
        return dst

    def choose(self, dst: Tensor, condition: Tensor, yes: Operand, no: Operand) -> Tensor:
        """Append dst = yes where the condition is not 0, else no, and return dst."""
        if not isinstance(no, Tensor):
            self.append(isa.select(dst, condition, self.tile(yes, dst.format), no))
            return dst
        self.append(isa.tensor_copy(dst, no))
        self.append(isa.tensor_copy_predicated(dst, condition, self.tile(yes, dst.format)))
        return dst


Function = Callable[Concatenate[Lanes, Tensor, ElementType, ElementType, ...], None]
FUNCTIONS: dict[str, Function] = {}
"""Functions by name: of lanes, destination, types of result and first operand, operands."""


def evaluate(lanes: Lanes, name: str, dst: Tensor, to: ElementType, of: ElementType, *operands: Operand) -> None:
    """Append dst = function of operands of type `of`; the result has type `to`.

    Raises:
        Refused: if the function does not have these types.
    """
    if name not in FUNCTIONS:
        raise Refused(f"functions must be of docs/jax.md's table, not {name}")
    FUNCTIONS[name](lanes, dst, to, of, *operands)


def _named(*names: str) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        FUNCTIONS.update(dict.fromkeys(names, function))
        return function

    return register


def _arithmetic(name: str, op: AluOp) -> None:
    """Register an operation that is one instruction for floats, and wraps for integers."""

    def function(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand, b: Operand) -> None:
        if to.is_boolean:
            lanes.apply(
                dst, a, {"add": AluOp.BITWISE_OR, "multiply": AluOp.BITWISE_AND}.get(name, AluOp.BITWISE_XOR), b
            )
        elif to.is_float or to.bits == 32:
            lanes.apply(dst, a, op, b)
        else:
            wrap(lanes, dst, lanes.apply(lanes.new(INT32), a, op, b))

    FUNCTIONS[name] = function


for _name, _op in (("add", AluOp.ADD), ("subtract", AluOp.SUBTRACT), ("multiply", AluOp.MULTIPLY)):
    _arithmetic(_name, _op)


def wrap(lanes: Lanes, dst: Tensor, value: Tensor) -> None:
    """Append dst = value modulo 2^n, for integers of n bits, fewer than 32."""
    assert isinstance(dst.format, IntFormat)
    bits = dst.format.bits
    half, mask = 1 << (bits - 1), (1 << bits) - 1
    if dst.format.min == 0:
        lanes.apply(dst, value, AluOp.BITWISE_AND, mask)
    else:
        low = lanes.chain(lanes.new(INT32), value, AluOp.ADD, half, AluOp.BITWISE_AND, mask)
        lanes.apply(dst, low, AluOp.SUBTRACT, half)


def _simple(name: str, op: AluOp) -> None:
    """Register an operation whose result of narrow operands is in their range."""

    def function(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand, b: Operand) -> None:
        lanes.apply(dst, a, op, b)

    FUNCTIONS[name] = function


for _name, _op in (
    ("maximum", AluOp.MAX), ("minimum", AluOp.MIN), ("and", AluOp.BITWISE_AND), ("or", AluOp.BITWISE_OR),
    ("xor", AluOp.BITWISE_XOR),
):  # fmt: skip
    _simple(_name, _op)

_COMPARISONS = {
    "equal": AluOp.IS_EQUAL, "not_equal": AluOp.NOT_EQUAL, "less": AluOp.IS_LT, "less_equal": AluOp.IS_LE,
    "greater": AluOp.IS_GT, "greater_equal": AluOp.IS_GE,
}  # fmt: skip


def _comparison(name: str, op: AluOp) -> None:
    def function(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand, b: Operand) -> None:
        lanes.apply(dst, a, op, b, of.format)

    def total(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand, b: Operand) -> None:
        lanes.apply(dst, _ordered(lanes, a), op, _ordered(lanes, b))

    FUNCTIONS[name], FUNCTIONS[f"{name}_total"] = function, total


for _name, _op in _COMPARISONS.items():
    _comparison(_name, _op)


def _ordered(lanes: Lanes, a: Operand) -> Tensor:
    """Return integers in the total order of floats: -NaN, -inf, ..., -0, +0, ..., inf, NaN."""
    wide = lanes.new(FP32)
    lanes.append(isa.tensor_copy(wide, lanes.tile(a, FP32)))
    bits, mask = wide.bitcast(INT32), lanes.new(INT32)
    lanes.chain(mask, bits, AluOp.IS_LT, 0, AluOp.MULTIPLY, (1 << 31) - 1)
    return lanes.apply(lanes.new(INT32), bits, AluOp.BITWISE_XOR, mask)


@_named("divide")
def _divide(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand, b: Operand) -> None:
    if to.is_float:
        lanes.apply(dst, a, AluOp.DIVIDE, b)
    else:
        _integer_division(lanes, dst, of, a, b, remainder=False)


@_named("remainder")
def _remainder(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand, b: Operand) -> None:
    if to.is_float:
        lanes.apply(dst, a, AluOp.FMOD, b)
    else:
        _integer_division(lanes, dst, of, a, b, remainder=True)


def _magnitude(lanes: Lanes, a: Tensor, signed: bool) -> tuple[Tensor, Tensor | None]:
    """Return |a| as UINT32, and a mask of ones where a is negative."""
    wide = lanes.new(INT32 if signed else UINT32)
    lanes.append(isa.tensor_copy(wide, a))
    if not signed:
        return wide, None
    mask = lanes.chain(lanes.new(INT32), wide, AluOp.IS_LT, 0, AluOp.MULTIPLY, -1)
    return _negate(lanes, wide, mask).bitcast(UINT32), mask


def _negate(lanes: Lanes, a: Tensor, mask: Tensor) -> Tensor:
    """Return -a where the mask is all ones, a where it is 0."""
    flipped = lanes.apply(lanes.new(INT32), a, AluOp.BITWISE_XOR, mask)
    return lanes.apply(lanes.new(INT32), flipped, AluOp.SUBTRACT, mask)


def _integer_division(lanes: Lanes, dst: Tensor, of: ElementType, a: Operand, b: Operand, *, remainder: bool) -> None:
    """Append the quotient, rounded to zero, or the remainder, with a's sign.

    An FP32 quotient times 1 - 2^-20 never exceeds the true one. Two such steps leave at most two, which comparisons
    add.
    As XLA does, x / 0 is -1, and x rem 0 is x.
    """
    signed = of.is_signed
    fmt = of.format if of.bits == 32 else INT32 if signed else UINT32
    (rest, negative), (divisor, other) = (_magnitude(lanes, lanes.tile(one, fmt), signed) for one in (a, b))
    quotient = None
    for _ in range(2):
        ratio = lanes.apply(lanes.new(), rest, AluOp.DIVIDE, divisor)
        low = lanes.new(UINT32)
        whole = lanes.chain(lanes.new(), ratio, AluOp.MULTIPLY, 1 - 2.0**-20, AluOp.TRUNC, 0)
        lanes.append(isa.tensor_copy(low, lanes.apply(lanes.new(), whole, AluOp.MIN, 2.0**32 - 2**8)))
        taken = lanes.apply(lanes.new(UINT32), low, AluOp.MULTIPLY, divisor)
        rest = lanes.apply(lanes.new(UINT32), rest, AluOp.SUBTRACT, taken)
        quotient = low if quotient is None else lanes.apply(lanes.new(UINT32), quotient, AluOp.ADD, low)
    assert quotient is not None
    for _ in range(2):
        more = lanes.apply(lanes.new(UINT32), rest, AluOp.IS_GE, divisor)
        quotient = lanes.apply(lanes.new(UINT32), quotient, AluOp.ADD, more)
        taken = lanes.apply(lanes.new(UINT32), more, AluOp.MULTIPLY, divisor)
        rest = lanes.apply(lanes.new(UINT32), rest, AluOp.SUBTRACT, taken)
    result = rest if remainder else quotient
    if signed:
        assert negative is not None and other is not None
        sign = (
            negative
            if remainder
            else lanes.apply(lanes.new(INT32), negative, AluOp.BITWISE_XOR, lanes.tile(other, INT32))
        )
        result = _negate(lanes, result.bitcast(INT32), sign)
    zero = lanes.apply(lanes.new(UINT8), divisor, AluOp.IS_EQUAL, 0)
    special: Operand = lanes.tile(a, fmt) if remainder else -1
    if of.bits == 32:
        special = special if isinstance(special, Tensor) else lanes.tile(-1, INT32)
        lanes.choose(dst.bitcast(result.format), zero, special.bitcast(result.format), result)
    else:
        wide = lanes.new(INT32)
        lanes.choose(wide, zero, lanes.tile(special, INT32), result.bitcast(INT32))
        wrap(lanes, dst, wide)


@_named("negate")
def _negative(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand) -> None:
    if to.is_float:
        lanes.apply(dst, a, AluOp.MULTIPLY, -1.0)
    else:
        FUNCTIONS["subtract"](lanes, dst, to, of, 0, a)


@_named("abs")
def _abs(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand) -> None:
    if to.is_float:
        lanes.function(dst, a, "abs")
    else:
        value = lanes.apply(dst if to.bits == 32 else lanes.new(INT32), a, AluOp.ABSOLUTE_MAX, 0)
        if to.bits < 32:
            wrap(lanes, dst, value)


@_named("sign")
def _sign(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand) -> None:
    if to.is_float:
        value = lanes.tile(a, FP32)
        signs = lanes.function(lanes.new(), value, "sign")
        # Zeros and NaN are results themselves.
        plain = lanes.chain(lanes.new(UINT8), value, AluOp.ABSOLUTE_MAX, 0.0, AluOp.IS_GT, 0.0)
        lanes.choose(dst, plain, signs, value)
    else:
        lanes.apply(dst, lanes.apply(lanes.new(INT32), a, AluOp.MAX, -1), AluOp.MIN, 1)


ACTIVATIONS = {
    "exponential": "exp", "log": "ln", "sqrt": "sqrt", "rsqrt": "rsqrt", "tanh": "tanh", "logistic": "sigmoid",
    "sine": "sin", "cosine": "cos", "erf": "erf", "gelu": "gelu", "gelu_tanh": "gelu_tanh", "silu": "silu",
}  # fmt: skip


def _activation(name: str, function: str) -> None:
    def apply(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand) -> None:
        lanes.function(dst, a, function)

    FUNCTIONS[name] = apply


for _name, _function in ACTIVATIONS.items():
    _activation(_name, _function)


@_named("power")
def _power(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand, b: Operand) -> None:
    if not to.is_float:
        raise Refused(f"powers must be of floats, not {of}")
    lanes.apply(dst, a, AluOp.POWER, b)


def _rounding(name: str, op: AluOp) -> None:
    def function(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand) -> None:
        lanes.apply(dst, a, op)

    FUNCTIONS[name] = function


for _name, _op in (("floor", AluOp.FLOOR), ("ceil", AluOp.CEIL)):
    _rounding(_name, _op)


def _with_sign(lanes: Lanes, dst: Tensor, magnitude: Tensor, value: Tensor) -> None:
    """Append dst = magnitude with the sign of value, both FP32."""
    sign = lanes.apply(lanes.new(INT32), value.bitcast(INT32), AluOp.BITWISE_AND, _SIGN)
    both = lanes.new()
    lanes.apply(both.bitcast(INT32), magnitude.bitcast(INT32), AluOp.BITWISE_OR, sign)
    lanes.append(isa.tensor_copy(dst, both))


def _wide(lanes: Lanes, a: Operand) -> Tensor:
    """Return an operand as an FP32 tile of the lanes' shape."""
    wide = lanes.new()
    lanes.append(isa.tensor_copy(wide, lanes.tile(a, FP32)))
    return wide


@_named("round_nearest_even")
def _round_even(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand) -> None:
    value = _wide(lanes, a)
    magnitude = lanes.function(lanes.new(), value, "abs")
    near = lanes.chain(lanes.new(), magnitude, AluOp.ADD, _LARGEST, AluOp.SUBTRACT, _LARGEST)
    small = lanes.apply(lanes.new(UINT8), magnitude, AluOp.IS_LT, _LARGEST)
    _with_sign(lanes, dst, lanes.choose(lanes.new(), small, near, magnitude), value)


@_named("round_nearest_afz")
def _round_away(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand) -> None:
    value = _wide(lanes, a)
    magnitude = lanes.function(lanes.new(), value, "abs")
    whole = lanes.apply(lanes.new(), magnitude, AluOp.FLOOR)
    half = lanes.apply(lanes.new(), magnitude, AluOp.SUBTRACT, whole)
    up = lanes.apply(lanes.new(), half, AluOp.IS_GE, 0.5)
    _with_sign(lanes, dst, lanes.apply(lanes.new(), whole, AluOp.ADD, up), value)


@_named("is_finite")
def _is_finite(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand) -> None:
    lanes.chain(dst, lanes.tile(a, FP32), AluOp.ABSOLUTE_MAX, 0.0, AluOp.IS_LT, inf)


@_named("not")
def _not(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand) -> None:
    if to.is_boolean:
        lanes.apply(dst, a, AluOp.IS_EQUAL, 0)
    else:
        lanes.apply(dst, a, AluOp.BITWISE_XOR, -1 if to.is_signed else (1 << to.bits) - 1)


@_named("select")
def _select(
    lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, condition: Operand, yes: Operand, no: Operand
) -> None:
    lanes.choose(dst, lanes.tile(condition, UINT8), yes, no)


@_named("clamp")
def _clamp(
    lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, low: Operand, a: Operand, high: Operand
) -> None:
    if isinstance(a, Tensor) and not isinstance(low, Tensor) and not isinstance(high, Tensor):
        lanes.chain(dst, a, AluOp.MAX, low, AluOp.MIN, high)
    else:
        lanes.apply(dst, lanes.apply(lanes.new(to.format), a, AluOp.MAX, low), AluOp.MIN, high)


@_named("convert")
def _convert(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand) -> None:
    value = lanes.tile(a, of.format)
    if to.is_boolean:
        lanes.apply(dst, value, AluOp.NOT_EQUAL, 0)
    elif of.is_float and to.is_integer:
        # NaN becomes 0, as on XLA's CPU; the cast to an integer saturates.
        whole = lanes.apply(lanes.new(), value, AluOp.TRUNC)
        number = lanes.apply(lanes.new(UINT8), whole, AluOp.IS_EQUAL, whole)
        lanes.choose(lanes.new(), number, whole, 0.0)
        lanes.choose(dst, number, whole, 0.0)
    elif not of.is_float and to.is_integer and of.bits == to.bits == 32:
        lanes.append(isa.tensor_copy(dst.bitcast(of.format), value))
    elif not of.is_float and to.is_integer and to.bits < 32 and (of.bits > to.bits or of.is_signed != to.is_signed):
        wide = lanes.new(of.format if of.bits == 32 else INT32)
        lanes.append(isa.tensor_copy(wide, value))
        wrap(lanes, dst, wide.bitcast(INT32))
    elif not of.is_float and to.is_integer:
        # A negative number becomes a large one in uint32.
        lanes.append(isa.tensor_copy(dst.bitcast(INT32) if of.is_signed else dst, value))
    else:
        lanes.append(isa.tensor_copy(dst, value))


def _shifts(name: str, op: AluOp) -> None:
    def function(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand, b: Operand) -> None:
        if to.bits == 32:
            lanes.apply(dst.bitcast(UINT32), _bits(lanes, a, of), op, _bits(lanes, b, of))
        else:
            value = lanes.apply(lanes.new(INT32), a, AluOp.BITWISE_AND, (1 << of.bits) - 1)
            count = lanes.apply(lanes.new(INT32), b, AluOp.BITWISE_AND, (1 << of.bits) - 1)
            wrap(lanes, dst, lanes.apply(lanes.new(INT32), value, op, count))

    FUNCTIONS[name] = function


def _bits(lanes: Lanes, a: Operand, of: ElementType) -> Operand:
    """Return 32-bit integers as UINT32 of the same bits."""
    return a.bitcast(UINT32) if isinstance(a, Tensor) else a % (1 << 32)


for _name, _op in (("shift_left", AluOp.LOGICAL_SHIFT_LEFT), ("shift_right_logical", AluOp.LOGICAL_SHIFT_RIGHT)):
    _shifts(_name, _op)


@_named("shift_right_arithmetic")
def _shift_signed(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand, b: Operand) -> None:
    """Append a shift of the complement of a negative number, and complement the result."""
    wide = lanes.new(INT32)
    value = lanes.tile(a, of.format)
    lanes.append(isa.tensor_copy(wide if of.is_signed or of.bits < 32 else wide.bitcast(UINT32), value))
    if not of.is_signed and of.bits < 32:
        lanes.chain(wide, wide, AluOp.LOGICAL_SHIFT_LEFT, 32 - of.bits, AluOp.BYPASS, 0)
        wide = lanes.apply(lanes.new(INT32), _arithmetic_shift(lanes, wide, 32 - of.bits), AluOp.BYPASS, 0)
    if isinstance(b, Tensor):
        count = lanes.new(UINT32)
        lanes.apply(count, _unsigned(lanes, b, of), AluOp.MIN, 31)
    else:
        count = min(b % (1 << of.bits), 31)
    result = _arithmetic_shift(lanes, wide, count)
    if to.bits == 32:
        lanes.append(isa.tensor_copy(dst.bitcast(INT32), result))
    else:
        wrap(lanes, dst, result)


def _unsigned(lanes: Lanes, b: Tensor, of: ElementType) -> Tensor:
    """Return a count of a shift as UINT32; a negative one is large."""
    if of.bits == 32:
        return b.bitcast(UINT32)
    wide = lanes.new(INT32)
    lanes.append(isa.tensor_copy(wide, b))
    return wide.bitcast(UINT32)


def _arithmetic_shift(lanes: Lanes, value: Tensor, count: Operand) -> Tensor:
    mask = lanes.chain(lanes.new(INT32), value, AluOp.IS_LT, 0, AluOp.MULTIPLY, -1)
    flipped = lanes.apply(lanes.new(INT32), value, AluOp.BITWISE_XOR, mask)
    count = count.bitcast(INT32) if isinstance(count, Tensor) else count
    shifted = lanes.apply(lanes.new(INT32), flipped, AluOp.LOGICAL_SHIFT_RIGHT, count)
    return lanes.apply(lanes.new(INT32), shifted, AluOp.BITWISE_XOR, mask)


@_named("exponential_minus_one")
def _expm1(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand) -> None:
    """Append 2 t / (1 - t), t = tanh(x / 2), for small x, and exp(x) - 1 for others."""
    value = _wide(lanes, a)
    t = lanes.function(lanes.new(), value, "tanh", 0.5)
    double = lanes.apply(lanes.new(), t, AluOp.MULTIPLY, 2.0)
    small = lanes.apply(lanes.new(), double, AluOp.DIVIDE, lanes.apply(lanes.new(), 1.0, AluOp.SUBTRACT, t))
    large = lanes.apply(lanes.new(), lanes.function(lanes.new(), value, "exp"), AluOp.SUBTRACT, 1.0)
    near = lanes.chain(lanes.new(UINT8), value, AluOp.ABSOLUTE_MAX, 0.0, AluOp.IS_LT, 0.5)
    lanes.choose(dst, near, small, large)


@_named("log_plus_one")
def _log1p(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand) -> None:
    """Append ln(u) x / (u - 1), u = 1 + x, whose errors cancel; x where u is 1, ln(u) where it is infinite."""
    value = _wide(lanes, a)
    u = lanes.apply(lanes.new(), value, AluOp.ADD, 1.0)
    log = lanes.function(lanes.new(), u, "ln")
    ratio = lanes.apply(lanes.new(), value, AluOp.DIVIDE, lanes.apply(lanes.new(), u, AluOp.SUBTRACT, 1.0))
    product = lanes.apply(lanes.new(), log, AluOp.MULTIPLY, ratio)
    one = lanes.apply(lanes.new(UINT8), u, AluOp.IS_EQUAL, 1.0)
    huge = lanes.apply(lanes.new(UINT8), u, AluOp.IS_EQUAL, inf)
    lanes.choose(dst, one, value, lanes.choose(lanes.new(), huge, log, product))


@_named("tan")
def _tan(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand) -> None:
    value = lanes.tile(a, FP32)
    lanes.apply(dst, lanes.function(lanes.new(), value, "sin"), AluOp.DIVIDE, lanes.function(lanes.new(), value, "cos"))


@_named("erfc")
def _erfc(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: Operand) -> None:
    """Append 2 gelu(z) / z, z = -sqrt(2) x, and 1 - erf(x) for small x."""
    value = _wide(lanes, a)
    z = lanes.apply(lanes.new(), value, AluOp.MULTIPLY, -sqrt(2.0))
    double = lanes.apply(lanes.new(), lanes.function(lanes.new(), z, "gelu"), AluOp.MULTIPLY, 2.0)
    tail = lanes.apply(lanes.new(), double, AluOp.DIVIDE, z)
    centre = lanes.apply(lanes.new(), 1.0, AluOp.SUBTRACT, lanes.function(lanes.new(), value, "erf"))
    near = lanes.chain(lanes.new(UINT8), value, AluOp.ABSOLUTE_MAX, 0.0, AluOp.IS_LT, 0.5)
    # The quotient has no value at infinities.
    finite = lanes.chain(lanes.new(UINT8), value, AluOp.ABSOLUTE_MAX, 0.0, AluOp.IS_LT, inf)
    tail = lanes.choose(lanes.new(), finite, tail, centre)
    lanes.choose(dst, near, centre, tail)

"""Conversions between types, rounding to whole numbers, and to fewer bits."""

from neuroncore_rtl.kernels.library.functions.integers import UNSIGNED, bits_of
from neuroncore_rtl.kernels.library.functions.lanes import ElementKind, LaneOperand, Lanes, Registry, with_sign, wrap
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.formats import FP32, INT32, UINT8, UINT32, FloatFormat
from neuroncore_rtl.spec.isa import AluOp

__all__: list[str] = []

FUNCTIONS = Registry()
_WHOLE = 2.0**23
"""From here on every FP32 number is whole."""


@FUNCTIONS.named("convert")
def _convert(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand) -> None:
    value = lanes.tile(a, of.format)
    if to.is_boolean:
        lanes.apply(dst, value, AluOp.NOT_EQUAL, 0)
    elif of.is_float and to.is_integer:
        # As on XLA's CPU, NaN becomes 0, others saturate, which is the machine's cast.
        lanes.apply(dst, value, AluOp.TRUNC)
    elif of.is_float or to.is_float:
        lanes.append(isa.tensor_copy(dst, value))
    elif to.bits < 32 and _may_wrap(to, of):
        wrap(lanes, dst, value if of.bits == 32 else lanes.wide(value, INT32))
    elif to.bits < 32:
        lanes.append(isa.tensor_copy(dst, value))
    else:
        lanes.append(isa.tensor_copy(dst.bitcast(INT32 if of.is_signed else UINT32), value))


def _may_wrap(to: ElementKind, of: ElementKind) -> bool:
    """Return whether an integer type has values that another one does not have."""
    if of.is_boolean:
        return False
    return of.bits > to.bits or (of.is_signed and not to.is_signed) or (of.bits == to.bits and of != to)


@FUNCTIONS.named("round_nearest_even")
def _round_even(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand) -> None:
    value = lanes.wide(a)
    magnitude = lanes.function(FP32, value, "abs")
    near = lanes.chain(FP32, magnitude, AluOp.ADD, _WHOLE, AluOp.SUBTRACT, _WHOLE)
    small = lanes.apply(UINT8, magnitude, AluOp.IS_LT, _WHOLE)
    with_sign(lanes, dst, lanes.choose(FP32, small, near, magnitude), value)


@FUNCTIONS.named("round_nearest_afz")
def _round_away(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand) -> None:
    value = lanes.wide(a)
    magnitude = lanes.function(FP32, value, "abs")
    whole = lanes.apply(FP32, magnitude, AluOp.FLOOR)
    half = lanes.apply(FP32, magnitude, AluOp.SUBTRACT, whole)
    up = lanes.apply(FP32, half, AluOp.IS_GE, 0.5)
    with_sign(lanes, dst, lanes.apply(FP32, whole, AluOp.ADD, up), value)


@FUNCTIONS.named("reduce_precision")
def _reduce_precision(
    lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand, exponent_bits: int, mantissa_bits: int
) -> None:
    """Append what XLA does: round the mantissa to nearest even, then exponents out of range to infinity or zero."""
    fmt = of.format
    assert isinstance(fmt, FloatFormat)
    codes = value = bits_of(lanes, of, a)
    magnitudes = (1 << (fmt.bits - 1)) - 1
    if (cut := fmt.mantissa_bits - mantissa_bits) > 0:
        odd = lanes.chain(UINT32, codes, AluOp.LOGICAL_SHIFT_RIGHT, cut, AluOp.BITWISE_AND, 1)
        value = lanes.apply(UINT32, codes, AluOp.ADD, odd)
        kept = (1 << 32) - (1 << cut)
        value = lanes.chain(UINT32, value, AluOp.ADD, (1 << (cut - 1)) - 1, AluOp.BITWISE_AND, kept)
    if exponent_bits < fmt.exponent_bits:
        reach = (1 << (exponent_bits - 1)) - 1
        magnitude = lanes.apply(UINT32, value, AluOp.BITWISE_AND, magnitudes)
        sign = lanes.apply(UINT32, value, AluOp.BITWISE_AND, magnitudes + 1)
        low, high = ((fmt.bias + one) << fmt.mantissa_bits for one in (1 - reach, 1 + reach))
        large = lanes.apply(UINT8, magnitude, AluOp.IS_GE, high)
        normal = lanes.apply(UINT32, magnitude, AluOp.IS_GE, low)
        normal = lanes.apply(UINT32, magnitude, AluOp.MULTIPLY, normal)
        value = lanes.choose(UINT32, large, fmt.infinity, normal)
        value = lanes.apply(UINT32, value, AluOp.BITWISE_OR, sign)
    nan = lanes.chain(UINT8, codes, AluOp.BITWISE_AND, magnitudes, AluOp.IS_GT, fmt.infinity)
    lanes.choose(dst.bitcast(UNSIGNED[of.bits]), nan, codes, value)

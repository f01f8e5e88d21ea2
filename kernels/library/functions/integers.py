"""Functions of integers: shifts, counts of bits, upper halves of products, quotients and remainders, powers."""

from functools import partial

from neuroncore_rtl.kernels.library.functions.lanes import ElementKind, LaneOperand, Lanes, Registry, wrap
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.formats import FP32, INT32, UINT8, UINT16, UINT32
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["UNSIGNED", "bits_of"]

FUNCTIONS = Registry()
UNSIGNED = {8: UINT8, 16: UINT16, 32: UINT32}
"""Formats by the number of bits."""


def bits_of(lanes: Lanes, of: ElementKind, a: LaneOperand) -> Tensor:
    """Return the bits of elements as UINT32, filled with zeros."""
    codes = lanes.tile(a, of.format).bitcast(UNSIGNED[of.bits])
    return codes if of.bits == 32 else lanes.wide(codes, UINT32)


def _shift(
    op: AluOp, lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand, b: LaneOperand
) -> None:
    """Append a shift; a count is unsigned, and one of more bits than the type has gives 0."""
    value, count = bits_of(lanes, of, a), bits_of(lanes, of, b) if isinstance(b, Tensor) else b % (1 << of.bits)
    if of.bits == 32:
        lanes.apply(dst.bitcast(UINT32), value, op, count)
    else:
        wrap(lanes, dst, lanes.apply(UINT32, value, op, count))


FUNCTIONS["shift_left"] = partial(_shift, AluOp.LOGICAL_SHIFT_LEFT)
FUNCTIONS["shift_right_logical"] = partial(_shift, AluOp.LOGICAL_SHIFT_RIGHT)


@FUNCTIONS.named("shift_right_arithmetic")
def _shift_signed(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand, b: LaneOperand) -> None:
    """Append a shift of the complement of a negative number, and complement the result.

    The sign is the highest bit, also of unsigned types.
    """
    value, every = bits_of(lanes, of, a), (1 << of.bits) - 1
    mask = lanes.chain(UINT32, value, AluOp.LOGICAL_SHIFT_RIGHT, of.bits - 1, AluOp.MULTIPLY, every)
    count = bits_of(lanes, of, b) if isinstance(b, Tensor) else b % (1 << of.bits)
    flipped = lanes.apply(UINT32, value, AluOp.BITWISE_XOR, mask)
    shifted = lanes.apply(UINT32, flipped, AluOp.LOGICAL_SHIFT_RIGHT, count)
    target = dst.bitcast(UINT32) if of.bits == 32 else lanes.new(UINT32)
    lanes.apply(target, shifted, AluOp.BITWISE_XOR, mask)
    if of.bits < 32:
        wrap(lanes, dst, target)


@FUNCTIONS.named("mulhi")
def _high_product(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand, b: LaneOperand) -> None:
    """Append the upper half of a product.

    One of 32 bits is the sum of products of 16 bits; a negative operand is 2^32 too large there.
    """
    if of.bits < 32:
        wide = UINT32 if not of.is_signed else INT32
        product = lanes.apply(wide, lanes.wide(a, wide), AluOp.MULTIPLY, lanes.wide(b, wide))
        codes = lanes.chain(UINT32, product.bitcast(UINT32), AluOp.LOGICAL_SHIFT_RIGHT, of.bits)
        wrap(lanes, dst, codes)
        return
    both = [lanes.wide(one, of.format).bitcast(UINT32) for one in (a, b)]
    low, low2 = (lanes.chain(UINT32, one, AluOp.BITWISE_AND, 0xFFFF) for one in both)
    high, high2 = (lanes.chain(UINT32, one, AluOp.LOGICAL_SHIFT_RIGHT, 16) for one in both)
    total = lanes.apply(UINT32, high, AluOp.MULTIPLY, high2)
    middle = lanes.chain(UINT32, lanes.apply(UINT32, low, AluOp.MULTIPLY, low2), AluOp.LOGICAL_SHIFT_RIGHT, 16)
    for one in (lanes.apply(UINT32, low, AluOp.MULTIPLY, high2), lanes.apply(UINT32, high, AluOp.MULTIPLY, low2)):
        middle = lanes.apply(UINT32, middle, AluOp.ADD, lanes.chain(UINT32, one, AluOp.BITWISE_AND, 0xFFFF))
        total = lanes.apply(UINT32, total, AluOp.ADD, lanes.chain(UINT32, one, AluOp.LOGICAL_SHIFT_RIGHT, 16))
    total = lanes.apply(UINT32, total, AluOp.ADD, lanes.chain(UINT32, middle, AluOp.LOGICAL_SHIFT_RIGHT, 16))
    for one, other in (both, both[::-1]) if of.is_signed else ():
        sign = lanes.chain(UINT32, one, AluOp.LOGICAL_SHIFT_RIGHT, 31)
        total = lanes.apply(UINT32, total, AluOp.SUBTRACT, lanes.apply(UINT32, sign, AluOp.MULTIPLY, other))
    lanes.program.append(isa.tensor_copy(dst.bitcast(UINT32), total))


@FUNCTIONS.named("popcnt")
def _count_ones(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand) -> None:
    """Append sums of bits in pairs, in groups of four and of eight, then of the four bytes by a product."""
    value = bits_of(lanes, of, a)
    right, keep = AluOp.LOGICAL_SHIFT_RIGHT, AluOp.BITWISE_AND
    value = lanes.apply(UINT32, value, AluOp.SUBTRACT, lanes.chain(UINT32, value, right, 1, keep, 0x55555555))
    high = lanes.chain(UINT32, value, right, 2, keep, 0x33333333)
    value = lanes.apply(UINT32, lanes.chain(UINT32, value, keep, 0x33333333), AluOp.ADD, high)
    value = lanes.apply(UINT32, value, AluOp.ADD, lanes.chain(UINT32, value, right, 4))
    bytes_ = lanes.chain(UINT32, value, keep, 0x0F0F0F0F, AluOp.MULTIPLY, 0x01010101)
    lanes.apply(dst, bytes_, right, 24)


@FUNCTIONS.named("count_leading_zeros")
def _count_zeros(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand) -> None:
    """Append a subtraction from the FP32 exponent of the number without the ones behind others, so it rounds no bit up.

    Zero has the exponent field 0.
    """
    value = bits_of(lanes, of, a)
    behind = lanes.chain(UINT32, value, AluOp.LOGICAL_SHIFT_RIGHT, 1, AluOp.BITWISE_XOR, (1 << 32) - 1)
    first = lanes.wide(lanes.apply(UINT32, value, AluOp.BITWISE_AND, behind), FP32)
    exponent = lanes.chain(INT32, first.bitcast(INT32), AluOp.LOGICAL_SHIFT_RIGHT, 23, AluOp.MULTIPLY, -1)
    lanes.chain(dst, exponent, AluOp.ADD, 126 + of.bits, AluOp.MIN, of.bits)


def _divide(op: AluOp, lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, *operands: LaneOperand) -> None:
    if to.is_float:
        lanes.apply(dst, operands[0], op, operands[1])
    else:
        _divide_integers(lanes, dst, of, *operands, remainder=op is AluOp.FMOD)


FUNCTIONS["divide"], FUNCTIONS["remainder"] = partial(_divide, AluOp.DIVIDE), partial(_divide, AluOp.FMOD)


def _divide_integers(
    lanes: Lanes, dst: Tensor, of: ElementKind, a: LaneOperand, b: LaneOperand, *, remainder: bool
) -> None:
    """Append the quotient, rounded to zero, or the remainder, with a's sign.

    The product of a and 1 / b in FP32, times 1 - 2^-20, never exceeds the quotient. Two such steps leave at most two,
    which comparisons add. As XLA does, x / 0 is -1, and the remainder of x by 0 is x.
    """
    fmt = of.format if of.bits == 32 else INT32 if of.is_signed else UINT32
    (rest, negative), (divisor, other) = (_magnitude(lanes, lanes.tile(one, fmt), of.is_signed) for one in (a, b))
    part = lanes.function(FP32, divisor, "reciprocal")
    quotient = None
    for _ in range(2):
        ratio = lanes.apply(FP32, rest, AluOp.MULTIPLY, part)
        whole = lanes.chain(FP32, ratio, AluOp.MULTIPLY, 1 - 2.0**-20, AluOp.TRUNC, 0)
        low = lanes.apply(UINT32, whole, AluOp.MIN, 2.0**32 - 2**8)
        rest = lanes.apply(UINT32, rest, AluOp.SUBTRACT, lanes.apply(UINT32, low, AluOp.MULTIPLY, divisor))
        quotient = low if quotient is None else lanes.apply(UINT32, quotient, AluOp.ADD, low)
    assert quotient is not None
    for _ in range(2):
        more = lanes.apply(UINT32, rest, AluOp.IS_GE, divisor)
        quotient = lanes.apply(UINT32, quotient, AluOp.ADD, more)
        rest = lanes.apply(UINT32, rest, AluOp.SUBTRACT, lanes.apply(UINT32, more, AluOp.MULTIPLY, divisor))
    result = rest if remainder else quotient
    if negative is not None and other is not None:
        sign = negative if remainder else lanes.apply(INT32, negative, AluOp.BITWISE_XOR, other)
        result = _signed(lanes, result.bitcast(INT32), sign)
    is_zero = lanes.apply(UINT8, divisor, AluOp.IS_EQUAL, 0)
    special = lanes.tile(a if remainder else -1, fmt if remainder else INT32)
    if of.bits == 32:
        lanes.choose(dst.bitcast(INT32), is_zero, special.bitcast(INT32), result.bitcast(INT32))
    else:
        wrap(lanes, dst, lanes.choose(INT32, is_zero, special, result.bitcast(INT32)))


def _magnitude(lanes: Lanes, a: Tensor, signed: bool) -> tuple[Tensor, Tensor | None]:
    """Return |a| as UINT32, and a mask of ones where a is negative."""
    wide = lanes.wide(a, INT32 if signed else UINT32)
    if not signed:
        return wide, None
    mask = lanes.chain(INT32, wide, AluOp.IS_LT, 0, AluOp.MULTIPLY, -1)
    return _signed(lanes, wide, mask).bitcast(UINT32), mask


def _signed(lanes: Lanes, a: Tensor, mask: Tensor) -> Tensor:
    """Return -a where the mask is all ones, a where it is 0."""
    flipped = lanes.apply(INT32, a, AluOp.BITWISE_XOR, mask)
    return lanes.apply(INT32, flipped, AluOp.SUBTRACT, mask)


@FUNCTIONS.named("power")
def _power(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand, b: LaneOperand) -> None:
    if to.is_float:
        lanes.apply(dst, a, AluOp.POWER, b)
    else:
        _power_integers(lanes, dst, of, a, b)


def _power_integers(lanes: Lanes, dst: Tensor, of: ElementKind, a: LaneOperand, b: LaneOperand) -> None:
    """Append a product of squares for the ones of the exponent.

    As in XLA, a negative exponent gives 1 or -1 for these bases, with the sign by the exponent's last bit, else 0.
    """
    base = first = lanes.wide(a, of.format if of.bits == 32 else INT32)
    exponent = bits_of(lanes, of, b)
    power = lanes.new(base.format)
    lanes.append(isa.memset(power, 1))
    for place in range(of.bits - of.is_signed):
        odd = lanes.chain(UINT8, exponent, AluOp.LOGICAL_SHIFT_RIGHT, place, AluOp.BITWISE_AND, 1)
        more = lanes.apply(base.format, power, AluOp.MULTIPLY, base)
        lanes.append(isa.tensor_copy_predicated(power, odd, more))
        base = lanes.apply(base.format, base, AluOp.MULTIPLY, base)
    if of.is_signed:
        # The base itself for an odd exponent, else its square: of 1 and -1, the power.
        unit = lanes.new(INT32)
        lanes.append(isa.memset(unit, 1))
        odd = lanes.apply(UINT8, exponent, AluOp.BITWISE_AND, 1)
        lanes.append(isa.tensor_copy_predicated(unit, odd, first))
        is_unit = lanes.chain(INT32, first, AluOp.ABSOLUTE_MAX, 0, AluOp.IS_EQUAL, 1)
        unit = lanes.apply(INT32, unit, AluOp.MULTIPLY, is_unit)
        negative = lanes.apply(UINT8, exponent, AluOp.LOGICAL_SHIFT_RIGHT, of.bits - 1)
        lanes.append(isa.tensor_copy_predicated(power, negative, unit))
    if of.bits == 32:
        lanes.append(isa.tensor_copy(dst, power))
    else:
        wrap(lanes, dst, power)

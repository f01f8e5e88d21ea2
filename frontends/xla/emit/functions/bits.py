"""Shifts, and counts of bits."""

from functools import partial

from neuroncore_rtl.frontends.xla.emit.functions.registry import Registry
from neuroncore_rtl.frontends.xla.emit.lanes import LaneOperand, Lanes, wrap
from neuroncore_rtl.frontends.xla.graph.types import ElementType
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.formats import FP32, INT32, UINT8, UINT16, UINT32
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["UNSIGNED", "bits_of"]

FUNCTIONS = Registry()
UNSIGNED = {8: UINT8, 16: UINT16, 32: UINT32}
"""Formats by the number of bits."""


def bits_of(lanes: Lanes, of: ElementType, a: LaneOperand) -> Tensor:
    """Return the bits of elements as UINT32, filled with zeros."""
    codes = lanes.tile(a, of.format).bitcast(UNSIGNED[of.bits])
    return codes if of.bits == 32 else lanes.wide(codes, UINT32)


def _shift(
    op: AluOp, lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: LaneOperand, b: LaneOperand
) -> None:
    """Append a shift; a count is unsigned, and one of more bits than the type has gives 0."""
    value, count = bits_of(lanes, of, a), bits_of(lanes, of, b) if isinstance(b, Tensor) else b % (1 << of.bits)
    if of.bits == 32:
        lanes.apply(dst.bitcast(UINT32), value, op, count)
    else:
        wrap(lanes, dst, lanes.apply(lanes.new(UINT32), value, op, count))


FUNCTIONS["shift_left"] = partial(_shift, AluOp.LOGICAL_SHIFT_LEFT)
FUNCTIONS["shift_right_logical"] = partial(_shift, AluOp.LOGICAL_SHIFT_RIGHT)


@FUNCTIONS.named("shift_right_arithmetic")
def _shift_signed(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: LaneOperand, b: LaneOperand) -> None:
    """Append a shift of the complement of a negative number, and complement the result.

    The sign is the highest bit, also of unsigned types.
    """
    value, every = bits_of(lanes, of, a), (1 << of.bits) - 1
    mask = _chain(lanes, value, AluOp.LOGICAL_SHIFT_RIGHT, of.bits - 1, AluOp.MULTIPLY, every)
    count = bits_of(lanes, of, b) if isinstance(b, Tensor) else b % (1 << of.bits)
    flipped = lanes.apply(lanes.new(UINT32), value, AluOp.BITWISE_XOR, mask)
    shifted = lanes.apply(lanes.new(UINT32), flipped, AluOp.LOGICAL_SHIFT_RIGHT, count)
    target = dst.bitcast(UINT32) if of.bits == 32 else lanes.new(UINT32)
    lanes.apply(target, shifted, AluOp.BITWISE_XOR, mask)
    if of.bits < 32:
        wrap(lanes, dst, target)


@FUNCTIONS.named("mulhi")
def _high_product(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: LaneOperand, b: LaneOperand) -> None:
    """Append the upper half of a product.

    One of 32 bits is the sum of products of 16 bits; a negative operand is 2^32 too large there.
    """
    if of.bits < 32:
        wide = UINT32 if not of.is_signed else INT32
        product = lanes.apply(lanes.new(wide), lanes.wide(a, wide), AluOp.MULTIPLY, lanes.wide(b, wide))
        codes = _chain(lanes, product.bitcast(UINT32), AluOp.LOGICAL_SHIFT_RIGHT, of.bits)
        wrap(lanes, dst, codes)
        return
    both = [lanes.wide(one, of.format).bitcast(UINT32) for one in (a, b)]
    low, low2 = (_chain(lanes, one, AluOp.BITWISE_AND, 0xFFFF) for one in both)
    high, high2 = (_chain(lanes, one, AluOp.LOGICAL_SHIFT_RIGHT, 16) for one in both)

    def combine(left: Tensor, op: AluOp, right: Tensor) -> Tensor:
        return lanes.apply(lanes.new(UINT32), left, op, right)

    total = combine(high, AluOp.MULTIPLY, high2)
    middle = _chain(lanes, combine(low, AluOp.MULTIPLY, low2), AluOp.LOGICAL_SHIFT_RIGHT, 16)
    for one in (combine(low, AluOp.MULTIPLY, high2), combine(high, AluOp.MULTIPLY, low2)):
        middle = combine(middle, AluOp.ADD, _chain(lanes, one, AluOp.BITWISE_AND, 0xFFFF))
        total = combine(total, AluOp.ADD, _chain(lanes, one, AluOp.LOGICAL_SHIFT_RIGHT, 16))
    total = combine(total, AluOp.ADD, _chain(lanes, middle, AluOp.LOGICAL_SHIFT_RIGHT, 16))
    for one, other in (both, both[::-1]) if of.is_signed else ():
        sign = _chain(lanes, one, AluOp.LOGICAL_SHIFT_RIGHT, 31)
        total = combine(total, AluOp.SUBTRACT, combine(sign, AluOp.MULTIPLY, other))
    lanes.program.append(isa.tensor_copy(dst.bitcast(UINT32), total))


@FUNCTIONS.named("popcnt")
def _count_ones(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: LaneOperand) -> None:
    """Append sums of bits in pairs, in groups of four and of eight, then of the four bytes by a product."""
    value = bits_of(lanes, of, a)
    right, keep = AluOp.LOGICAL_SHIFT_RIGHT, AluOp.BITWISE_AND
    value = lanes.apply(lanes.new(UINT32), value, AluOp.SUBTRACT, _chain(lanes, value, right, 1, keep, 0x55555555))
    high = _chain(lanes, value, right, 2, keep, 0x33333333)
    value = lanes.apply(lanes.new(UINT32), _chain(lanes, value, keep, 0x33333333), AluOp.ADD, high)
    value = lanes.apply(lanes.new(UINT32), value, AluOp.ADD, _chain(lanes, value, right, 4))
    bytes_ = _chain(lanes, value, keep, 0x0F0F0F0F, AluOp.MULTIPLY, 0x01010101)
    lanes.apply(dst, bytes_, right, 24)


def _chain(lanes: Lanes, a: Tensor, op0: AluOp, s0: int, op1: AluOp = AluOp.BYPASS, s1: int = 0) -> Tensor:
    return lanes.chain(lanes.new(UINT32), a, op0, s0, op1, s1)


@FUNCTIONS.named("count_leading_zeros")
def _count_zeros(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: LaneOperand) -> None:
    """Append a subtraction from the FP32 exponent of the number without the ones behind others, so it rounds no bit up.

    Zero has the exponent field 0.
    """
    value = bits_of(lanes, of, a)
    behind = _chain(lanes, value, AluOp.LOGICAL_SHIFT_RIGHT, 1, AluOp.BITWISE_XOR, (1 << 32) - 1)
    first = lanes.wide(lanes.apply(lanes.new(UINT32), value, AluOp.BITWISE_AND, behind), FP32)
    exponent = lanes.chain(lanes.new(INT32), first.bitcast(INT32), AluOp.LOGICAL_SHIFT_RIGHT, 23, AluOp.MULTIPLY, -1)
    lanes.chain(dst, exponent, AluOp.ADD, 126 + of.bits, AluOp.MIN, of.bits)

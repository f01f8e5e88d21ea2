"""Quotients and remainders."""

from functools import partial

from neuroncore_rtl.frontends.xla.emit.functions.registry import Registry
from neuroncore_rtl.frontends.xla.emit.lanes import LaneOperand, Lanes, wrap
from neuroncore_rtl.frontends.xla.graph.types import ElementType
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.spec.formats import INT32, UINT8, UINT32
from neuroncore_rtl.spec.isa import AluOp

__all__: list[str] = []

FUNCTIONS = Registry()


def _divide(op: AluOp, lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, *operands: LaneOperand) -> None:
    if to.is_float:
        lanes.apply(dst, operands[0], op, operands[1])
    else:
        _divide_integers(lanes, dst, of, *operands, remainder=op is AluOp.FMOD)


FUNCTIONS["divide"], FUNCTIONS["remainder"] = partial(_divide, AluOp.DIVIDE), partial(_divide, AluOp.FMOD)


def _divide_integers(
    lanes: Lanes, dst: Tensor, of: ElementType, a: LaneOperand, b: LaneOperand, *, remainder: bool
) -> None:
    """Append the quotient, rounded to zero, or the remainder, with a's sign.

    The product of a and 1 / b in FP32, times 1 - 2^-20, never exceeds the quotient. Two such steps leave at most two,
    which comparisons add. As XLA does, x / 0 is -1, and the remainder of x by 0 is x.
    """
    fmt = of.format if of.bits == 32 else INT32 if of.is_signed else UINT32
    (rest, negative), (divisor, other) = (_magnitude(lanes, lanes.tile(one, fmt), of.is_signed) for one in (a, b))
    part = lanes.function(lanes.new(), divisor, "reciprocal")
    quotient = None
    for _ in range(2):
        ratio = lanes.apply(lanes.new(), rest, AluOp.MULTIPLY, part)
        whole = lanes.chain(lanes.new(), ratio, AluOp.MULTIPLY, 1 - 2.0**-20, AluOp.TRUNC, 0)
        low = lanes.apply(lanes.new(UINT32), whole, AluOp.MIN, 2.0**32 - 2**8)
        rest = _less(lanes, rest, lanes.apply(lanes.new(UINT32), low, AluOp.MULTIPLY, divisor))
        quotient = low if quotient is None else lanes.apply(lanes.new(UINT32), quotient, AluOp.ADD, low)
    assert quotient is not None
    for _ in range(2):
        more = lanes.apply(lanes.new(UINT32), rest, AluOp.IS_GE, divisor)
        quotient = lanes.apply(lanes.new(UINT32), quotient, AluOp.ADD, more)
        rest = _less(lanes, rest, lanes.apply(lanes.new(UINT32), more, AluOp.MULTIPLY, divisor))
    result = rest if remainder else quotient
    if negative is not None and other is not None:
        sign = negative if remainder else lanes.apply(lanes.new(INT32), negative, AluOp.BITWISE_XOR, other)
        result = _signed(lanes, result.bitcast(INT32), sign)
    is_zero = lanes.apply(lanes.new(UINT8), divisor, AluOp.IS_EQUAL, 0)
    special = lanes.tile(a if remainder else -1, fmt if remainder else INT32)
    if of.bits == 32:
        lanes.choose(dst.bitcast(INT32), is_zero, special.bitcast(INT32), result.bitcast(INT32))
    else:
        wrap(lanes, dst, lanes.choose(lanes.new(INT32), is_zero, special, result.bitcast(INT32)))


def _less(lanes: Lanes, a: Tensor, b: Tensor) -> Tensor:
    return lanes.apply(lanes.new(UINT32), a, AluOp.SUBTRACT, b)


def _magnitude(lanes: Lanes, a: Tensor, signed: bool) -> tuple[Tensor, Tensor | None]:
    """Return |a| as UINT32, and a mask of ones where a is negative."""
    wide = lanes.wide(a, INT32 if signed else UINT32)
    if not signed:
        return wide, None
    mask = lanes.chain(lanes.new(INT32), wide, AluOp.IS_LT, 0, AluOp.MULTIPLY, -1)
    return _signed(lanes, wide, mask).bitcast(UINT32), mask


def _signed(lanes: Lanes, a: Tensor, mask: Tensor) -> Tensor:
    """Return -a where the mask is all ones, a where it is 0."""
    flipped = lanes.apply(lanes.new(INT32), a, AluOp.BITWISE_XOR, mask)
    return lanes.apply(lanes.new(INT32), flipped, AluOp.SUBTRACT, mask)

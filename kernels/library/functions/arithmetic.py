"""Sums, products, signs, extrema, comparisons, selection and logic.

Most are one instruction for floats; narrow integers wrap as in XLA.
"""

from functools import partial
from math import inf

from neuroncore_rtl.kernels.library.functions.lanes import ElementKind, LaneOperand, Lanes, Registry, wrap
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.spec.formats import FP32, INT8, INT16, INT32, UINT8
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["COMBINING"]

FUNCTIONS = Registry()
COMBINING = {
    "add": AluOp.ADD, "subtract": AluOp.SUBTRACT, "multiply": AluOp.MULTIPLY, "maximum": AluOp.MAX,
    "minimum": AluOp.MIN, "and": AluOp.BITWISE_AND, "or": AluOp.BITWISE_OR, "xor": AluOp.BITWISE_XOR,
}  # fmt: skip
"""Functions that combine two elements by one operation of the vector engine, narrow integers apart."""
_COMPARISONS = {
    "equal": AluOp.IS_EQUAL, "not_equal": AluOp.NOT_EQUAL, "less": AluOp.IS_LT, "less_equal": AluOp.IS_LE,
    "greater": AluOp.IS_GT, "greater_equal": AluOp.IS_GE,
}  # fmt: skip
_SAME_BITS = {8: INT8, 16: INT16, 32: INT32}
_BOOLEAN = {AluOp.ADD: AluOp.BITWISE_OR, AluOp.SUBTRACT: AluOp.BITWISE_XOR, AluOp.MULTIPLY: AluOp.BITWISE_AND}


def _wrapping(
    op: AluOp, lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand, b: LaneOperand
) -> None:
    if to.is_boolean:
        lanes.apply(dst, a, _BOOLEAN[op], b)
    elif to.is_float or to.bits == 32:
        lanes.apply(dst, a, op, b)
    else:
        wrap(lanes, dst, lanes.apply(INT32, a, op, b))


def _plain(op: AluOp, lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, *operands: LaneOperand) -> None:
    """Append one operation, whose result is in the range of the type."""
    lanes.apply(dst, operands[0], op, *operands[1:], fmt=of.format)


def _compare_total(
    op: AluOp, lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, *operands: LaneOperand
) -> None:
    a, b = (_ordered(lanes, of, one) for one in operands)
    lanes.apply(dst, a, op, b)


def _ordered(lanes: Lanes, of: ElementKind, a: LaneOperand) -> Tensor:
    """Return integers in the total order of floats: -NaN, -inf, ..., -0, +0, ..., inf, NaN."""
    codes = lanes.tile(a, of.format).bitcast(_SAME_BITS[of.bits])
    mask = lanes.chain(INT32, codes, AluOp.IS_LT, 0, AluOp.MULTIPLY, (1 << (of.bits - 1)) - 1)
    return lanes.apply(INT32, codes, AluOp.BITWISE_XOR, mask)


for _name, _op in COMBINING.items():
    FUNCTIONS[_name] = partial(_wrapping if _op in _BOOLEAN else _plain, _op)
for _name, _op in _COMPARISONS.items():
    FUNCTIONS[_name], FUNCTIONS[f"{_name}_total"] = partial(_plain, _op), partial(_compare_total, _op)
for _name, _op in {"floor": AluOp.FLOOR, "ceil": AluOp.CEIL}.items():
    FUNCTIONS[_name] = partial(_plain, _op)


@FUNCTIONS.named("not")
def _not(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand) -> None:
    if to.is_boolean:
        lanes.apply(dst, a, AluOp.IS_EQUAL, 0)
    else:
        lanes.apply(dst, a, AluOp.BITWISE_XOR, -1 if to.is_signed else (1 << to.bits) - 1)


@FUNCTIONS.named("negate")
def _negate(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand) -> None:
    if to.is_float:
        # The sign changes, also that of NaN, which orders a sort.
        codes, sign = _SAME_BITS[of.bits], -(1 << (of.bits - 1))
        lanes.apply(dst.bitcast(codes), lanes.tile(a, of.format).bitcast(codes), AluOp.BITWISE_XOR, sign)
    else:
        _wrapping(AluOp.SUBTRACT, lanes, dst, to, of, 0, a)


@FUNCTIONS.named("abs")
def _abs(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand) -> None:
    if to.is_float:
        lanes.function(dst, a, "abs")
    elif to.bits == 32:
        # The magnitude of -2^31 is itself; ABSOLUTE_MAX would compare it as a negative number.
        lanes.apply(dst, a, AluOp.MAX, lanes.apply(INT32, 0, AluOp.SUBTRACT, a))
    else:
        wrap(lanes, dst, lanes.apply(INT32, a, AluOp.ABSOLUTE_MAX, 0))


@FUNCTIONS.named("sign")
def _sign(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand) -> None:
    if to.is_float:
        value = lanes.tile(a, FP32)
        signs = lanes.function(FP32, value, "sign")
        # Zeros and NaN are results themselves.
        plain = lanes.chain(UINT8, value, AluOp.ABSOLUTE_MAX, 0.0, AluOp.IS_GT, 0.0)
        lanes.choose(dst, plain, signs, value)
    elif to.is_signed:
        lanes.chain(dst, lanes.tile(a, to.format), AluOp.MAX, -1, AluOp.MIN, 1)
    else:
        lanes.apply(dst, a, AluOp.MIN, 1)


@FUNCTIONS.named("clamp")
def _clamp(
    lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, low: LaneOperand, a: LaneOperand, high: LaneOperand
) -> None:
    if isinstance(a, Tensor) and not isinstance(low, Tensor) and not isinstance(high, Tensor):
        lanes.chain(dst, a, AluOp.MAX, low, AluOp.MIN, high)
    else:
        lanes.apply(dst, lanes.apply(to.format, a, AluOp.MAX, low), AluOp.MIN, high)


@FUNCTIONS.named("is_finite")
def _is_finite(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand) -> None:
    lanes.chain(dst, lanes.tile(a, FP32), AluOp.ABSOLUTE_MAX, 0.0, AluOp.IS_LT, inf)


@FUNCTIONS.named("select")
def _select(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, *operands: LaneOperand) -> None:
    condition, yes, no = operands
    lanes.choose(dst, lanes.tile(condition, UINT8), yes, no)

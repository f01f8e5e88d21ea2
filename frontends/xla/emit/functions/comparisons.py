"""Comparisons in the total order of floats, and selection."""

from functools import partial
from math import inf

from neuroncore_rtl.frontends.xla.emit.functions.registry import Registry
from neuroncore_rtl.frontends.xla.emit.lanes import LaneOperand, Lanes
from neuroncore_rtl.frontends.xla.graph.types import ElementType
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.spec.formats import FP32, INT8, INT16, INT32, UINT8
from neuroncore_rtl.spec.isa import AluOp

__all__: list[str] = []

FUNCTIONS = Registry()
_SAME_BITS = {8: INT8, 16: INT16, 32: INT32}


def _compare(op: AluOp, lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, *operands: LaneOperand) -> None:
    a, b = (_ordered(lanes, of, one) for one in operands)
    lanes.apply(dst, a, op, b)


for _name, _op in {
    "equal": AluOp.IS_EQUAL, "not_equal": AluOp.NOT_EQUAL, "less": AluOp.IS_LT, "less_equal": AluOp.IS_LE,
    "greater": AluOp.IS_GT, "greater_equal": AluOp.IS_GE,
}.items():  # fmt: skip
    FUNCTIONS[f"{_name}_total"] = partial(_compare, _op)


def _ordered(lanes: Lanes, of: ElementType, a: LaneOperand) -> Tensor:
    """Return integers in the total order of floats: -NaN, -inf, ..., -0, +0, ..., inf, NaN."""
    codes = lanes.tile(a, of.format).bitcast(_SAME_BITS[of.bits])
    mask = lanes.chain(lanes.new(INT32), codes, AluOp.IS_LT, 0, AluOp.MULTIPLY, (1 << (of.bits - 1)) - 1)
    return lanes.apply(lanes.new(INT32), codes, AluOp.BITWISE_XOR, mask)


@FUNCTIONS.named("is_finite")
def _is_finite(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: LaneOperand) -> None:
    lanes.chain(dst, lanes.tile(a, FP32), AluOp.ABSOLUTE_MAX, 0.0, AluOp.IS_LT, inf)


@FUNCTIONS.named("select")
def _select(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, *operands: LaneOperand) -> None:
    condition, yes, no = operands
    lanes.choose(dst, lanes.tile(condition, UINT8), yes, no)

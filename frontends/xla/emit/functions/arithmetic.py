"""Sums, products, signs, extrema and logic: one instruction for floats; narrow integers wrap as in XLA."""

from functools import partial

from neuroncore_rtl.frontends.xla.emit.functions.registry import Registry
from neuroncore_rtl.frontends.xla.emit.lanes import LaneOperand, Lanes, wrap
from neuroncore_rtl.frontends.xla.graph.types import ElementType
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.spec.formats import FP32, INT32, UINT8
from neuroncore_rtl.spec.isa import AluOp

__all__: list[str] = []

FUNCTIONS = Registry()
_BOOLEAN = {AluOp.ADD: AluOp.BITWISE_OR, AluOp.SUBTRACT: AluOp.BITWISE_XOR, AluOp.MULTIPLY: AluOp.BITWISE_AND}


def _wrapping(
    op: AluOp, lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: LaneOperand, b: LaneOperand
) -> None:
    if to.is_boolean:
        lanes.apply(dst, a, _BOOLEAN[op], b)
    elif to.is_float or to.bits == 32:
        lanes.apply(dst, a, op, b)
    else:
        wrap(lanes, dst, lanes.apply(lanes.new(INT32), a, op, b))


FUNCTIONS["add"] = partial(_wrapping, AluOp.ADD)
FUNCTIONS["subtract"] = partial(_wrapping, AluOp.SUBTRACT)
FUNCTIONS["multiply"] = partial(_wrapping, AluOp.MULTIPLY)


def _within(
    op: AluOp, lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: LaneOperand, b: LaneOperand
) -> None:
    """Append an operation with a result in the range of narrow operands."""
    lanes.apply(dst, a, op, b)


FUNCTIONS["maximum"] = partial(_within, AluOp.MAX)
FUNCTIONS["minimum"] = partial(_within, AluOp.MIN)
FUNCTIONS["and"] = partial(_within, AluOp.BITWISE_AND)
FUNCTIONS["or"] = partial(_within, AluOp.BITWISE_OR)
FUNCTIONS["xor"] = partial(_within, AluOp.BITWISE_XOR)


@FUNCTIONS.named("not")
def _not(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: LaneOperand) -> None:
    if to.is_boolean:
        lanes.apply(dst, a, AluOp.IS_EQUAL, 0)
    else:
        lanes.apply(dst, a, AluOp.BITWISE_XOR, -1 if to.is_signed else (1 << to.bits) - 1)


@FUNCTIONS.named("negate")
def _negate(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: LaneOperand) -> None:
    if to.is_float:
        lanes.apply(dst, a, AluOp.MULTIPLY, -1.0)
    else:
        _wrapping(AluOp.SUBTRACT, lanes, dst, to, of, 0, a)


@FUNCTIONS.named("abs")
def _abs(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: LaneOperand) -> None:
    if to.is_float:
        lanes.function(dst, a, "abs")
    elif to.bits == 32:
        # The magnitude of -2^31 is itself; ABSOLUTE_MAX would compare it as a negative number.
        lanes.apply(dst, a, AluOp.MAX, lanes.apply(lanes.new(INT32), 0, AluOp.SUBTRACT, a))
    else:
        wrap(lanes, dst, lanes.apply(lanes.new(INT32), a, AluOp.ABSOLUTE_MAX, 0))


@FUNCTIONS.named("sign")
def _sign(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: LaneOperand) -> None:
    if to.is_float:
        value = lanes.tile(a, FP32)
        signs = lanes.function(lanes.new(), value, "sign")
        # Zeros and NaN are results themselves.
        plain = lanes.chain(lanes.new(UINT8), value, AluOp.ABSOLUTE_MAX, 0.0, AluOp.IS_GT, 0.0)
        lanes.choose(dst, plain, signs, value)
    elif to.is_signed:
        lanes.chain(dst, lanes.tile(a, to.format), AluOp.MAX, -1, AluOp.MIN, 1)
    else:
        lanes.apply(dst, a, AluOp.MIN, 1)


@FUNCTIONS.named("clamp")
def _clamp(
    lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, low: LaneOperand, a: LaneOperand, high: LaneOperand
) -> None:
    if isinstance(a, Tensor) and not isinstance(low, Tensor) and not isinstance(high, Tensor):
        lanes.chain(dst, a, AluOp.MAX, low, AluOp.MIN, high)
    else:
        lanes.apply(dst, lanes.apply(lanes.new(to.format), a, AluOp.MAX, low), AluOp.MIN, high)

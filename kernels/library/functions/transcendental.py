"""Functions of floats: those of the scalar engine, and others made of them."""

from functools import partial
from math import inf, pi, sqrt

from neuroncore_rtl.kernels.library.functions.lanes import ElementKind, LaneOperand, Lanes, Registry, with_sign
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.formats import FP32, INT32, UINT8
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["ENGINE_FUNCTIONS"]

FUNCTIONS = Registry()
ENGINE_FUNCTIONS = {
    "exponential": "exp", "log": "ln", "sqrt": "sqrt", "rsqrt": "rsqrt", "tanh": "tanh", "logistic": "sigmoid",
    "sine": "sin", "cosine": "cos", "erf": "erf", "gelu": "gelu", "gelu_tanh": "gelu_tanh", "silu": "silu",
}  # fmt: skip
"""Functions that are one instruction of the scalar engine."""
_LARGE = 64.0
"""From here on erfc is 0 in FP32, and 2 for negative numbers."""
_PI = 3.1415927410125732
"""The FP32 number next to pi."""


def _activate(function: str, lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand) -> None:
    lanes.function(dst, a, function)


FUNCTIONS.update({name: partial(_activate, function) for name, function in ENGINE_FUNCTIONS.items()})


@FUNCTIONS.named("exponential_minus_one")
def _expm1(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand) -> None:
    """Append 2 t / (1 - t), t = tanh(x / 2), for small x, and exp(x) - 1 for others."""
    value = lanes.wide(a)
    t = lanes.function(FP32, value, "tanh", 0.5)
    double = lanes.apply(FP32, t, AluOp.MULTIPLY, 2.0)
    small = lanes.apply(FP32, double, AluOp.DIVIDE, lanes.apply(FP32, 1.0, AluOp.SUBTRACT, t))
    large = lanes.apply(FP32, lanes.function(FP32, value, "exp"), AluOp.SUBTRACT, 1.0)
    near = lanes.chain(UINT8, value, AluOp.ABSOLUTE_MAX, 0.0, AluOp.IS_LT, 0.5)
    lanes.choose(dst, near, small, large)


@FUNCTIONS.named("log_plus_one")
def _log1p(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand) -> None:
    """Append ln(u) x / (u - 1), u = 1 + x: their errors cancel; x where u is 1, ln(u) where it is infinite."""
    value = lanes.wide(a)
    u = lanes.apply(FP32, value, AluOp.ADD, 1.0)
    log = lanes.function(FP32, u, "ln")
    ratio = lanes.apply(FP32, value, AluOp.DIVIDE, lanes.apply(FP32, u, AluOp.SUBTRACT, 1.0))
    product = lanes.apply(FP32, log, AluOp.MULTIPLY, ratio)
    one = lanes.apply(UINT8, u, AluOp.IS_EQUAL, 1.0)
    huge = lanes.apply(UINT8, u, AluOp.IS_EQUAL, inf)
    lanes.choose(dst, one, value, lanes.choose(FP32, huge, log, product))


@FUNCTIONS.named("tan")
def _tan(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand) -> None:
    value = lanes.tile(a, FP32)
    lanes.apply(dst, lanes.function(FP32, value, "sin"), AluOp.DIVIDE, lanes.function(FP32, value, "cos"))


@FUNCTIONS.named("atan2")
def _atan2(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand, b: LaneOperand) -> None:
    """Append arctan |y / x|, subtracted from pi if x is negative, with the sign of y.

    The ratio of two infinities is 1, of two zeros 0.
    """
    y, x = lanes.wide(a), lanes.wide(b)
    up, along = (lanes.function(FP32, one, "abs") for one in (y, x))
    ratio = lanes.apply(FP32, up, AluOp.DIVIDE, along)
    same = lanes.apply(UINT8, up, AluOp.IS_EQUAL, along)
    some = lanes.chain(FP32, along, AluOp.IS_GT, 0.0, AluOp.BYPASS, 0.0)
    lanes.append(isa.tensor_copy_predicated(ratio, same, some))
    angle = lanes.function(FP32, ratio, "arctan")
    rest = lanes.apply(FP32, _PI, AluOp.SUBTRACT, lanes.apply(FP32, angle, AluOp.ADD, _PI - pi))
    left = lanes.chain(UINT8, x.bitcast(INT32), AluOp.IS_LT, 0, AluOp.BYPASS, 0)
    with_sign(lanes, dst, lanes.choose(FP32, left, rest, angle), y)


@FUNCTIONS.named("erfc")
def _erfc(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand) -> None:
    """Append 2 gelu(z) / z, z = -sqrt(2) x, and 1 - erf(x) for small and for large x."""
    value = lanes.wide(a)
    z = lanes.apply(FP32, value, AluOp.MULTIPLY, -sqrt(2.0))
    double = lanes.apply(FP32, lanes.function(FP32, z, "gelu"), AluOp.MULTIPLY, 2.0)
    tail = lanes.apply(FP32, double, AluOp.DIVIDE, z)
    centre = lanes.apply(FP32, 1.0, AluOp.SUBTRACT, lanes.function(FP32, value, "erf"))
    near = lanes.chain(UINT8, value, AluOp.ABSOLUTE_MAX, 0.0, AluOp.IS_LT, 0.5)
    # Where 1 - erf(x) is 0 or 2, the terms of the quotient overflow.
    small = lanes.chain(UINT8, value, AluOp.ABSOLUTE_MAX, 0.0, AluOp.IS_LT, _LARGE)
    tail = lanes.choose(FP32, small, tail, centre)
    lanes.choose(dst, near, centre, tail)


@FUNCTIONS.named("cbrt")
def _cube_root(lanes: Lanes, dst: Tensor, to: ElementKind, of: ElementKind, a: LaneOperand) -> None:
    """Append a power with Newton's step y + (x / y^2 - y) / 3, where that is a number; signs are those of x."""
    value = lanes.wide(a)
    x = lanes.function(FP32, value, "abs")
    y = lanes.apply(FP32, x, AluOp.POWER, 1 / 3)
    ratio = lanes.apply(FP32, x, AluOp.DIVIDE, lanes.apply(FP32, y, AluOp.MULTIPLY, y))
    error = lanes.apply(FP32, ratio, AluOp.SUBTRACT, y)
    part = lanes.apply(FP32, error, AluOp.MULTIPLY, 1 / 3)
    near = lanes.apply(FP32, y, AluOp.ADD, part)
    number = lanes.apply(UINT8, near, AluOp.IS_EQUAL, near)
    with_sign(lanes, dst, lanes.choose(FP32, number, near, y), value)

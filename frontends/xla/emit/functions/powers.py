"""Powers and roots."""

from neuroncore_rtl.frontends.xla.emit.functions.bits import bits_of
from neuroncore_rtl.frontends.xla.emit.functions.registry import Registry
from neuroncore_rtl.frontends.xla.emit.lanes import LaneOperand, Lanes, with_sign, wrap
from neuroncore_rtl.frontends.xla.graph.types import ElementType
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.formats import INT32, UINT8
from neuroncore_rtl.spec.isa import AluOp

__all__: list[str] = []

FUNCTIONS = Registry()


@FUNCTIONS.named("power")
def _power(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: LaneOperand, b: LaneOperand) -> None:
    if to.is_float:
        lanes.apply(dst, a, AluOp.POWER, b)
    else:
        _power_integers(lanes, dst, of, a, b)


def _power_integers(lanes: Lanes, dst: Tensor, of: ElementType, a: LaneOperand, b: LaneOperand) -> None:
    """Append a product of squares for the ones of the exponent.

    As in XLA, a negative exponent gives 1 or -1 for these bases, with the sign by the exponent's last bit, else 0.
    """
    base = first = lanes.wide(a, of.format if of.bits == 32 else INT32)
    exponent = bits_of(lanes, of, b)
    power = lanes.new(base.format)
    lanes.append(isa.memset(power, 1))
    for place in range(of.bits - of.is_signed):
        odd = lanes.chain(lanes.new(UINT8), exponent, AluOp.LOGICAL_SHIFT_RIGHT, place, AluOp.BITWISE_AND, 1)
        more = lanes.apply(lanes.new(base.format), power, AluOp.MULTIPLY, base)
        lanes.append(isa.tensor_copy_predicated(power, odd, more))
        base = lanes.apply(lanes.new(base.format), base, AluOp.MULTIPLY, base)
    if of.is_signed:
        # The base itself for an odd exponent, else its square: of 1 and -1, the power.
        unit = lanes.new(INT32)
        lanes.append(isa.memset(unit, 1))
        odd = lanes.apply(lanes.new(UINT8), exponent, AluOp.BITWISE_AND, 1)
        lanes.append(isa.tensor_copy_predicated(unit, odd, first))
        is_unit = lanes.chain(lanes.new(INT32), first, AluOp.ABSOLUTE_MAX, 0, AluOp.IS_EQUAL, 1)
        unit = lanes.apply(lanes.new(INT32), unit, AluOp.MULTIPLY, is_unit)
        negative = lanes.apply(lanes.new(UINT8), exponent, AluOp.LOGICAL_SHIFT_RIGHT, of.bits - 1)
        lanes.append(isa.tensor_copy_predicated(power, negative, unit))
    if of.bits == 32:
        lanes.append(isa.tensor_copy(dst, power))
    else:
        wrap(lanes, dst, power)


@FUNCTIONS.named("cbrt")
def _cube_root(lanes: Lanes, dst: Tensor, to: ElementType, of: ElementType, a: LaneOperand) -> None:
    """Append a power with Newton's step y + (x / y^2 - y) / 3, where that is a number; signs are those of x."""
    value = lanes.wide(a)
    x = lanes.function(lanes.new(), value, "abs")
    y = lanes.apply(lanes.new(), x, AluOp.POWER, 1 / 3)
    ratio = lanes.apply(lanes.new(), x, AluOp.DIVIDE, lanes.apply(lanes.new(), y, AluOp.MULTIPLY, y))
    error = lanes.apply(lanes.new(), ratio, AluOp.SUBTRACT, y)
    part = lanes.apply(lanes.new(), error, AluOp.MULTIPLY, 1 / 3)
    near = lanes.apply(lanes.new(), y, AluOp.ADD, part)
    number = lanes.apply(lanes.new(UINT8), near, AluOp.IS_EQUAL, near)
    with_sign(lanes, dst, lanes.choose(lanes.new(), number, near, y), value)

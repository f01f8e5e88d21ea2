"""Classification of the special cases of IEEE 754-2019 pow."""

from amaranth import Cat, Module, Signal, signed
from amaranth.lib import enum

from neuroncore_rtl.hdl.arith.fp32 import Fp32
from neuroncore_rtl.spec.formats import FP32

__all__ = ["ONE", "PowerKind", "classify"]

ONE = FP32.bias << FP32.mantissa_bits


class PowerKind(enum.Enum, shape=2):
    """Kind of the result of a power. An EXTREME result is infinite if the operand `grows` is set, else zero."""

    COMPUTED = 0
    EXTREME = 1
    ONE = 2
    NAN = 3


def classify(m: Module, a: Fp32, b: Fp32, kind: Signal, grows: Signal, sign: Signal) -> None:
    """Load registers with the kind of a ** b, whether an extreme result is infinite, and the sign.

    The registers are loaded under the conditions (`m.If`, `m.State`) in which the caller calls this function.
    """
    a_size, b_size = a.as_value()[:31], b.as_value()[:31]
    a_zero, a_inf, a_nan = ~a_size.any(), a_size == FP32.infinity, a_size > FP32.infinity
    b_zero, b_inf, b_nan = ~b_size.any(), b_size == FP32.infinity, b_size > FP32.infinity

    # The shift moves the units bit of b to the top, its fraction below; above 2 ** 24 every number is even.
    places = Signal(signed(FP32.exponent_bits + 1))
    digits = Signal(FP32.precision)
    integer, odd, unit_base = Signal(), Signal(), Signal()
    m.d.comb += [
        places.eq(b.field - FP32.bias),
        digits.eq(Cat(b.fraction, 1) << places[:5]),
        integer.eq(b_zero | ((places >= 0) & ((places > FP32.mantissa_bits) | ~digits[:-1].any()))),
        odd.eq((places >= 0) & (places <= FP32.mantissa_bits) & digits[-1] & integer),
        unit_base.eq(a_size == ONE),
    ]
    undefined = a_nan | b_nan | (a.sign & ~a_zero & ~a_inf & ~integer)
    m.d.sync += [
        grows.eq((a_size > ONE) ^ b.sign),
        sign.eq(a.sign & odd),
        kind.eq(PowerKind.COMPUTED),
    ]
    with m.If(b_zero | (unit_base & ~a.sign)):
        m.d.sync += kind.eq(PowerKind.ONE)
    with m.Elif(undefined):
        m.d.sync += kind.eq(PowerKind.NAN)
    with m.Elif(unit_base):
        m.d.sync += kind.eq(PowerKind.ONE)
    with m.Elif(a_zero | a_inf | b_inf):
        m.d.sync += kind.eq(PowerKind.EXTREME)

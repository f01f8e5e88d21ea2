"""Conversion of FP32 that holds an integer to that integer."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.spec.formats import FP32

__all__ = ["IntoInt"]


class IntoInt(wiring.Component):
    """Exact conversion of an FP32 integer v, |v| < 2**24, to INT32. Combinational (latency 0).

    The array's sums of INT8 products are such integers. For any other value the result is undefined.

    Ports:
        value: FP32 word.
        out: two's complement integer; both zeros give 0.
    """

    value: In(32)
    out: Out(32)

    latency = 0

    def elaborate(self, platform):
        m = Module()
        field = self.value[FP32.mantissa_bits : 31]
        significand = Cat(self.value[: FP32.mantissa_bits], Const(1, 1))
        shift = Signal(5)
        magnitude = Signal(FP32.precision)
        m.d.comb += [
            shift.eq(FP32.bias + FP32.mantissa_bits - field),
            magnitude.eq(Mux(field.any(), significand >> shift, 0)),
            self.out.eq(Mux(self.value[31], -magnitude, magnitude)),
        ]
        return m

"""INT32 to a narrower integer that saturates."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.spec.formats import INT8, INT16

__all__ = ["Saturate"]


class Saturate(wiring.Component):
    """INT32 to the storage word of an integer format; combinational (latency 0, the caller registers the result).

    Ports:
        value: INT32.
        dtype: INT8, INT16 or INT32; of a float the word means nothing.
        word: the nearest value of the format, two's complement, right-aligned, upper bits zero.
    """

    value: In(32)
    dtype: In(FormatCode)
    word: Out(32)

    latency = 0

    def elaborate(self, platform):
        m = Module()
        negative = self.value[31]
        with m.Switch(self.dtype):
            for fmt in (INT8, INT16):
                with m.Case(FormatCode(fmt.code)):
                    fits = Signal(name=f"fits_{fmt.name}")
                    above = self.value[fmt.bits - 1 :]
                    m.d.comb += [
                        fits.eq(Mux(negative, above.all(), ~above.any())),
                        self.word.eq(Mux(fits, self.value[: fmt.bits], fmt.max + negative)),
                    ]
            with m.Default():
                m.d.comb += self.word.eq(self.value)
        return m

"""Saturation of a 32-bit integer to any integer format."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.spec.formats import FORMATS

__all__ = ["Saturate"]

_INTEGERS = tuple(fmt for fmt in FORMATS.values() if not fmt.is_float)


class Saturate(wiring.Component):
    """INT32 or UINT32 to the storage word of an integer format. Combinational (latency 0); the caller registers it.

    Ports:
        value: INT32, or UINT32 if `uint32`.
        uint32: `value` is unsigned.
        dtype: an integer format; for a float the word is undefined.
        word: nearest value of the format, right-aligned, upper bits zero.
    """

    value: In(32)
    uint32: In(1)
    dtype: In(FormatCode)
    word: Out(32)

    latency = 0

    def elaborate(self, platform):
        m = Module()
        negative, fits = Signal(), Signal()
        limit, mask = Signal(32), Signal(32)
        m.d.comb += [
            negative.eq(self.value[31] & ~self.uint32),
            self.word.eq(Mux(fits, self.value, limit) & mask),
        ]
        with m.Switch(self.dtype):
            for fmt in _INTEGERS:
                with m.Case(FormatCode(fmt.code)):
                    above = self.value[fmt.bits - fmt.signed :]
                    # Code of the smallest value: the code of the largest plus one, or zero.
                    smallest = fmt.max + 1 if fmt.signed else 0
                    m.d.comb += [
                        fits.eq(Mux(negative, above.all() if fmt.signed else 0, ~above.any())),
                        limit.eq(Mux(negative, smallest, fmt.max)),
                        mask.eq((1 << fmt.bits) - 1),
                    ]
            with m.Default():
                m.d.comb += [fits.eq(1), mask.eq(-1)]
        return m

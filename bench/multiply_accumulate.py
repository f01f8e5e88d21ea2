# amaranth: UnusedElaboratable=no

"""A multiply-accumulate as it is measured alone."""

from amaranth import Module, Signal
from amaranth.lib import wiring

from neuroncore_rtl.hdl.arith.mac import Mac
from neuroncore_rtl.hdl.arith.operand import SIGNIFICAND_BITS

__all__ = ["MultiplyAccumulate"]


class MultiplyAccumulate(wiring.Component):
    """A multiply-accumulate with the registers of its operands and its sum, as it sits in the array.

    Arguments:
        latency, significand_bits: of :class:`hdl.arith.mac.Mac`.
    """

    def __init__(self, latency: int, significand_bits: int = SIGNIFICAND_BITS):
        self.mac = Mac(latency, significand_bits)
        super().__init__(self.mac.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.mac = mac = self.mac
        x, w, out = (Signal.like(port) for port in (self.x, self.w, self.out))
        m.d.sync += [x.eq(self.x), w.eq(self.w), out.eq(mac.out)]
        m.d.comb += [mac.x.eq(x), mac.w.eq(w), mac.acc.eq(self.acc), self.out.eq(out)]
        return m

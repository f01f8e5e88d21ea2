"""Reduction lanes: combine a beat from the network and one from memory.

FP32 sums use the floating-point adder; all else (INT32 sums, maxima, minima, copies) uses separate integer logic.
Values compare as in the vector engine's ALU: floats as integers, with the bits below the sign inverted if negative,
which orders -0 below +0. If an operand is NaN, the result is the canonical NaN.
"""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.add import Fp32Adder
from neuroncore_rtl.hdl.verilog.hierarchy import shared
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_WIDTHS, ReduceOp

__all__ = ["ReduceLane", "Reducer"]

_BELOW_SIGN = (1 << 31) - 1
_CONTROL = ("op", "integer", "copy")


class ReduceLane(wiring.Component):
    """Computes out = op(a, b) in `LATENCY` cycles; one operation per cycle.

    FP32 sums round once, to nearest even; subnormals are kept, NaN results are canonical. INT32 sums wrap.

    Ports:
        op: a `ReduceOp`.
        integer: the words `a` and `b` are INT32, else FP32.
        copy: `out` is `a`, bit by bit; `op` and `integer` are ignored.
    """

    LATENCY = 1

    op: In(COLLECTIVE_WIDTHS["op"])
    integer: In(1)
    copy: In(1)
    a: In(32)
    b: In(32)
    out: Out(32)

    def elaborate(self, platform):
        m = Module()
        m.submodules.adder = adder = Fp32Adder(self.LATENCY)
        m.d.comb += [adder.a.eq(self.a), adder.b.eq(self.b)]

        keys = [Signal(32, name=f"{name}_key") for name in "ab"]
        for key, word in zip(keys, (self.a, self.b), strict=True):
            m.d.comb += key.eq(word ^ Mux(word[31] & ~self.integer, _BELOW_SIGN, 0))
        below, unordered, sums = (Signal(name=name) for name in ("below", "unordered", "sums"))
        logic = Signal(32)
        late_logic = Signal(32, reset_less=True)
        late_sums = Signal(reset_less=True)
        m.d.comb += [
            below.eq(keys[0].as_signed() < keys[1].as_signed()),
            unordered.eq(~self.integer & ((self.a[:31] > FP32.infinity) | (self.b[:31] > FP32.infinity))),
            sums.eq(~self.copy & ~self.integer & (self.op == ReduceOp.SUM)),
        ]
        with m.If(self.copy):
            m.d.comb += logic.eq(self.a)
        with m.Elif(self.op == ReduceOp.SUM):
            m.d.comb += logic.eq(self.a + self.b)
        with m.Elif(unordered):
            m.d.comb += logic.eq(FP32.nan)
        with m.Else():
            m.d.comb += logic.eq(Mux(below ^ (self.op == ReduceOp.MIN), self.b, self.a))
        m.d.sync += [late_logic.eq(logic), late_sums.eq(sums)]
        m.d.comb += self.out.eq(Mux(late_sums, adder.out, late_logic))
        return m


class Reducer(wiring.Component):
    """One `ReduceLane` per word of a beat, with shared controls; one beat per operand and cycle."""

    LATENCY = ReduceLane.LATENCY

    def __init__(self, link_bytes: int):
        self.link_bytes = link_bytes
        beat = 8 * link_bytes
        super().__init__(
            {
                "op": In(COLLECTIVE_WIDTHS["op"]),
                "integer": In(1),
                "copy": In(1),
                "a": In(beat),
                "b": In(beat),
                "out": Out(beat),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes = [shared(m, f"lane{n}", "reduce_lane", ReduceLane, platform) for n in range(self.link_bytes // 4)]
        for n, lane in enumerate(lanes):
            m.d.comb += [getattr(lane, name).eq(getattr(self, name)) for name in _CONTROL]
            m.d.comb += [lane.a.eq(self.a.word_select(n, 32)), lane.b.eq(self.b.word_select(n, 32))]
        m.d.comb += self.out.eq(Cat(lane.out for lane in lanes))
        return m

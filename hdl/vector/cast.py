"""The end of a lane of the vector engine: an element is dropped or kept, and cast to the format of its destination."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.fp32 import Fp32
from neuroncore_rtl.hdl.arith.round import Fp32Rounder
from neuroncore_rtl.hdl.arith.saturate import Saturate
from neuroncore_rtl.hdl.arith.threefry import ROUNDS, Threefry2x32
from neuroncore_rtl.hdl.vector.control import Cast
from neuroncore_rtl.spec.formats import FP32

__all__ = ["RoundOrSaturate", "threshold"]


class RoundOrSaturate(wiring.Component):
    """One element a cycle.

    Ports:
        index: of the element. key: seed and stream. Both `RANDOM_LATENCY` cycles before the element.
        cast: what to do with it (:class:`Cast`).
        value: FP32, INT32 or UINT32. threshold: where there is dropout, the element is 0 if its random word is below
            this.
        word: storage word, upper bits zero, a cycle later.
    """

    RANDOM_LATENCY = 4
    """Cycles from an index to its random words."""

    index: In(64)
    key: In(data.ArrayLayout(32, 2))
    cast: In(Cast)
    value: In(32)
    threshold: In(33)
    word: Out(32)

    def elaborate(self, platform):
        m = Module()
        m.submodules.random = random = Threefry2x32(ROUNDS // self.RANDOM_LATENCY)
        m.submodules.round = rounder = Fp32Rounder(1)
        m.submodules.saturate = saturate = Saturate()
        kept = Signal(32)
        saturated, integer = Signal(32, reset_less=True), Signal(reset_less=True)
        m.d.comb += [
            random.key.eq(self.key),
            random.counter.eq(self.index),
            kept.eq(Mux(self.cast.dropout & (random.out[1] < self.threshold), 0, self.value)),
            rounder.value.eq(kept),
            rounder.format.eq(self.cast.dtype),
            rounder.stochastic.eq(self.cast.stochastic),
            rounder.random.eq(random.out[0]),
            saturate.value.eq(kept),
            saturate.uint32.eq(self.cast.uint32),
            saturate.dtype.eq(self.cast.dtype),
            self.word.eq(Mux(integer, saturated, rounder.word)),
        ]
        m.d.sync += [saturated.eq(saturate.word), integer.eq(self.cast.integer)]
        return m


def threshold(m: Module, word: Value) -> Signal:
    """Return how many of the 2**32 values of a random word are below p * 2**32: p rounded up, from 0 to 2**32.

    Arguments:
        m: the module that receives the (combinational) logic.
        word: p, FP32; NaN and what is not above 0 give 0.
    """
    p = Fp32(word)
    below, shifted = Signal(33), Signal(32)
    significand = Cat(Const(0, 32 - FP32.precision), p.significand)
    # A significand at the top stands for a p from 1/2 to 1.
    places = Signal(FP32.exponent_bits)
    m.d.comb += [
        places.eq(FP32.bias - 1 - p.field),
        shifted.eq(Mux(places[5:].any(), 0, significand >> places[:5])),
    ]
    with m.If(p.sign | p.nan | p.zero):
        m.d.comb += below.eq(0)
    with m.Elif(p.field >= FP32.bias):
        m.d.comb += below.eq(1 << 32)
    with m.Else():
        # Above the smallest values of its binade by less than a place: one value more is below p.
        lost = (significand & ~(Const(-1, 32) << places[:5])[:32]).any() | places[5:].any()
        m.d.comb += below.eq(shifted + lost)
    return below

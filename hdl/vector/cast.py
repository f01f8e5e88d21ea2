"""End of a vector lane: dropout, and the cast to the destination's format."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.fp32 import Fp32
from neuroncore_rtl.hdl.arith.pipeline import delayed
from neuroncore_rtl.hdl.arith.round import Fp32Rounder
from neuroncore_rtl.hdl.arith.saturate import Saturate
from neuroncore_rtl.hdl.arith.threefry import ROUNDS, Threefry2x32
from neuroncore_rtl.hdl.vector.control import Cast
from neuroncore_rtl.spec.formats import FP32

__all__ = ["RoundOrSaturate", "threshold"]


class RoundOrSaturate(wiring.Component):
    """Dropout and cast. Throughput: one element per cycle.

    Arguments:
        latency: cycles from an element to its word: 1, or 5 with a pipelined cast.
        random_latency: cycles from an index to its random words.
        random: build the random generator, for dropout and stochastic rounding.

    Ports:
        index: the element's index, `random_latency` cycles before the element.
        key: seed and stream of the random words, with the index.
        cast: control of the cast (`Cast`).
        value: the element, in FP32, INT32 or UINT32.
        threshold: with dropout, the element becomes 0 if its random word is below it.
        word: storage word of the element, upper bits zero, `latency` cycles later.
    """

    index: In(64)
    key: In(data.ArrayLayout(32, 2))
    cast: In(Cast)
    value: In(32)
    threshold: In(33)
    word: Out(32)

    def __init__(self, latency: int = 1, random_latency: int = 4, random: bool = True):
        self.latency, self.random_latency, self.random = latency, random_latency, random
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        staged = self.latency > 1
        m.submodules.round = rounder = Fp32Rounder(self.latency - staged)
        m.submodules.saturate = saturate = Saturate()
        bits = self._random_words(m) if self.random else Const(0, 64)
        value, cast, word = Signal(32), Signal(Cast), bits[:32]
        m.d.comb += value.eq(Mux(self.cast.dropout & (bits[32:] < self.threshold), 0, self.value))
        m.d.comb += cast.eq(self.cast)
        if staged:
            value, cast, word = (
                delayed(m, signal, 1, name) for signal, name in ((value, "kept"), (cast, "cast"), (word, "word"))
            )
        m.d.comb += [
            rounder.value.eq(value),
            rounder.format.eq(cast.dtype),
            rounder.stochastic.eq(cast.stochastic & self.random),
            rounder.random.eq(word),
            saturate.value.eq(value),
            saturate.uint32.eq(cast.uint32),
            saturate.dtype.eq(cast.dtype),
        ]
        saturated = delayed(m, saturate.word, rounder.latency, "saturated")
        integer = delayed(m, cast.integer, rounder.latency, "integer")
        m.d.comb += self.word.eq(Mux(integer, saturated, rounder.word))
        return m

    def _random_words(self, m: Module) -> Value:
        m.submodules.random = random = Threefry2x32(-(-ROUNDS // self.random_latency))
        m.d.comb += [random.key.eq(self.key), random.counter.eq(self.index)]
        return delayed(m, random.out.as_value(), self.random_latency - random.latency, "random")


def threshold(m: Module, word: Value) -> Signal:
    """Return how many of the 2**32 values of a random word are below p * 2**32: from 0 to 2**32.

    `word` is p in FP32; NaN and values not above 0 give 0.
    """
    p = Fp32(word)
    below, shifted = Signal(33), Signal(32)
    significand = Cat(Const(0, 32 - FP32.precision), p.significand)
    # Without a shift, the significand at the top of the word represents a p from 1/2 to 1.
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
        # If p * 2**32 has a fraction, one more value is below it.
        lost = (significand & ~(Const(-1, 32) << places[:5])[:32]).any() | places[5:].any()
        m.d.comb += below.eq(shifted + lost)
    return below

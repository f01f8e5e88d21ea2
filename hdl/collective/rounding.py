"""BF16 rounding: turns a beat of FP32 into half a beat of BF16, to nearest even or stochastically.

BF16 is the upper half of FP32, so rounding adds a 16-bit number to the lower half and keeps the upper half. To nearest
even, the number is 0x7fff plus the lowest kept bit; stochastically, it is the upper half of a random word (its lower
half could not carry). The lower half of an infinity is 0, so it stays exact. If the largest number overflows, the carry
makes it infinite.
"""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.threefry import ROUNDS, Threefry2x32
from neuroncore_rtl.hdl.verilog.hierarchy import shared
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_WIDTHS

__all__ = ["Rounding", "RoundingLane"]

_BITS = BF16.bits
_BELOW_HALF = (1 << (_BITS - 1)) - 1
_INPUTS = ("seed", "stream", "stochastic")


class RoundingLane(wiring.Component):
    """Rounds FP32 to BF16 without latency; the random word takes `RANDOM_LATENCY` cycles.

    The random word is word 0 of Threefry-2x32 with key (seed, stream) and counter (index, 0).

    Ports:
        index: index of the element, `RANDOM_LATENCY` cycles before `value`.
        seed: seed of the random word, at the same time as `index`.
        stream: stream of the random word, at the same time as `index`.
        value: FP32 word.
        stochastic: round stochastically, else to nearest even.
        out: BF16 word; NaN is canonical.
    """

    RANDOM_LATENCY = 4

    index: In(32)
    seed: In(COLLECTIVE_WIDTHS["seed"])
    stream: In(COLLECTIVE_WIDTHS["stream"])
    value: In(32)
    stochastic: In(1)
    out: Out(_BITS)

    def elaborate(self, platform):
        m = Module()
        m.submodules.random = random = Threefry2x32(ROUNDS // self.RANDOM_LATENCY)
        m.d.comb += [
            random.key[0].eq(self.seed),
            random.key[1].eq(self.stream),
            random.counter[0].eq(self.index),
        ]
        addend = Signal(_BITS)
        rounded = Signal(31)
        m.d.comb += [
            addend.eq(Mux(self.stochastic, random.out[0][_BITS:], _BELOW_HALF + self.value[_BITS])),
            rounded.eq(self.value[:31] + addend),
            self.out.eq(Mux(self.value[:31] > FP32.infinity, BF16.nan, Cat(rounded[_BITS:], self.value[31]))),
        ]
        return m


class Rounding(wiring.Component):
    """One `RoundingLane` per word of a beat, with shared controls; one beat per cycle.

    Ports:
        first: index of the element in lane 0; the other lanes have the next indices.
        value: FP32 beat.
        out: the rounded BF16 words, which fill half a beat.
    """

    RANDOM_LATENCY = RoundingLane.RANDOM_LATENCY

    def __init__(self, link_bytes: int):
        self.link_bytes = link_bytes
        super().__init__(
            {
                "first": In(32),
                "seed": In(COLLECTIVE_WIDTHS["seed"]),
                "stream": In(COLLECTIVE_WIDTHS["stream"]),
                "stochastic": In(1),
                "value": In(8 * link_bytes),
                "out": Out(4 * link_bytes),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes = [
            shared(m, f"lane{n}", "bf16_rounding_lane", RoundingLane, platform) for n in range(self.link_bytes // 4)
        ]
        for n, lane in enumerate(lanes):
            m.d.comb += [getattr(lane, name).eq(getattr(self, name)) for name in _INPUTS]
            m.d.comb += [lane.index.eq(self.first + n), lane.value.eq(self.value.word_select(n, 32))]
        m.d.comb += self.out.eq(Cat(lane.out for lane in lanes))
        return m

"""Mean and variance of a lane's elements in one pass, and of the union of such statistics.

BN_STATS takes an element a cycle. Two adders and two fused multiply-adds form a pipeline of four stages: the distance
to the mean, the new mean, the distance to that, the new sum of squares. The mean goes back after two cycles, and
elements take turns between the means of the even and the odd ones, so no one waits. BN_AGGR, an element every
`SET_INTERVAL` cycles, uses the same units, and the lane's divider.
"""

from types import SimpleNamespace

from amaranth import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.add import Fp32Adder
from neuroncore_rtl.hdl.arith.divide import Fp32Divider
from neuroncore_rtl.hdl.arith.fma import Fp32Fma
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa.elementwise import STATS_ELEMENTS

__all__ = ["SHARES", "Sample", "Statistics"]

_NEGATIVE_ZERO = 1 << 31
"""Neutral element of the addition: a product plus this is the rounded product."""


def _share(k: int) -> int:
    """Return fp32(1 / k); the quotient is never halfway between two numbers, as k is a power of two or has an odd
    factor."""
    places = FP32.mantissa_bits + (k - 1).bit_length()
    significand = ((1 << places) + k // 2) // k
    return (FP32.bias + FP32.mantissa_bits - places << FP32.mantissa_bits) + significand - (1 << FP32.mantissa_bits)


SHARES: tuple[int, ...] = tuple(_share(k) for k in range(1, STATS_ELEMENTS // 2 + 1))
"""FP32 words of 1 / k, k from 1 to the elements of either parity, from integers."""


class Sample(data.Struct):
    """What the word is. update: an element of BN_STATS. odd: of the odd ones. count, mean, m2: the three words of a set
    of BN_AGGR. first: the first element of its parity; the first set's count. variance: no word; start the division
    m2 / n."""

    update: unsigned(1)
    odd: unsigned(1)
    count: unsigned(1)
    mean: unsigned(1)
    m2: unsigned(1)
    first: unsigned(1)
    variance: unsigned(1)


class Statistics(wiring.Component):
    """Welford's method for two interleaved streams, and Chan's for the union of sets, every operation rounded once.

    Ports:
        x: FP32. sample: what it is (:class:`Sample`); zero if there is none. Elements of BN_STATS alternate between
            even and odd ones, any number of cycles apart; words of BN_AGGR are at least `SET_INTERVAL` cycles apart.
        share: fp32(1 / k), k = 1, 2, ... the element's number in its parity, in the cycle after x.
        number, out: out is result 1, 2, 4 or 5 of BN_STATS (mean, m2 of the even, then of the odd elements) in the same
            cycle; 1 is the mean of BN_AGGR. A step that might have brought a sample in cycle c reads it in cycle
            c + `RESULT_DELAY`: it then sees all samples of the steps before it, and none of those behind it, if result
            k of BN_STATS follows the last element by 1 + k cycles or more, and that of BN_AGGR by `SET_INTERVAL`.
        divide, numerator, denominator: a division for the divider to start in this cycle.
        quotient: the divider's output, held until the next quotient.
    """

    RESULT_DELAY = 2
    """Cycles from a step to its reading of a result."""

    SET_INTERVAL = max(3, -(-(Fp32Divider.LATENCY + 2) // 3))
    """Least cycles between two words of BN_AGGR: a third of what the divider needs, and the two operations after it."""

    _QUOTIENT = max(2, 1 + Fp32Divider.LATENCY - 2 * SET_INTERVAL)
    """Cycles from a set's last word to when its quotient and all other operands of the new mean are there."""

    x: In(32)
    sample: In(Sample)
    share: In(32)
    number: In(3)
    out: Out(32)
    divide: Out(1)
    numerator: Out(32)
    denominator: Out(32)
    quotient: In(32)

    def elaborate(self, platform):
        m = Module()
        units = SimpleNamespace(distance=Fp32Adder(1), moved=Fp32Fma(1), rest=Fp32Adder(1), square=Fp32Fma(1))
        for name, unit in vars(units).items():
            m.submodules[name] = unit
        state = _State(m, self.sample, self._QUOTIENT)
        self._distance(m, units, state)
        self._mean(m, units, state)
        self._rest(m, units, state)
        self._squares(m, units, state)
        self._sets(m, units, state)
        self._read(m, state)
        return m

    def _distance(self, m: Module, units, state) -> None:
        """The distance to the mean, which may be on its way; of a count, the sum of counts."""
        sample, samples, distance = self.sample, state.samples, units.distance
        mean_now, x_count = Signal(32), Signal(32)
        with m.If(~sample.first):
            m.d.comb += mean_now.eq(Array(state.means)[sample.odd])
            with m.If(samples[2].update & (samples[2].odd == sample.odd)):
                m.d.comb += mean_now.eq(units.moved.out)
        m.d.comb += [
            x_count.eq(Mux(sample.first, 0, state.n)),
            distance.a.eq(self.x),
            distance.b.eq(Mux(sample.count, x_count, _negated(mean_now))),
        ]
        with m.If(sample.update | sample.count):
            m.d.sync += state.x_1.eq(self.x)
        with m.If(samples[1].update):
            m.d.sync += state.x_2.eq(state.x_1)
        with m.If(samples[1].update | samples[1].mean):
            m.d.sync += state.d_1.eq(distance.out)
        with m.If(samples[2].update):
            m.d.sync += state.d_2.eq(state.d_1)

    def _mean(self, m: Module, units, state) -> None:
        """The new mean."""
        samples, means, moved = state.samples, state.means, units.moved
        mean = Mux(samples[1].first, 0, Array(means)[samples[1].odd])
        m.d.comb += [
            moved.a.eq(Mux(state.arrived, state.d_1, units.distance.out)),
            moved.b.eq(Mux(state.arrived, self.quotient, self.share)),
            moved.c.eq(Mux(state.arrived, means[0], mean)),
        ]
        with m.If(samples[2].update):
            m.d.sync += Array(means)[samples[2].odd].eq(moved.out)
        with m.If(state.meant & ~state.set_empty):
            m.d.sync += means[0].eq(moved.out)

    def _rest(self, m: Module, units, state) -> None:
        """The distance to the new mean; of the last word of a set, the sum of its squares and those before it."""
        m.d.comb += [
            units.rest.a.eq(Mux(self.sample.m2, state.m2s[0], state.x_2)),
            units.rest.b.eq(Mux(self.sample.m2, self.x, _negated(units.moved.out))),
        ]

    def _squares(self, m: Module, units, state) -> None:
        """The sum of squares; and what there is of the odd elements before the first of them."""
        samples, m2s, square = state.samples, state.m2s, units.square

        def multiply(a, b, c):
            return [square.a.eq(a), square.b.eq(b), square.c.eq(c)]

        m.d.comb += multiply(state.d_2, units.rest.out, Array(m2s)[samples[3].odd])
        with m.If(samples[3].first):
            m.d.comb += square.c.eq(0)
        with m.If(samples[1].mean):
            m.d.comb += multiply(units.distance.out, state.n, _NEGATIVE_ZERO)
        with m.If(state.arrived):
            m.d.comb += multiply(state.d_1, self.quotient, _NEGATIVE_ZERO)
        with m.If(state.meant):
            m.d.comb += multiply(state.weighted, square.out, state.sum_m2)
        with m.If(samples[4].update):
            m.d.sync += Array(m2s)[samples[4].odd].eq(square.out)
        with m.If(state.squared & ~state.set_empty):
            m.d.sync += m2s[0].eq(square.out)

        with m.If(samples[2].update & samples[2].first & ~samples[2].odd):
            m.d.sync += state.means[1].eq(0)
        with m.If(samples[4].update & samples[4].first & ~samples[4].odd):
            m.d.sync += m2s[1].eq(0)

    def _sets(self, m: Module, units, state) -> None:
        """What is kept of a set until its quotient is there, and the divisions."""
        sample, samples = self.sample, state.samples
        empty, total = Signal(), Signal(32, reset_less=True)
        with m.If(sample.count):
            m.d.sync += empty.eq(~self.x[:31].any())
            with m.If(sample.first):
                m.d.sync += [state.n.eq(0), state.means[0].eq(0), state.m2s[0].eq(0)]
        with m.If(samples[1].count):
            m.d.sync += total.eq(units.distance.out)
        with m.If(samples[2].mean):
            m.d.sync += state.weighted.eq(units.square.out)
        with m.If(sample.m2):
            m.d.sync += state.set_empty.eq(empty)
        with m.If(samples[1].m2):
            m.d.sync += state.sum_m2.eq(units.rest.out)
        with m.If(state.arrived & ~state.set_empty):
            m.d.sync += state.n.eq(total)
        m.d.comb += [
            self.divide.eq(samples[1].count | sample.variance),
            self.numerator.eq(Mux(sample.variance, state.m2s[0], state.x_1)),
            self.denominator.eq(Mux(sample.variance, state.n, units.distance.out)),
        ]

    def _read(self, m: Module, state) -> None:
        means, m2s = state.means, state.m2s
        with m.Switch(self.number):
            for number, word in {1: means[0], 2: m2s[0], 4: means[1], 5: m2s[1]}.items():
                with m.Case(number):
                    m.d.comb += self.out.eq(word)
            with m.Default():
                pass


class _State:
    """The registers. samples: those of now and of up to four cycles ago. means, m2s: of the even, or all, elements, and
    of the odd ones. n: elements. x_1, x_2, d_1, d_2: an element and its distance so many stages on. arrived, meant,
    squared: a set's quotient is there; its mean, its sum of squares is. weighted, sum_m2, set_empty: of a set."""

    def __init__(self, m: Module, sample, quotient: int):
        self.samples = [sample]
        for stage in range(1, 5):
            late = Signal(Sample, name=f"sample_{stage}")
            m.d.sync += late.eq(self.samples[-1])
            self.samples.append(late)
        self.means = [Signal(32, name=f"mean_{parity}") for parity in ("even", "odd")]
        self.m2s = [Signal(32, name=f"m2_{parity}") for parity in ("even", "odd")]
        self.n = Signal(32)
        self.x_1, self.x_2, self.d_1, self.d_2 = (
            Signal(32, name=name, reset_less=True) for name in ("x_1", "x_2", "d_1", "d_2")
        )
        self.weighted, self.sum_m2 = (Signal(32, name=name, reset_less=True) for name in ("weighted", "sum_m2"))
        self.set_empty = Signal()
        timeline = Signal(quotient + 2)
        m.d.sync += timeline.eq(Cat(sample.m2, timeline))
        self.arrived, self.meant, self.squared = timeline[quotient - 1 :]


def _negated(word):
    return Cat(word[:31], ~word[31])

"""Mean and variance of a lane's elements in one pass, and of the union of such statistics.

BN_STATS takes an element a cycle. Two adders and two fused multiply-adds form a pipeline of four stages: the distance
to the mean, the new mean, the distance to that, the new sum of squares. The mean goes back after two cycles, and
elements take turns between the means of the even and the odd ones, so no one waits. BN_AGGR, an element every
`SET_INTERVAL` cycles, uses the same units, and the lane's divider.
"""

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
        m.submodules.distance = distance = Fp32Adder(1)
        m.submodules.moved = moved = Fp32Fma(1)
        m.submodules.rest = rest = Fp32Adder(1)
        m.submodules.square = square = Fp32Fma(1)

        samples = [self.sample]
        for stage in range(1, 5):
            late = Signal(Sample, name=f"sample_{stage}")
            m.d.sync += late.eq(samples[-1])
            samples.append(late)
        means, m2s = ([Signal(32, name=f"{name}_{parity}") for parity in ("even", "odd")] for name in ("mean", "m2"))
        n, total = Signal(32), Signal(32, reset_less=True)
        empty, set_empty = Signal(), Signal()
        x_1, x_2, d_1, d_2 = (Signal(32, name=name, reset_less=True) for name in ("x_1", "x_2", "d_1", "d_2"))
        weighted, sum_m2 = Signal(32, reset_less=True), Signal(32, reset_less=True)
        timeline = Signal(self._QUOTIENT + 2)
        arrived, meant, squared = timeline[self._QUOTIENT - 1 :]
        m.d.sync += timeline.eq(Cat(self.sample.m2, timeline))

        # The distance to the mean, which may be on its way.
        mean_now, x_count = Signal(32), Signal(32)
        with m.If(~self.sample.first):
            m.d.comb += mean_now.eq(Array(means)[self.sample.odd])
            with m.If(samples[2].update & (samples[2].odd == self.sample.odd)):
                m.d.comb += mean_now.eq(moved.out)
        m.d.comb += [
            x_count.eq(Mux(self.sample.first, 0, n)),
            distance.a.eq(self.x),
            distance.b.eq(Mux(self.sample.count, x_count, _negated(mean_now))),
        ]
        with m.If(self.sample.update | self.sample.count):
            m.d.sync += x_1.eq(self.x)
        with m.If(samples[1].update):
            m.d.sync += x_2.eq(x_1)
        with m.If(samples[1].update | samples[1].mean):
            m.d.sync += d_1.eq(distance.out)
        with m.If(samples[2].update):
            m.d.sync += d_2.eq(d_1)

        # The new mean.
        mean_1 = Mux(samples[1].first, 0, Array(means)[samples[1].odd])
        m.d.comb += [
            moved.a.eq(Mux(arrived, d_1, distance.out)),
            moved.b.eq(Mux(arrived, self.quotient, self.share)),
            moved.c.eq(Mux(arrived, means[0], mean_1)),
        ]
        with m.If(samples[2].update):
            m.d.sync += Array(means)[samples[2].odd].eq(moved.out)
        with m.If(meant & ~set_empty):
            m.d.sync += means[0].eq(moved.out)

        # The distance to the new mean.
        m.d.comb += [
            rest.a.eq(Mux(self.sample.m2, m2s[0], x_2)),
            rest.b.eq(Mux(self.sample.m2, self.x, _negated(moved.out))),
        ]

        # The sum of squares.
        m.d.comb += [square.a.eq(d_2), square.b.eq(rest.out), square.c.eq(Array(m2s)[samples[3].odd])]
        with m.If(samples[3].first):
            m.d.comb += square.c.eq(0)
        with m.If(samples[1].mean):
            m.d.comb += [square.a.eq(distance.out), square.b.eq(n), square.c.eq(_NEGATIVE_ZERO)]
        with m.If(arrived):
            m.d.comb += [square.a.eq(d_1), square.b.eq(self.quotient), square.c.eq(_NEGATIVE_ZERO)]
        with m.If(meant):
            m.d.comb += [square.a.eq(weighted), square.b.eq(square.out), square.c.eq(sum_m2)]
        with m.If(samples[4].update):
            m.d.sync += Array(m2s)[samples[4].odd].eq(square.out)
        with m.If(squared & ~set_empty):
            m.d.sync += m2s[0].eq(square.out)

        # What there is of the odd elements before the first of them.
        with m.If(samples[2].update & samples[2].first & ~samples[2].odd):
            m.d.sync += means[1].eq(0)
        with m.If(samples[4].update & samples[4].first & ~samples[4].odd):
            m.d.sync += m2s[1].eq(0)

        # The sets.
        with m.If(self.sample.count):
            m.d.sync += empty.eq(~self.x[:31].any())
            with m.If(self.sample.first):
                m.d.sync += [n.eq(0), means[0].eq(0), m2s[0].eq(0)]
        with m.If(samples[1].count):
            m.d.sync += total.eq(distance.out)
        with m.If(samples[2].mean):
            m.d.sync += weighted.eq(square.out)
        with m.If(self.sample.m2):
            m.d.sync += set_empty.eq(empty)
        with m.If(samples[1].m2):
            m.d.sync += sum_m2.eq(rest.out)
        with m.If(arrived & ~set_empty):
            m.d.sync += n.eq(total)
        m.d.comb += [
            self.divide.eq(samples[1].count | self.sample.variance),
            self.numerator.eq(Mux(self.sample.variance, m2s[0], x_1)),
            self.denominator.eq(Mux(self.sample.variance, n, distance.out)),
        ]

        with m.Switch(self.number):
            for number, word in {1: means[0], 2: m2s[0], 4: means[1], 5: m2s[1]}.items():
                with m.Case(number):
                    m.d.comb += self.out.eq(word)
            with m.Default():
                pass
        return m


def _negated(word):
    return Cat(word[:31], ~word[31])

"""Mean and variance of a lane's elements in one pass, and of the union of such statistics.

An element of BN_STATS takes four dependent operations: distance to the mean, new mean, distance to the new mean, new
sum of squares. The mean feeds back after two operations, so even and odd elements have separate statistics: an element
uses the mean of its parity. The lane's first ALU computes the mean, the second the sum of squares. If an ALU takes one
cycle, the throughput is one element per cycle; else an element stalls until the previous mean is done. The ALUs have no
other operations meanwhile: results are read after the last element, and the ALUs pass them unchanged. BN_AGGR uses the
same units, and the lane's divider.
"""

from amaranth import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.vector.alu import NEGATIVE_ZERO, Fused, Sum
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa.elementwise import STATS_ELEMENTS

__all__ = ["SHARES", "Sample", "Statistics"]


def _share(k: int) -> int:
    """Return fp32(1 / k).

    The quotient is never a tie between two numbers: k is a power of two or has an odd factor.
    """
    places = FP32.mantissa_bits + (k - 1).bit_length()
    significand = ((1 << places) + k // 2) // k
    return (FP32.bias + FP32.mantissa_bits - places << FP32.mantissa_bits) + significand - (1 << FP32.mantissa_bits)


SHARES: tuple[int, ...] = tuple(_share(k) for k in range(1, STATS_ELEMENTS // 2 + 1))
"""FP32 words of 1 / k, k from 1 to the number of elements of one parity, computed with integers."""


class Sample(data.Struct):
    """Kind of the word at the input of the statistics.

    Fields:
        update: the word is an element of BN_STATS.
        odd: with `update`, the index of the element is odd.
        count, mean, m2: the word is the count, the mean, the sum of squares m2 of a BN_AGGR set.
        first: the word is the first of its parity, or the count of the first set.
        variance: there is no word; the division m2 / n starts.
    """

    update: unsigned(1)
    odd: unsigned(1)
    count: unsigned(1)
    mean: unsigned(1)
    m2: unsigned(1)
    first: unsigned(1)
    variance: unsigned(1)


class Statistics(wiring.Component):
    """Welford's method for two interleaved streams, and Chan's for the union of sets; every operation rounds once.

    Arguments:
        latency: cycles of an ALU.

    Ports:
        x: FP32 word.
        sample: kind of x (`Sample`); zero for none. Elements of BN_STATS are even and odd in turn, at least
            `interval` cycles apart; words of BN_AGGR at least `set_interval`.
        share: fp32(1 / k) for the k-th element of its parity, from k = 1, `latency` cycles after x.
        sum0, fused0, sum1, fused1: requests to the first ALU (0) and to the second ALU (1).
        summed0, multiplied0, summed1, multiplied1: results of these requests, `latency` cycles later.
        number, out: result `number`, in the same cycle: 1, 2, 4 and 5 of BN_STATS are mean and m2 of the even, then of
            the odd elements; 1 of BN_AGGR is the mean. A step without a sample, which enters in cycle c, reads its
            result in cycle c + `result_delay`. The result includes exactly the samples of earlier steps, if result k of
            BN_STATS follows the last element by at least 1 + k intervals, and the mean of BN_AGGR by `set_interval`.
        divide, numerator, denominator: a division to start in this cycle.
        quotient: output of the divider, held until its next quotient.
    """

    x: In(32)
    sample: In(Sample)
    share: In(32)
    number: In(3)
    out: Out(32)
    sum0: Out(Sum)
    fused0: Out(Fused)
    sum1: Out(Sum)
    fused1: Out(Fused)
    summed0: In(32)
    multiplied0: In(32)
    summed1: In(32)
    multiplied1: In(32)
    divide: Out(1)
    numerator: Out(32)
    denominator: Out(32)
    quotient: In(32)

    def __init__(self, latency: int = 1):
        self.latency = latency
        self.set_interval = timing.set_interval(latency)
        super().__init__()

    @property
    def interval(self) -> int:
        return 1 if self.latency == 1 else self.latency + 1

    @property
    def result_delay(self) -> int:
        return 2 * self.latency

    def elaborate(self, platform):
        m = Module()
        state = _State(m, self.sample, self.latency, timing.quotient_wait(self.latency, self.set_interval))
        self._distance(m, state)
        self._mean(m, state)
        self._rest(m, state)
        self._squares(m, state)
        self._sets(m, state)
        self._select_output(m, state)
        return m

    def _distance(self, m: Module, state) -> None:
        """Request an element's distance to the mean; the newest mean may still be the output of an ALU.

        For the count of a set, request the sum of all counts.
        """
        sample, samples, distance = self.sample, state.samples, self.sum0
        mean_now, x_count = Signal(32), Signal(32)
        with m.If(~sample.first):
            m.d.comb += mean_now.eq(Array(state.means)[sample.odd])
            if self.interval == 1:
                with m.If(samples[2].update & (samples[2].odd == sample.odd)):
                    m.d.comb += mean_now.eq(self.multiplied0)
        m.d.comb += [
            x_count.eq(Mux(sample.first, 0, state.n)),
            distance.takes.eq(sample.update | sample.count | sample.mean),
            distance.a.eq(self.x),
            distance.b.eq(Mux(sample.count, x_count, _negated(mean_now))),
        ]
        with m.If(sample.update | sample.count):
            m.d.sync += state.x_1.eq(self.x)
        with m.If(samples[1].update):
            m.d.sync += state.x_2.eq(state.x_1)
        with m.If(samples[1].update | samples[1].mean):
            m.d.sync += state.d_1.eq(self.summed0)
        with m.If(samples[2].update):
            m.d.sync += state.d_2.eq(state.d_1)

    def _mean(self, m: Module, state) -> None:
        samples, means, moved = state.samples, state.means, self.fused0
        mean = Mux(samples[1].first, 0, Array(means)[samples[1].odd])
        m.d.comb += [
            moved.takes.eq(samples[1].update | state.arrived),
            moved.a.eq(Mux(state.arrived, state.d_1, self.summed0)),
            moved.b.eq(Mux(state.arrived, self.quotient, self.share)),
            moved.c.eq(Mux(state.arrived, means[0], mean)),
        ]
        with m.If(samples[2].update):
            m.d.sync += Array(means)[samples[2].odd].eq(self.multiplied0)
        with m.If(state.meant & ~state.set_empty):
            m.d.sync += means[0].eq(self.multiplied0)

    def _rest(self, m: Module, state) -> None:
        m.d.comb += [
            self.sum1.takes.eq(state.samples[2].update | self.sample.m2),
            self.sum1.a.eq(Mux(self.sample.m2, state.m2s[0], state.x_2)),
            self.sum1.b.eq(Mux(self.sample.m2, self.x, _negated(self.multiplied0))),
        ]

    def _squares(self, m: Module, state) -> None:
        """Request the new sum of squares m2.

        Also clear the state of the odd elements when the first even element arrives.
        """
        samples, m2s, square = state.samples, state.m2s, self.fused1

        def multiply(a, b, c):
            return [square.a.eq(a), square.b.eq(b), square.c.eq(c)]

        m.d.comb += square.takes.eq(samples[3].update | samples[1].mean | state.arrived | state.meant)
        m.d.comb += multiply(state.d_2, self.summed1, Array(m2s)[samples[3].odd])
        with m.If(samples[3].first):
            m.d.comb += square.c.eq(0)
        with m.If(samples[1].mean):
            m.d.comb += multiply(self.summed0, state.n, NEGATIVE_ZERO)
        with m.If(state.arrived):
            m.d.comb += multiply(state.d_1, self.quotient, NEGATIVE_ZERO)
        with m.If(state.meant):
            m.d.comb += multiply(state.weighted, self.multiplied1, state.sum_m2)
        with m.If(samples[4].update):
            m.d.sync += Array(m2s)[samples[4].odd].eq(self.multiplied1)
        with m.If(state.squared & ~state.set_empty):
            m.d.sync += m2s[0].eq(self.multiplied1)

        with m.If(samples[2].update & samples[2].first & ~samples[2].odd):
            m.d.sync += state.means[1].eq(0)
        with m.If(samples[4].update & samples[4].first & ~samples[4].odd):
            m.d.sync += m2s[1].eq(0)

    def _sets(self, m: Module, state) -> None:
        """Hold the words of a BN_AGGR set until its quotient is valid, and request the divisions.

        The quotient is the count of the set divided by the sum of all counts so far.
        """
        sample, samples = self.sample, state.samples
        empty, total = Signal(), Signal(32, reset_less=True)
        with m.If(sample.count):
            m.d.sync += empty.eq(~self.x[:31].any())
            with m.If(sample.first):
                m.d.sync += [state.n.eq(0), state.means[0].eq(0), state.m2s[0].eq(0)]
        with m.If(samples[1].count):
            m.d.sync += total.eq(self.summed0)
        with m.If(samples[2].mean):
            m.d.sync += state.weighted.eq(self.multiplied1)
        with m.If(sample.m2):
            m.d.sync += state.set_empty.eq(empty)
        with m.If(samples[1].m2):
            m.d.sync += state.sum_m2.eq(self.summed1)
        with m.If(state.arrived & ~state.set_empty):
            m.d.sync += state.n.eq(total)
        m.d.comb += [
            self.divide.eq(samples[1].count | sample.variance),
            self.numerator.eq(Mux(sample.variance, state.m2s[0], state.x_1)),
            self.denominator.eq(Mux(sample.variance, state.n, self.summed0)),
        ]

    def _select_output(self, m: Module, state) -> None:
        means, m2s = state.means, state.m2s
        with m.Switch(self.number):
            for number, word in {1: means[0], 2: m2s[0], 4: means[1], 5: m2s[1]}.items():
                with m.Case(number):
                    m.d.comb += self.out.eq(word)
            with m.Default():
                pass


class _State:
    """Registers of the statistics.

    An operation here is an addition or a multiply-add of an ALU. A set is the count, mean and sum of squares (m2) of
    some elements, which BN_AGGR combines with the earlier sets.

    Attributes:
        samples: kind of the current word, and of the words that arrived 1, 2, 3 and 4 ALU latencies ago.
        means, m2s: two means and two sums of squares: of the even elements (in BN_AGGR of all sets), and of the odd
            elements.
        n: total count of the sets combined so far.
        x_1, x_2: the elements that arrived 1 and 2 operations ago.
        d_1, d_2: distance of an element to the mean, computed 1 and 2 operations ago.
        arrived: pulse in the cycle in which the weight of the current set (its count divided by `n`) is valid.
        meant: pulse in the cycle in which the new mean is valid.
        squared: pulse in the cycle in which the new sum of squares is valid.
        weighted: `n` times the distance of the current set's mean to the mean of all earlier sets.
        sum_m2: sum of the m2 of all sets, with the current one.
        set_empty: the count of the current set is 0.
    """

    def __init__(self, m: Module, sample, latency: int, quotient: int):
        samples = [sample]
        for cycle in range(1, 4 * latency + 1):
            late = Signal(Sample, name=f"sample_{cycle}")
            m.d.sync += late.eq(samples[-1])
            samples.append(late)
        self.samples = samples[::latency]
        self.means = [Signal(32, name=f"mean_{parity}") for parity in ("even", "odd")]
        self.m2s = [Signal(32, name=f"m2_{parity}") for parity in ("even", "odd")]
        self.n = Signal(32)
        self.x_1, self.x_2, self.d_1, self.d_2 = (
            Signal(32, name=name, reset_less=True) for name in ("x_1", "x_2", "d_1", "d_2")
        )
        self.weighted, self.sum_m2 = (Signal(32, name=name, reset_less=True) for name in ("weighted", "sum_m2"))
        self.set_empty = Signal()
        timeline = Signal(quotient + 2 * latency)
        m.d.sync += timeline.eq(Cat(sample.m2, timeline))
        self.arrived, self.meant, self.squared = timeline[quotient - 1 :: latency]


def _negated(word):
    return Cat(word[:31], ~word[31])

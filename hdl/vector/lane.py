"""A lane of the vector engine: the datapath of one partition.

    a, b -> widen -> op0 -> op1 -> [negate, statistics] -> [dropout] -> round or saturate -> word
              0       1      2            3                            4                       5

The stages are numbered by the registers before them. Random words take until stage 4, and so meet their element without
a delay. op1 holds the running result of a reduction or a scan in its own output register, and gives itself that word
again where there is nothing to do. Division and power, one unit of each, take many cycles: a step then waits before
stage 2, or before stage 3; its control, which the block delays as much, says when.
"""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.divide import Fp32Divider
from neuroncore_rtl.hdl.arith.power import Fp32Power
from neuroncore_rtl.hdl.arith.round import Fp32Rounder
from neuroncore_rtl.hdl.arith.saturate import Saturate
from neuroncore_rtl.hdl.arith.threefry import ROUNDS, Threefry2x32
from neuroncore_rtl.hdl.arith.widen import Widen
from neuroncore_rtl.hdl.vector.alu import Alu
from neuroncore_rtl.hdl.vector.control import Cast, Chain, Entry, Events, Finish, First, Operate, Other, Second, Source
from neuroncore_rtl.hdl.vector.search import Search
from neuroncore_rtl.hdl.vector.stats import Statistics
from neuroncore_rtl.spec.formats import FP32

__all__ = ["VectorLane"]


class VectorLane(wiring.Component):
    """One element a cycle, or one in `INTERVAL` of the slow unit that the operation takes.

    Ports, few and without layouts, as a lane is a module that is instantiated many times; what says "stage n" belongs
    to a step that is in this stage in the same cycle:
        valid: stage 0 has a step. entry: stage 0 (:class:`Entry`).
        a, b: stage 0, storage words, right-aligned, the upper bits anything.
        scalars: stage 0, the immediate scalars s0 (low) and s1.
        index: stage 0, of the lane's element. key: stage 0, seed (low) and stream. Both stay until the step is in stage
            4, less `RANDOM_LATENCY` cycles.
        operate, events: stage 1 (:class:`Operate`, :class:`Events`); given: stage 1, a word for `First.GIVEN`.
        advance: what accompanies the result of op0 goes to stage 2; in stage 1, but of a slow step a little later.
        share: stage 2, of the statistics.
        chain: stage 2 (:class:`Chain`); in a cycle without a step BYPASS of `Source.RUNNING`.
        divide, power: stage 2, a slow op1 starts.
        finish: stage 3 (:class:`Finish`). cast: stage 4 (:class:`Cast`).
        word, enable: stage 5, the storage word of the result, upper bits zero, and whether it is written.
    """

    RANDOM_LATENCY = 4
    """Cycles from an index to its random words: from stage 0 to stage 4."""

    LATENCY = 5
    """Cycles from stage 0 to the result."""

    valid: In(1)
    entry: In(Entry.as_shape().size)
    a: In(32)
    b: In(32)
    scalars: In(64)
    index: In(64)
    key: In(64)
    operate: In(Operate.as_shape().size)
    events: In(Events.as_shape().size)
    advance: In(1)
    given: In(32)
    share: In(32)
    chain: In(Chain.as_shape().size)
    divide: In(1)
    power: In(1)
    finish: In(Finish.as_shape().size)
    cast: In(Cast.as_shape().size)
    word: Out(32)
    enable: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.alu0 = alu0 = Alu()
        m.submodules.alu1 = alu1 = Alu()
        m.submodules.divider = divider = Fp32Divider()
        m.submodules.power = power = Fp32Power()
        m.submodules.search = search = Search()
        m.submodules.statistics = statistics = Statistics()

        a, b, s0, s1, signs = self._widen(m)

        # Stage 1: op0.
        operate, events = data.View(Operate, self.operate), data.View(Events, self.events)
        takes_s0 = Signal()
        first, other, x0, y0 = (Signal(32, name=name) for name in ("first", "other", "x0", "y0"))
        m.d.comb += [
            search.word.eq(Mux(operate.search_b, b, a)),
            search.probe.eq(events.probe),
            search.integer.eq(operate.integer),
            search.position.eq(operate.position),
            search.number.eq(operate.number),
            statistics.x.eq(a),
            statistics.sample.eq(events.sample),
            statistics.share.eq(self.share),
        ]
        with m.Switch(operate.first):
            for case, word, instead in (
                (First.S0, s0, 0),
                (First.SELECTED, b, ~a[:31].any()),
                (First.AFFINE, a, ~(signs & operate.signs).any()),
                (First.REPLACED, a, search.hit),
                (First.LARGEST, search.largest, 0),
                (First.FOUND, search.found, 0),
                (First.GIVEN, self.given, 0),
            ):
                with m.Case(case):
                    m.d.comb += [takes_s0.eq(instead), first.eq(Mux(takes_s0, s0, word))]
            with m.Default():
                m.d.comb += first.eq(a)
        with m.Switch(operate.other):
            for case, word in ((Other.B, b), (Other.A, a), (Other.RUNNING, alu1.out)):
                with m.Case(case):
                    m.d.comb += other.eq(word)
            with m.Default():
                m.d.comb += other.eq(s0)
        m.d.comb += [
            x0.eq(Mux(operate.reverse, other, first)),
            y0.eq(Mux(operate.reverse, first, other)),
            alu0.op.eq(operate.op),
            alu0.integer.eq(operate.integer),
            alu0.a.eq(x0),
            alu0.b.eq(y0),
        ]
        second, enable_2 = Signal(32, reset_less=True), Signal(reset_less=True)
        with m.If(self.advance):
            with m.Switch(operate.second):
                for case, word in ((Second.B, b), (Second.S0, s0)):
                    with m.Case(case):
                        m.d.sync += second.eq(word)
                with m.Default():
                    m.d.sync += second.eq(s1)
            m.d.sync += enable_2.eq(~(operate.keep & takes_s0))

        # Stage 2: op1.
        chain = data.View(Chain, self.chain)
        result0, x1, y1 = (Signal(32, name=name) for name in ("result0", "x1", "y1"))
        beside, enable_3 = Signal(32, reset_less=True), Signal(reset_less=True)
        m.d.comb += [
            result0.eq(Mux(chain.slow, Mux(chain.power, power.out, divider.out), alu0.out)),
            y1.eq(Mux(chain.b == Source.SECOND, second, result0)),
            alu1.op.eq(chain.op),
            alu1.integer.eq(chain.integer),
            alu1.a.eq(x1),
            alu1.b.eq(y1),
        ]
        with m.Switch(chain.a):
            for case, word in ((Source.RUNNING, alu1.out), (Source.SECOND, second)):
                with m.Case(case):
                    m.d.comb += x1.eq(word)
            with m.Default():
                m.d.comb += x1.eq(result0)
        m.d.sync += [beside.eq(Mux(chain.pass_second, second, result0)), enable_3.eq(enable_2)]

        # The slow units, which look at their operands only where they start.
        with m.If(statistics.divide):
            m.d.comb += [divider.a.eq(statistics.numerator), divider.b.eq(statistics.denominator)]
        with m.Elif(self.divide):
            m.d.comb += [divider.a.eq(x1), divider.b.eq(y1)]
        with m.Elif(events.divide):
            m.d.comb += [divider.a.eq(x0), divider.b.eq(y0)]
        with m.If(self.power):
            m.d.comb += [power.a.eq(x1), power.b.eq(y1)]
        with m.Elif(events.power):
            m.d.comb += [power.a.eq(x0), power.b.eq(y0)]
        m.d.comb += [
            divider.start.eq(statistics.divide | self.divide | events.divide),
            power.start.eq(self.power | events.power),
            statistics.quotient.eq(divider.out),
        ]

        # Stage 3: what the result is.
        finish = data.View(Finish, self.finish)
        found, result, result_4 = Signal(32), Signal(32), Signal(32, reset_less=True)
        threshold, enable_4 = Signal(33, reset_less=True), Signal(reset_less=True)
        m.d.comb += [
            statistics.number.eq(finish.number),
            found.eq(alu1.out),
            result.eq(found),
        ]
        with m.If(finish.statistics):
            m.d.comb += found.eq(statistics.out)
        with m.Elif(finish.reduced):
            m.d.comb += found.eq(beside)
        with m.Elif(finish.slow):
            m.d.comb += found.eq(Mux(finish.power, power.out, divider.out))
        with m.If(finish.negate):
            m.d.comb += result.eq(Mux(finish.integer, -found, found ^ 1 << 31))
        m.d.sync += [result_4.eq(result), threshold.eq(_threshold(m, beside)), enable_4.eq(enable_3)]

        self._cast(m, result_4, threshold, enable_4)
        return m

    def _widen(self, m: Module):
        """Stage 0; return what is in stage 1: a, b, s0, s1, and of the index negative, zero, positive."""
        m.submodules.widen_a = widen_a = Widen()
        m.submodules.widen_b = widen_b = Widen()
        entry = data.View(Entry, self.entry)
        a, b, s0, s1 = (Signal(32, name=name, reset_less=True) for name in ("a_1", "b_1", "s0", "s1"))
        signs = Signal(3, reset_less=True)
        a_now = Signal(32)
        zero, negative = ~self.index[:32].any(), self.index[31]
        m.d.comb += [
            widen_a.word.eq(Mux(entry.iota, self.index[:32], self.a)),
            widen_a.dtype.eq(entry.a_dtype),
            widen_b.word.eq(self.b),
            widen_b.dtype.eq(entry.b_dtype),
            a_now.eq(Mux(entry.a_integer, widen_a.integer, widen_a.fp32)),
        ]
        with m.If(self.valid):
            m.d.sync += [
                a.eq(a_now),
                b.eq(Mux(entry.b_integer, widen_b.integer, widen_b.fp32)),
                signs.eq(Cat(negative, zero, ~(negative | zero))),
            ]
            for scalar, load, immediate, word in (
                (s0, entry.load0, entry.immediate0, self.scalars[:32]),
                (s1, entry.load1, entry.immediate1, self.scalars[32:]),
            ):
                with m.If(load):
                    m.d.sync += scalar.eq(a_now)
                with m.Elif(immediate):
                    m.d.sync += scalar.eq(word)
        return a, b, s0, s1, signs

    def _cast(self, m: Module, value: Signal, threshold: Signal, enable: Signal) -> None:
        """Stage 4, and the random words."""
        m.submodules.random = random = Threefry2x32(ROUNDS // self.RANDOM_LATENCY)
        m.submodules.round = rounder = Fp32Rounder(1)
        m.submodules.saturate = saturate = Saturate()
        cast = data.View(Cast, self.cast)
        kept = Signal(32)
        saturated, integer = Signal(32, reset_less=True), Signal(reset_less=True)
        m.d.comb += [
            random.key.eq(self.key),
            random.counter.eq(self.index),
            kept.eq(Mux(cast.dropout & (random.out[1] < threshold), 0, value)),
            rounder.value.eq(kept),
            rounder.format.eq(cast.dtype),
            rounder.stochastic.eq(cast.stochastic),
            rounder.random.eq(random.out[0]),
            saturate.value.eq(kept),
            saturate.dtype.eq(cast.dtype),
            self.word.eq(Mux(integer, saturated, rounder.word)),
        ]
        m.d.sync += [saturated.eq(saturate.word), integer.eq(cast.integer), self.enable.eq(enable)]


def _threshold(m: Module, p: Signal) -> Signal:
    """Return how many of the 2**32 values of a random word are below p * 2**32: p rounded up, from 0 to 2**32."""
    threshold, shifted = Signal(33), Signal(32)
    fraction, field = p[: FP32.mantissa_bits], p[FP32.mantissa_bits : 31]
    significand = Cat(Const(0, 32 - FP32.precision), fraction, field.any())
    # A significand at the top stands for a p from 1/2 to 1.
    places = Signal(FP32.exponent_bits)
    m.d.comb += [
        places.eq(FP32.bias - 1 - field),
        shifted.eq(Mux(places[5:].any(), 0, significand >> places[:5])),
    ]
    nan = field.all() & fraction.any()
    with m.If(p[31] | nan | ~p[:31].any()):
        m.d.comb += threshold.eq(0)
    with m.Elif(field >= FP32.bias):
        m.d.comb += threshold.eq(1 << 32)
    with m.Else():
        # Above the smallest values of its binade by less than a place: one value more is below p.
        lost = (significand & ~(Const(-1, 32) << places[:5])[:32]).any() | places[5:].any()
        m.d.comb += threshold.eq(shifted + lost)
    return threshold

"""A lane of the vector engine: the datapath of one partition.

    a, b -> widen -> op0 -> op1 -> [negate, statistics] -> [dropout] -> round or saturate -> word
              0       1      2            3                            4                       5

The stages are numbered by the registers before them. Random words take until stage 4, and so meet their element without
a delay. op1 holds the running result of a reduction or a scan in its own output register, and gives itself that word
again where there is nothing to do. Division and power, one unit of each, take many cycles: a step then waits before
stage 2, or before stage 3; its control, which the block delays as much, says when.
"""

from types import SimpleNamespace

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.divide import Fp32Divider
from neuroncore_rtl.hdl.arith.power import Fp32Power
from neuroncore_rtl.hdl.arith.widen import Widen
from neuroncore_rtl.hdl.vector.alu import Alu
from neuroncore_rtl.hdl.vector.cast import RoundOrSaturate, threshold
from neuroncore_rtl.hdl.vector.control import (
    Cast,
    Chain,
    Entry,
    Events,
    Finish,
    First,
    Operate,
    Other,
    Second,
    Source,
    Unit,
)
from neuroncore_rtl.hdl.vector.search import Search
from neuroncore_rtl.hdl.vector.stats import Statistics

__all__ = ["VectorLane"]


class VectorLane(wiring.Component):
    """One element a cycle, or one in `INTERVAL` of the slow unit that the operation takes.

    Ports; what says "stage n" belongs to a step that is in this stage in the same cycle:
        valid: stage 0 has a step. entry: stage 0 (:class:`Entry`).
        a, b: stage 0, storage words, right-aligned, the upper bits anything.
        scalars: stage 0, the immediate scalars s0 and s1.
        index: stage 0, of the lane's element. key: stage 0, seed and stream. Both stay until the step is in stage
            4, less `RANDOM_LATENCY` cycles.
        operate, events: stage 1 (:class:`Operate`, :class:`Events`); given: stage 1, a word for `First.GIVEN`.
        advance: what accompanies the result of op0 goes to stage 2; in stage 1, but of a slow step a little later.
        share: stage 2, of the statistics.
        chain: stage 2 (:class:`Chain`); in a cycle without a step BYPASS of `Source.RUNNING`.
        divide, power: stage 2, a slow op1 starts. unit: stage 2, which of its results (:class:`Unit`).
        finish: stage 3 (:class:`Finish`). cast: stage 4 (:class:`Cast`).
        word, enable: stage 5, the storage word of the result, upper bits zero, and whether it is written.
    """

    RANDOM_LATENCY = RoundOrSaturate.RANDOM_LATENCY
    """Cycles from an index to its random words: from stage 0 to stage 4."""

    LATENCY = 5
    """Cycles from stage 0 to the result."""

    valid: In(1)
    entry: In(Entry)
    a: In(32)
    b: In(32)
    scalars: In(data.ArrayLayout(32, 2))
    index: In(64)
    key: In(data.ArrayLayout(32, 2))
    operate: In(Operate)
    events: In(Events)
    advance: In(1)
    given: In(32)
    share: In(32)
    chain: In(Chain)
    divide: In(1)
    power: In(1)
    unit: In(Unit)
    finish: In(Finish)
    cast: In(Cast)
    word: Out(32)
    enable: Out(1)

    def elaborate(self, platform):
        m = Module()
        units = self._units(m)
        words = self._widen(m)
        x0, y0, takes_s0 = self._op0(m, units, words)
        second, enable_2 = self._beside(m, words, takes_s0)
        x1, y1, beside, enable_3 = self._op1(m, units, second, enable_2)
        self._slow_units(m, units, (x0, y0), (x1, y1))
        self._finish(m, units, beside, enable_3)
        return m

    def _units(self, m: Module) -> SimpleNamespace:
        """Add what several stages use."""
        units = SimpleNamespace(
            alu0=Alu(), alu1=Alu(), divider=Fp32Divider(), power=Fp32Power(), search=Search(), statistics=Statistics()
        )
        for name, unit in vars(units).items():
            m.submodules[name] = unit
        statistics = units.statistics
        for number, alu in enumerate((units.alu0, units.alu1)):
            m.d.comb += [
                alu.sum.eq(getattr(statistics, f"sum{number}")),
                alu.fused.eq(getattr(statistics, f"fused{number}")),
                getattr(statistics, f"summed{number}").eq(alu.summed),
                getattr(statistics, f"multiplied{number}").eq(alu.multiplied),
            ]
        return units

    def _widen(self, m: Module) -> SimpleNamespace:
        """Stage 0; return what is in stage 1: a, b, s0, s1, and of the index negative, zero, positive."""
        m.submodules.widen_a = widen_a = Widen()
        m.submodules.widen_b = widen_b = Widen()
        entry = self.entry
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
            for number, scalar in enumerate((s0, s1)):
                with m.If(entry[f"load{number}"]):
                    m.d.sync += scalar.eq(a_now)
                with m.Elif(entry[f"immediate{number}"]):
                    m.d.sync += scalar.eq(self.scalars[number])
        return SimpleNamespace(a=a, b=b, s0=s0, s1=s1, signs=signs)

    def _op0(self, m: Module, units, words) -> tuple[Value, Value, Value]:
        """Stage 1: op0, the search, and the statistics; return the operands of op0, and whether s0 is the first."""
        operate, a, b, s0 = self.operate, words.a, words.b, words.s0
        search, statistics, alu = units.search, units.statistics, units.alu0
        takes_s0 = Signal()
        first, other, x0, y0 = (Signal(32, name=name) for name in ("first", "other", "x0", "y0"))
        m.d.comb += [
            search.word.eq(Mux(operate.search_b, b, a)),
            search.probe.eq(self.events.probe),
            search.integer.eq(operate.integer),
            search.uint32.eq(operate.uint32),
            search.position.eq(operate.position),
            search.number.eq(operate.number),
            statistics.x.eq(a),
            statistics.sample.eq(self.events.sample),
            statistics.share.eq(self.share),
        ]
        with m.Switch(operate.first):
            for case, word, instead in (
                (First.S0, s0, 0),
                (First.SELECTED, b, ~a[:31].any()),
                (First.AFFINE, a, ~(words.signs & operate.signs).any()),
                (First.REPLACED, a, search.hit),
                (First.LARGEST, search.largest, 0),
                (First.FOUND, search.found, 0),
                (First.GIVEN, self.given, 0),
            ):
                with m.Case(case):
                    m.d.comb += [takes_s0.eq(instead), first.eq(Mux(takes_s0, s0, word))]
            with m.Default():
                m.d.comb += first.eq(a)
        _choose(m, "comb", other, operate.other, {Other.B: b, Other.A: a, Other.RUNNING: units.alu1.out}, s0)
        m.d.comb += [
            x0.eq(Mux(operate.reverse, other, first)),
            y0.eq(Mux(operate.reverse, first, other)),
            alu.op.eq(operate.op),
            alu.integer.eq(operate.integer),
            alu.uint32.eq(operate.uint32),
            alu.a.eq(x0),
            alu.b.eq(y0),
        ]
        return x0, y0, takes_s0

    def _beside(self, m: Module, words, takes_s0: Value) -> tuple[Value, Value]:
        """Return what accompanies the result of op0 in stage 2: the second operand, and whether it is written."""
        operate = self.operate
        second, enable = Signal(32, reset_less=True), Signal(reset_less=True)
        with m.If(self.advance):
            _choose(m, "sync", second, operate.second, {Second.B: words.b, Second.S0: words.s0}, words.s1)
            m.d.sync += enable.eq(~(operate.keep & takes_s0))
        return second, enable

    def _op1(self, m: Module, units, second: Value, enable: Value) -> tuple[Value, Value, Value, Value]:
        """Stage 2: op1; return its operands, what accompanies its result, and whether that is written."""
        chain, alu = self.chain, units.alu1
        slow0, result0, x1, y1 = (Signal(32, name=name) for name in ("slow0", "result0", "x1", "y1"))
        beside, enable_3 = Signal(32, reset_less=True), Signal(reset_less=True)
        m.d.comb += [
            slow0.eq(Mux(chain.unit == Unit.POWER, units.power.out, units.divider.out)),
            result0.eq(Mux(chain.slow, slow0, units.alu0.out)),
            y1.eq(Mux(chain.b == Source.SECOND, second, result0)),
            alu.op.eq(chain.op),
            alu.integer.eq(chain.integer),
            alu.uint32.eq(chain.uint32),
            alu.a.eq(x1),
            alu.b.eq(y1),
        ]
        _choose(m, "comb", x1, chain.a, {Source.RUNNING: alu.out, Source.SECOND: second}, result0)
        m.d.sync += [beside.eq(Mux(chain.pass_second, second, result0)), enable_3.eq(enable)]
        return x1, y1, beside, enable_3

    def _slow_units(self, m: Module, units, of_op0: tuple[Value, Value], of_op1: tuple[Value, Value]) -> None:
        """Start divider and power, which look at their operands only then, and at those of op1 before those of op0."""
        divider, power, statistics, events = units.divider, units.power, units.statistics, self.events

        def given(unit, operands):
            return [unit.a.eq(operands[0]), unit.b.eq(operands[1])]

        def remains(unit):
            return [
                divider.remainder.eq((unit == Unit.MOD) | (unit == Unit.FMOD)),
                divider.floored.eq(unit == Unit.MOD),
            ]

        with m.If(statistics.divide):
            m.d.comb += given(divider, (statistics.numerator, statistics.denominator))
        with m.Elif(self.divide):
            m.d.comb += [given(divider, of_op1), *remains(self.unit)]
        with m.Elif(events.divide):
            m.d.comb += [given(divider, of_op0), *remains(self.operate.unit)]
        with m.If(self.power):
            m.d.comb += given(power, of_op1)
        with m.Elif(events.power):
            m.d.comb += given(power, of_op0)
        m.d.comb += [
            divider.start.eq(statistics.divide | self.divide | events.divide),
            power.start.eq(self.power | events.power),
            statistics.quotient.eq(divider.out),
        ]

    def _finish(self, m: Module, units, beside: Value, enable: Value) -> None:
        """Stage 3, what the result is; and 4, its cast."""
        finish, statistics = self.finish, units.statistics
        m.submodules.caster = caster = RoundOrSaturate()
        found, result, result_4 = Signal(32), Signal(32), Signal(32, reset_less=True)
        threshold_4, enable_4 = Signal(33, reset_less=True), Signal(reset_less=True)
        m.d.comb += [statistics.number.eq(finish.number), found.eq(units.alu1.out), result.eq(found)]
        with m.If(finish.statistics):
            m.d.comb += found.eq(statistics.out)
        with m.Elif(finish.reduced):
            m.d.comb += found.eq(beside)
        with m.Elif(finish.slow):
            m.d.comb += found.eq(Mux(finish.unit == Unit.POWER, units.power.out, units.divider.out))
        with m.If(finish.negate):
            m.d.comb += result.eq(Mux(finish.integer, -found, found ^ 1 << 31))
        m.d.sync += [result_4.eq(result), threshold_4.eq(threshold(m, beside)), enable_4.eq(enable)]
        m.d.sync += self.enable.eq(enable_4)
        m.d.comb += [
            caster.index.eq(self.index),
            caster.key.eq(self.key),
            caster.cast.eq(self.cast),
            caster.value.eq(result_4),
            caster.threshold.eq(threshold_4),
            self.word.eq(caster.word),
        ]


def _choose(m: Module, domain: str, target: Signal, code: Value, words: dict, otherwise: Value) -> None:
    """Drive `target` with the word of a code."""
    with m.Switch(code):
        for case, word in words.items():
            with m.Case(case):
                m.d[domain] += target.eq(word)
        with m.Default():
            m.d[domain] += target.eq(otherwise)

"""Lane of the vector engine: the datapath of one partition, or of several in turn.

    a, b -> widen -> op0 -> op1 -> [negate, statistics] -> [dropout] -> round or saturate -> word
              0       1      2            3                            4                       5

The stages are numbered by the registers before them. With a deeper pipeline, stage 0, the ALUs and the cast take
several cycles each. The generation of random words ends when their element enters stage 4, so neither needs additional
delay. The running result of a reduction or a scan is op1's last result.

With several partitions, successive steps serve the partitions in round robin; each partition has separate scalars and
running results.

Division and power have one unit each and take many cycles: a step then stalls before stage 2 or before stage 3, and the
block delays its control.
"""

from collections.abc import Iterable
from types import SimpleNamespace

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.divide import Fp32Divider
from neuroncore_rtl.hdl.arith.pipeline import delayed
from neuroncore_rtl.hdl.arith.power import Fp32Power
from neuroncore_rtl.hdl.arith.widen import Widen
from neuroncore_rtl.hdl.elementwise.turns import in_turn
from neuroncore_rtl.hdl.vector.alu import VectorAlu
from neuroncore_rtl.hdl.vector.cast import RoundOrSaturate, threshold
from neuroncore_rtl.hdl.vector.control import (
    Cast,
    Chain,
    Events,
    Finish,
    First,
    LaneTurns,
    Load,
    OpcodeEntry,
    Operate,
    Other,
    Second,
    Source,
    Unit,
)
from neuroncore_rtl.hdl.vector.search import Search
from neuroncore_rtl.hdl.vector.stats import Statistics
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import VECTOR_UNITS

__all__ = ["VectorLane"]


class VectorLane(wiring.Component):
    """Lane of the vector engine. Throughput: one element per cycle, or one per `INTERVAL` of a slow unit.

    Arguments:
        alu_latency: cycles of an ALU, 1 to 6. Above 1, widening and cast are pipelined too.
        units: the units of `VECTOR_UNITS` to build; no step may need another unit.
        partitions: number of partitions that the lane serves in turn.

    Ports; "stage n" means valid while the step is in that stage:
        entry: stage 0, first cycle (`OpcodeEntry`).
        a, b: with entry, storage words, right-aligned; upper bits are ignored.
        index, key: with entry, the element's index; seed and stream. Held until `random_latency` cycles before stage 4.
        valid: stage 0, last cycle, has a step.
        load, scalars: with valid (`Load`); the immediate scalars s0 and s1.
        operate, events: stage 1 (`Operate`, `Events`).
        given: stage 1, the word for `First.GIVEN`.
        advance: load the word that accompanies op0's result into stage 2; set in stage 1, later for a slow step.
        turns: stages 1 to 3 (`LaneTurns`); zero with one partition.
        share: stage 2, input `share` of the statistics (`hdl.vector.stats.Statistics`).
        chain: stage 2 (`Chain`).
        divide, power: stage 2, the divider, the power unit starts a slow op1.
        unit: stage 2, the unit of that op1 (`Unit`).
        done: stage 3 has a step.
        finish, cast: stages 3 and 4 (`Finish`, `Cast`).
        word, enable: stage 5, the storage word, upper bits zero, and whether it is written.
    """

    entry: In(OpcodeEntry)
    a: In(32)
    b: In(32)
    valid: In(1)
    load: In(Load)
    scalars: In(data.ArrayLayout(32, 2))
    index: In(64)
    key: In(data.ArrayLayout(32, 2))
    operate: In(Operate)
    events: In(Events)
    advance: In(1)
    given: In(32)
    turns: In(LaneTurns)
    share: In(32)
    chain: In(Chain)
    divide: In(1)
    power: In(1)
    unit: In(Unit)
    done: In(1)
    finish: In(Finish)
    cast: In(Cast)
    word: Out(32)
    enable: Out(1)

    def __init__(self, alu_latency: int = 1, units: Iterable[str] = VECTOR_UNITS, partitions: int = 1):
        self.alu_latency = alu_latency
        self.partitions = partitions
        self.units = frozenset(units)
        self.entry_latency = timing.VECTOR_ENTRY_LATENCY[alu_latency > 1]
        self.cast_latency = timing.VECTOR_CAST_LATENCY[alu_latency > 1]
        super().__init__()

    @property
    def random_latency(self) -> int:
        """Cycles from an element's index to its random words."""
        return self.entry_latency + 2 * self.alu_latency + 1

    @property
    def latency(self) -> int:
        return self.random_latency + self.cast_latency

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
        units = SimpleNamespace(
            alu0=VectorAlu(self.alu_latency),
            alu1=VectorAlu(self.alu_latency),
        )
        for name, unit in vars(units).items():
            m.submodules[name] = unit
        units.statistics = self._unit(m, "statistics", "statistics", Statistics, self.alu_latency)
        units.divider = self._unit(m, "division", "divider", Fp32Divider)
        units.power = self._unit(m, "power", "power", Fp32Power)
        units.search = self._unit(m, "search", "search", Search)
        statistics = units.statistics
        for number, alu in enumerate((units.alu0, units.alu1)):
            m.d.comb += [
                alu.sum.eq(getattr(statistics, f"sum{number}")),
                alu.fused.eq(getattr(statistics, f"fused{number}")),
                getattr(statistics, f"summed{number}").eq(alu.summed),
                getattr(statistics, f"multiplied{number}").eq(alu.multiplied),
            ]
        units.running, units.late_running = self._running(m, units.alu1.out)
        return units

    def _running(self, m: Module, result: Value) -> list[Signal]:
        kept = [Signal(32, name=f"kept_{number}", reset_less=True) for number in range(self.partitions)]
        if self.partitions == 1:
            running = Signal(32)
            m.d.comb += running.eq(Mux(self.done, result, kept[0]))
            m.d.sync += kept[0].eq(running)
            return [running, running]
        for number, word in enumerate(kept):
            with m.If(self.done & (self.turns.finish == number)):
                m.d.sync += word.eq(result)
        words = []
        for stage in ("operate", "chain"):
            running = Signal(32, name=f"running_of_{stage}")
            turn = self.turns[stage]
            m.d.comb += running.eq(Mux(self.done & (self.turns.finish == turn), result, Array(kept)[turn]))
            words.append(running)
        return words

    def _unit(self, m: Module, unit: str, name: str, kind: type[wiring.Component], *arguments: int):
        """Add a unit and return it.

        If the lane is built without the unit, return unconnected ports that read as zero.
        """
        if unit not in self.units:
            return wiring.Signature(kind.__annotations__).create(path=(name,))
        m.submodules[name] = component = kind(*arguments)
        return component

    def _widen(self, m: Module) -> SimpleNamespace:
        """Stage 0: widen the words to 32 bits.

        Return a, b, s0, s1, and the sign of the element's index as three bits: negative, zero, positive.
        """
        meanwhile = self.entry_latency - 1
        m.submodules.widen_a = widen_a = Widen(meanwhile)
        m.submodules.widen_b = widen_b = Widen(meanwhile)
        entry, load = self.entry, self.load
        a, b, s0, s1 = (Signal(32, name=name, reset_less=True) for name in ("a_1", "b_1", "s0", "s1"))
        signs = Signal(3, reset_less=True)
        a_now = Signal(32)
        zero, negative = ~self.index[:32].any(), self.index[31]
        m.d.comb += [
            widen_a.word.eq(Mux(entry.iota, self.index[:32], self.a)),
            widen_a.dtype.eq(entry.a_dtype),
            widen_a.odd.eq(entry.odd),
            widen_b.word.eq(self.b),
            widen_b.dtype.eq(entry.b_dtype),
            widen_b.odd.eq(entry.odd),
            a_now.eq(Mux(load.a_integer, widen_a.integer, widen_a.fp32)),
        ]
        signs_now = delayed(m, Cat(negative, zero, ~(negative | zero)), meanwhile, "signs_now")
        with m.If(self.valid):
            m.d.sync += [
                a.eq(a_now),
                b.eq(Mux(load.b_integer, widen_b.integer, widen_b.fp32)),
                signs.eq(signs_now),
            ]
            for number, scalar in enumerate((s0, s1)):
                m.d.sync += scalar.eq(in_turn(m, scalar, self.partitions, self.valid, f"s{number}"))
                with m.If(load[f"load{number}"]):
                    m.d.sync += scalar.eq(a_now)
                with m.Elif(load[f"immediate{number}"]):
                    m.d.sync += scalar.eq(self.scalars[number])
        return SimpleNamespace(a=a, b=b, s0=s0, s1=s1, signs=signs)

    def _op0(self, m: Module, units, words) -> tuple[Value, Value, Value]:
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
        _choose(m, "comb", other, operate.other, {Other.B: b, Other.A: a, Other.RUNNING: units.running}, s0)
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
        operate = self.operate
        second_now, second, enable = Signal(32), Signal(32, reset_less=True), Signal(reset_less=True)
        _choose(m, "comb", second_now, operate.second, {Second.B: words.b, Second.S0: words.s0}, words.s1)
        meanwhile = self.alu_latency - 1
        late_second = delayed(m, second_now, meanwhile, "second")
        late_enable = delayed(m, ~(operate.keep & takes_s0), meanwhile, "enable")
        with m.If(self.advance):
            m.d.sync += [second.eq(late_second), enable.eq(late_enable)]
        return second, enable

    def _op1(self, m: Module, units, second: Value, enable: Value) -> tuple[Value, Value, Value, Value]:
        chain, alu = self.chain, units.alu1
        slow0, result0, x1, y1 = (Signal(32, name=name) for name in ("slow0", "result0", "x1", "y1"))
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
        _choose(m, "comb", x1, chain.a, {Source.RUNNING: units.late_running, Source.SECOND: second}, result0)
        beside = delayed(m, Mux(chain.pass_second, second, result0), self.alu_latency, "beside")
        return x1, y1, beside, delayed(m, enable, self.alu_latency, "enable_beside")

    def _slow_units(self, m: Module, units, of_op0: tuple[Value, Value], of_op1: tuple[Value, Value]) -> None:
        """Start the divider and the power unit, which sample their operands in this cycle.

        A slow op1 has priority over op0.
        """
        divider, power, statistics, events = units.divider, units.power, units.statistics, self.events

        def drive_operands(unit, operands):
            return [unit.a.eq(operands[0]), unit.b.eq(operands[1])]

        def remains(unit):
            return [
                divider.remainder.eq((unit == Unit.MOD) | (unit == Unit.FMOD)),
                divider.floored.eq(unit == Unit.MOD),
            ]

        if "division" in self.units:
            with m.If(statistics.divide):
                m.d.comb += drive_operands(divider, (statistics.numerator, statistics.denominator))
            with m.Elif(self.divide):
                m.d.comb += [drive_operands(divider, of_op1), *remains(self.unit)]
            with m.Elif(events.divide):
                m.d.comb += [drive_operands(divider, of_op0), *remains(self.operate.unit)]
            m.d.comb += divider.start.eq(statistics.divide | self.divide | events.divide)
        if "power" in self.units:
            with m.If(self.power):
                m.d.comb += drive_operands(power, of_op1)
            with m.Elif(events.power):
                m.d.comb += drive_operands(power, of_op0)
            m.d.comb += power.start.eq(self.power | events.power)
        m.d.comb += statistics.quotient.eq(divider.out)

    def _finish(self, m: Module, units, beside: Value, enable: Value) -> None:
        finish, statistics = self.finish, units.statistics
        m.submodules.caster = caster = RoundOrSaturate(self.cast_latency, self.random_latency, "random" in self.units)
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
        m.d.comb += self.enable.eq(delayed(m, enable_4, self.cast_latency, "enable_4"))
        m.d.comb += [
            caster.index.eq(self.index),
            caster.key.eq(self.key),
            caster.cast.eq(self.cast),
            caster.value.eq(result_4),
            caster.threshold.eq(threshold_4),
            self.word.eq(caster.word),
        ]


def _choose(m: Module, domain: str, target: Signal, code: Value, words: dict, otherwise: Value) -> None:
    with m.Switch(code):
        for case, word in words.items():
            with m.Case(case):
                m.d[domain] += target.eq(word)
        with m.Default():
            m.d[domain] += target.eq(otherwise)

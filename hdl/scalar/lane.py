"""Activation lane: function(a * scale + bias), its running sum, and the cast."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from amaranth import Cat, Const, EnableInserter, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.add import Fp32Adder
from neuroncore_rtl.hdl.arith.fma import Fp32Fma
from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.arith.round import Fp32Rounder
from neuroncore_rtl.hdl.arith.threefry import ROUNDS, Threefry2x32
from neuroncore_rtl.hdl.arith.widen import Widen
from neuroncore_rtl.hdl.elementwise.turns import in_turn
from neuroncore_rtl.hdl.scalar.function import FunctionUnit
from neuroncore_rtl.hdl.scalar.number import Number
from neuroncore_rtl.hdl.scalar.running_sum import RunningSum
from neuroncore_rtl.hdl.scalar.tables import FUNCTION_BITS, TableReader
from neuroncore_rtl.hdl.verilog.hierarchy import shared
from neuroncore_rtl.spec.config import SCALAR_UNITS

__all__ = ["STAGES", "ActivationLane", "Stages"]

_NEGATIVE_ZERO = 1 << 31
"""Neutral element of addition: x + -0 is x for every x, including -0."""


@dataclass(frozen=True)
class Stages:
    """Latencies of a lane's parts, and the resulting delays.

    Arguments:
        staged: the function unit has a separate pipeline stage for every step.
        widen: cycles from a storage word to its FP32 value, without the register after it.
        fma: cycles of the multiply-add.
        total: cycles from a function's result, or the running sum, to the rounder.
        rounder: cycles of the rounder.
        random_rounds: rounds of the random generator per cycle.
    """

    staged: bool
    widen: int
    fma: int
    total: int
    rounder: int
    random_rounds: int

    @property
    def function(self) -> int:
        """Cycles from an element to its function code."""
        return self.widen + 1 + self.fma

    @property
    def alpha(self) -> int:
        """Cycles from an element to its alpha."""
        return self.function + FunctionUnit.alpha_delay_of(self.staged)

    @property
    def sum(self) -> int:
        """Cycles from an element to its addition to the running sum."""
        return self.function + FunctionUnit.latency_of(self.staged)

    @property
    def round(self) -> int:
        """Cycles from an element to its output format and rounding mode."""
        return self.sum + self.total

    @property
    def random(self) -> int:
        """Cycles from an element to the key and counter of its random word."""
        return self.round + ROUNDS // -self.random_rounds

    @property
    def latency(self) -> int:
        return self.round + self.rounder


STAGES = {
    1: Stages(staged=False, widen=0, fma=4, total=0, rounder=2, random_rounds=4),
    2: Stages(staged=True, widen=2, fma=6, total=2, rounder=4, random_rounds=2),
}
"""Latencies of a lane, by depth."""


class ActivationLane(wiring.Component):
    """Activation lane: one step per cycle.

    Arguments:
        depth: 1, or 2 for a separate pipeline stage for every step.
        units: the units of `SCALAR_UNITS` to build; no step may need another unit.
        partitions: number of partitions, one per step in round robin, each with a separate scale, bias and running sum.

    Ports, with the element:
        a: storage word, right-aligned; upper bits are ignored.
        dtype: format of the storage word `a`.

    Ports, `stages.widen` cycles after the element:
        turn0: a step is present; ignored with one partition.
        load0, load1: store `a` as the scale; as the bias.
        immediate0, immediate1: use `scalar0` as the scale, `scalar1` as the bias, else the stored ones.
        scalar0, scalar1: FP32.

    Ports, `stages.function` cycles after it:
        function: code of the function.

    Ports, `stages.alpha` cycles after it:
        alpha: parameter of the function.

    Ports, `stages.random` cycles after it:
        seed, stream, index: key and counter of the random word.

    Ports, `stages.sum` cycles after it:
        turn1: a step is present; ignored with one partition.
        adds: add the result to the running sum (+0 after reset), in FP32 with one rounding.
        restart: with `adds`, add the result to +0 instead.
        shows_sum: output the sum of earlier elements, not function(a * scale + bias).

    Ports, `stages.round` cycles after it:
        dst_dtype: format of the output.
        stochastic: round stochastically, else to nearest even.

    Other ports:
        word: storage word, right-aligned, upper bits zero; a register, `latency` cycles after the element.
        tables: a reader of `hdl.scalar.tables.FunctionTables`.
    """

    a: In(32)
    dtype: In(FormatCode)
    turn0: In(1)
    load0: In(1)
    load1: In(1)
    immediate0: In(1)
    immediate1: In(1)
    scalar0: In(32)
    scalar1: In(32)
    function: In(FUNCTION_BITS)
    alpha: In(Number)
    seed: In(32)
    stream: In(32)
    index: In(64)
    turn1: In(1)
    adds: In(1)
    restart: In(1)
    shows_sum: In(1)
    dst_dtype: In(FormatCode)
    stochastic: In(1)
    word: Out(32)
    tables: Out(TableReader())

    def __init__(self, depth: int = 1, units: Iterable[str] = SCALAR_UNITS, partitions: int = 1):
        self.partitions = partitions
        self.stages = STAGES[depth]
        self.latency = self.stages.latency
        self.units = frozenset(units)
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        stages = self.stages
        m.submodules.widen = widen = Widen(stages.widen)
        m.submodules.fma = fma = Fp32Fma(stages.fma)
        m.submodules.unit = unit = FunctionUnit(stages.staged, "trigonometry" in self.units)
        m.submodules.rounder = rounder = Fp32Rounder(stages.rounder, "random" in self.units)
        wiring.connect(m, unit.tables, wiring.flipped(self.tables))

        element = Signal(32, reset_less=True)
        m.d.sync += element.eq(widen.fp32)
        # One register per scalar holds loaded values and immediates, which arrive with each element.
        operands = []
        for number in (0, 1):
            operand = Signal(32, name=("scale", "bias")[number], reset_less=True)
            if self.partitions > 1:
                with m.If(self.turn0):
                    m.d.sync += operand.eq(in_turn(m, operand, self.partitions, self.turn0, operand.name))
            with m.If(getattr(self, f"load{number}")):
                m.d.sync += operand.eq(widen.fp32)
            with m.Elif(getattr(self, f"immediate{number}")):
                m.d.sync += operand.eq(getattr(self, f"scalar{number}"))
            operands.append(operand)

        m.d.comb += [
            widen.word.eq(self.a),
            widen.dtype.eq(self.dtype),
            fma.a.eq(element),
            fma.b.eq(operands[0]),
            fma.c.eq(operands[1]),
            unit.z.eq(fma.out),
            unit.function.eq(self.function),
            unit.alpha.eq(self.alpha),
            rounder.value.eq(self._staged_sum(m, unit.y, platform) if stages.staged else self._sum(m, unit.y)),
            rounder.format.eq(self.dst_dtype),
            self.word.eq(rounder.word),
        ]
        if "random" in self.units:
            m.submodules.random = random = Threefry2x32(stages.random_rounds)
            m.d.comb += [
                random.key.eq(Cat(self.seed, self.stream)),
                random.counter.eq(self.index),
                rounder.stochastic.eq(self.stochastic),
                rounder.random.eq(random.out[0]),
            ]
        return m

    def _sum(self, m: Module, y: Value) -> Value:
        turn = self.turn1 if self.partitions > 1 else Const(1)
        adder = Fp32Adder(latency=1)
        m.submodules.adder = EnableInserter(turn)(adder) if self.partitions > 1 else adder
        # One flag per partition, set while its sum is empty; the lowest flag is the current partition's.
        empty = Signal(self.partitions, init=-1)
        with m.If(turn):
            m.d.sync += empty.eq(Cat(empty[1:], empty[0]))
            with m.If(self.adds):
                m.d.sync += empty[-1].eq(0)
        # The adder's output register holds the latest sum.
        total = in_turn(m, adder.out, self.partitions, turn, "total")
        m.d.comb += [
            adder.a.eq(Mux(empty[0] | (self.adds & self.restart), 0, total)),
            adder.b.eq(Mux(self.adds, y, _NEGATIVE_ZERO)),
        ]
        return Mux(self.shows_sum, total, y)

    def _staged_sum(self, m: Module, y: Value, platform) -> Value:
        turns = self.partitions
        module = f"running_sum_for{turns}" if turns > 1 else "running_sum"
        total = shared(m, "total", module, partial(RunningSum, turns), platform)
        late_y, shows, shown = Signal(32, reset_less=True), Signal(reset_less=True), Signal(32, reset_less=True)
        m.d.comb += [total.turn.eq(self.turn1), total.y.eq(y), total.adds.eq(self.adds), total.restart.eq(self.restart)]
        m.d.sync += [late_y.eq(y), shows.eq(self.shows_sum), shown.eq(Mux(shows, total.out, late_y))]
        return shown

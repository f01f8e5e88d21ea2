"""An activation lane: function(a * scale + bias) of one element after the other, its running sum, and the cast."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.add import Fp32Adder
from neuroncore_rtl.hdl.arith.fma import Fp32Fma
from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.arith.round import Fp32Rounder
from neuroncore_rtl.hdl.arith.threefry import ROUNDS, Threefry2x32
from neuroncore_rtl.hdl.arith.widen import Widen
from neuroncore_rtl.hdl.scalar.function import FunctionUnit
from neuroncore_rtl.hdl.scalar.number import Number
from neuroncore_rtl.hdl.scalar.tables import FUNCTION_BITS, TableReader

__all__ = ["ActivationLane"]

_FMA_LATENCY = 4
_ROUND_LATENCY = 2
_RANDOM_ROUNDS = 4
_RANDOM_LATENCY = ROUNDS // _RANDOM_ROUNDS

_NEGATIVE_ZERO = 1 << 31
"""What changes no number that it is added to, not even -0."""


class ActivationLane(wiring.Component):
    """One step per cycle. What concerns a step enters when its element has come so far, see the delays.

    Ports, with the element:
        a: storage word, right-aligned, upper bits ignored. dtype: its format.
        load0, load1: a is the scale, the bias, which are kept.
        immediate0, immediate1: scalar0 is the scale, scalar1 the bias, FP32; else that is what was loaded.
    `FUNCTION_DELAY` cycles later:
        function: its code.
    `ALPHA_DELAY` cycles later:
        alpha: the functions' parameter.
    `RANDOM_DELAY` cycles later:
        seed, stream, index: key and counter of the random word of stochastic rounding.
    `SUM_DELAY` cycles later:
        adds: the element is added to the running sum, in FP32, one rounding. restart: to +0 in its place. The sum is
            +0 after a reset and otherwise stays as it is.
        shows_sum: the step puts out the sum of the elements before it, else function(a * scale + bias).
        dst_dtype: the format of what is put out. stochastic: its rounding; else to nearest even.
    `LATENCY` cycles later:
        word: storage word, right-aligned, upper bits zero; a register.

    tables: a reader of :class:`hdl.scalar.tables.FunctionTables`.
    """

    FUNCTION_DELAY = 1 + _FMA_LATENCY
    ALPHA_DELAY = FUNCTION_DELAY + FunctionUnit.ALPHA_DELAY
    SUM_DELAY = FUNCTION_DELAY + FunctionUnit.LATENCY
    RANDOM_DELAY = SUM_DELAY - _RANDOM_LATENCY
    LATENCY = SUM_DELAY + _ROUND_LATENCY

    a: In(32)
    dtype: In(FormatCode)
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
    adds: In(1)
    restart: In(1)
    shows_sum: In(1)
    dst_dtype: In(FormatCode)
    stochastic: In(1)
    word: Out(32)
    tables: Out(TableReader())

    def elaborate(self, platform):
        m = Module()
        m.submodules.widen = widen = Widen()
        m.submodules.fma = fma = Fp32Fma(_FMA_LATENCY)
        m.submodules.unit = unit = FunctionUnit()
        m.submodules.adder = adder = Fp32Adder(latency=1)
        m.submodules.random = random = Threefry2x32(_RANDOM_ROUNDS)
        m.submodules.rounder = rounder = Fp32Rounder(_ROUND_LATENCY)
        wiring.connect(m, unit.tables, wiring.flipped(self.tables))

        element = Signal(32, reset_less=True)
        m.d.sync += element.eq(widen.fp32)
        # The scalars' registers are also those of the immediates, which come with each element.
        operands = []
        for number in (0, 1):
            operand = Signal(32, name=("scale", "bias")[number], reset_less=True)
            with m.If(getattr(self, f"load{number}")):
                m.d.sync += operand.eq(widen.fp32)
            with m.Elif(getattr(self, f"immediate{number}")):
                m.d.sync += operand.eq(getattr(self, f"scalar{number}"))
            operands.append(operand)

        empty = Signal(init=1)
        with m.If(self.adds):
            m.d.sync += empty.eq(0)
        m.d.comb += [
            widen.word.eq(self.a),
            widen.dtype.eq(self.dtype),
            fma.a.eq(element),
            fma.b.eq(operands[0]),
            fma.c.eq(operands[1]),
            unit.z.eq(fma.out),
            unit.function.eq(self.function),
            unit.alpha.eq(self.alpha),
            # The adder's output register is the sum.
            adder.a.eq(Mux(empty | (self.adds & self.restart), 0, adder.out)),
            adder.b.eq(Mux(self.adds, unit.y, _NEGATIVE_ZERO)),
            random.key.eq(Cat(self.seed, self.stream)),
            random.counter.eq(self.index),
            rounder.value.eq(Mux(self.shows_sum, adder.out, unit.y)),
            rounder.format.eq(self.dst_dtype),
            rounder.stochastic.eq(self.stochastic),
            rounder.random.eq(random.out[0]),
            self.word.eq(rounder.word),
        ]
        return m

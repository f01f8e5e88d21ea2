"""Stochastic rounding whose random bits are a function of the element: the same tensor rounds to the same bits always.

The bits come from (seed, stream, index), index being the element's place in its tensor, not from when or where the
element is rounded: tiling, stalls and the number of cores change nothing.
"""

from amaranth import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.arith.round import Fp32Rounder
from neuroncore_rtl.hdl.arith.threefry import Threefry2x32

__all__ = ["StochasticRounder"]


class StochasticRounder(wiring.Component):
    """Round FP32 stochastically with word 0 of Threefry-2x32, key (seed, stream), counter (index low, index high).

    One value enters per cycle.

    Arguments:
        rounds_per_stage: of the generator, see :class:`Threefry2x32`.
        round_latency: of the rounder, see :class:`Fp32Rounder`.

    Ports:
        value: FP32 storage word.
        format: the target, any of `spec.formats`.
        seed, stream: 32 bits each; another seed or stream gives an independent draw.
        index: the element's number in its tensor.
        word: storage word of the target, right-aligned, `latency` (generator and rounder) cycles later.
    """

    value: In(32)
    format: In(FormatCode)
    seed: In(32)
    stream: In(32)
    index: In(64)
    word: Out(32)

    def __init__(self, rounds_per_stage: int = 4, round_latency: int = 2):
        self.generator = Threefry2x32(rounds_per_stage)
        self.rounder = Fp32Rounder(round_latency)
        self.latency = self.generator.latency + self.rounder.latency
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.generator = generator = self.generator
        m.submodules.rounder = rounder = self.rounder

        value, fmt = self.value, Value.cast(self.format)
        for stage in range(generator.latency):
            late_value = Signal(32, name=f"value_{stage}", reset_less=True)
            late_format = Signal(len(fmt), name=f"format_{stage}", reset_less=True)
            m.d.sync += [late_value.eq(value), late_format.eq(fmt)]
            value, fmt = late_value, late_format

        m.d.comb += [
            generator.key[0].eq(self.seed),
            generator.key[1].eq(self.stream),
            generator.counter[0].eq(self.index[:32]),
            generator.counter[1].eq(self.index[32:]),
            rounder.value.eq(value),
            rounder.format.eq(fmt),
            rounder.stochastic.eq(1),
            rounder.random.eq(generator.out[0]),
            self.word.eq(rounder.word),
        ]
        return m

"""Failing tests for `test_waveforms.py`; pytest collects them only if the file is named."""

import os

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tests.hdl.simulation import WAVEFORM, drive, simulated


class Adder(wiring.Component):
    a: In(8)
    b: In(8)
    sum: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.sum.eq(self.a + self.b + (self.a == 41))
        return m


@simulated(Adder)
async def test_wrong(ctx, dut, rng):
    b = int(rng.integers(100))
    for a in (40, 41):
        drive(ctx, dut, a=a, b=b)
        await ctx.tick()
        assert ctx.get(dut.sum) == a + b, f"b is {b}"


@simulated(Adder)
async def test_once(ctx, dut):
    assert WAVEFORM in os.environ


def test_without_a_simulation():
    raise AssertionError

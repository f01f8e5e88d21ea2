"""Beats become wider, and narrower: operations of any number of bytes, one after the other."""

import random
from functools import partial

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from neuroncore_rtl.hdl.collective.width_converter import BYTES_BITS, WidthConverter
from tests.hdl.collective.beats import beats_of_bytes
from tests.hdl.simulation import WORN, drive, simulate_each
from tests.hdl.streams import play

SEED = 6765

OPERATIONS = 60


class Both(wiring.Component):
    """A converter that widens beats, and one that narrows them. Arguments: small, large: bytes of a beat."""

    def __init__(self, small: int, large: int):
        self.small, self.large = small, large
        self.units = {"widens": WidthConverter(small, large), "narrows": WidthConverter(large, small)}
        super().__init__({name: Out(unit.signature) for name, unit in self.units.items()})

    def elaborate(self, platform):
        m = Module()
        for name, unit in self.units.items():
            m.submodules[name] = unit
            wiring.connect(m, unit, wiring.flipped(getattr(self, name)))
        return m


async def operate(ctx, unit, sizes, pace):
    """Give a converter its operations; `pace` says whether it waits for a cycle."""
    for size in sizes:
        drive(ctx, unit, valid=1, bytes=size)
        await ctx.tick().until(unit.o.valid & unit.o.ready & unit.o.payload.last)
        while pace():
            drive(ctx, unit, valid=0)
            await ctx.tick()
    drive(ctx, unit, valid=0)


@pytest.mark.parametrize("stall", [0, 0.4])
@pytest.mark.parametrize(("small", "large"), [(8, 16), (8, 64)])
def test_operations(small, large, stall):
    rng, dice = np.random.default_rng(SEED), random.Random(SEED)
    dut = Both(small, large)
    inputs, outputs, wanted, ports, processes = {}, {}, {}, {}, []
    for name, unit in dut.units.items():
        port = getattr(dut, name)
        sizes = [int(size) for size in rng.integers(1, 5 * large, size=OPERATIONS)]
        contents = [rng.bytes(size) for size in sizes]
        given, taken = f"{name} i", f"{name} o"
        inputs[given] = [beat for content in contents for beat in beats_of_bytes(content, unit.i_bytes, rng)]
        wanted[taken] = [
            (beat, min(size - n, unit.o_bytes), size - n <= unit.o_bytes)
            for content, size in zip(contents, sizes, strict=True)
            for n, beat in zip(range(0, size, unit.o_bytes), beats_of_bytes(content, unit.o_bytes), strict=True)
        ]
        outputs[taken] = len(wanted[taken])
        ports |= {given: port.i, taken: port.o}
        processes.append(partial(operate, unit=port, sizes=sizes, pace=lambda: dice.random() < stall))
    played = play(dut, inputs, outputs, ports=ports, stall=stall, seed=SEED, others=processes, worn=WORN)
    for name, beats in wanted.items():
        bits = 8 * dut.units[name.split()[0]].o_bytes
        for payload, (beat, count, last) in zip(played.payloads[name], beats, strict=True):
            assert (payload % (1 << 8 * count), payload >> bits) == (beat, last)
    for name in ("widens i", "narrows o"):
        assert stall or np.diff(played.cycles[name]).max() == 1


def test_long_operations_do_not_end():
    dut = Both(8, 16)

    async def bench(ctx, size):
        for name in dut.units:
            drive(ctx, getattr(dut, name), valid=1, bytes=size)
            drive(ctx, getattr(dut, name).i, valid=1)
            drive(ctx, getattr(dut, name).o, ready=1)
        for _ in range(20):
            lasts = [getattr(dut, name).o.payload.last for name in dut.units]
            assert not any((await ctx.tick().sample(*lasts))[-2:])

    simulate_each(dut, bench, [(1 << bit) + few for bit in range(9, BYTES_BITS) for few in (0, 9)])

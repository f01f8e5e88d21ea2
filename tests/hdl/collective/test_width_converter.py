from functools import partial

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.collective.width_converter import BYTES_BITS, WidthConverter
from tests.hdl.collective.words import beats_of_bytes
from tests.hdl.simulation import WARM_UP, assign, drive, simulated
from tests.hdl.streams import play

SEED = 6765


class Both(wiring.Component):
    """Both converters, to wider and to narrower beats; a bit of `begun` is set while its converter has an operation."""

    def __init__(self, small: int, large: int):
        self.units = {"widens": WidthConverter(small, large), "narrows": WidthConverter(large, small)}
        super().__init__({name: Out(unit.signature) for name, unit in self.units.items()} | {"begun": In(2)})

    def elaborate(self, platform):
        m = Module()
        for begun, (name, unit) in zip(self.begun, self.units.items(), strict=True):
            m.submodules[name], port = unit, getattr(self, name)
            wiring.connect(m, unit.o, wiring.flipped(port.o))
            assign(m, unit, bytes=port.bytes)
            assign(m, unit.i, payload=port.i.payload, valid=port.i.valid & begun)
            assign(m, port.i, ready=unit.i.ready & begun)
        return m


async def operate(ctx, unit, begun, sizes, pace):
    for size in sizes:
        ctx.set(begun, 1)
        drive(ctx, unit, bytes=size)
        await ctx.tick().until(unit.o.valid & unit.o.ready & unit.o.payload.last)
        while pace():
            ctx.set(begun, 0)
            await ctx.tick()
    ctx.set(begun, 0)


@pytest.mark.parametrize("stall", [0, 0.4])
@pytest.mark.parametrize(("small", "large"), [(8, 16), (8, 64)])
def test_operations_of_both_converters(small, large, stall, rng, py_rng):
    dut = Both(small, large)
    inputs, outputs, wanted, ports, processes = {}, {}, {}, {}, []
    for begun, (name, unit) in zip(dut.begun, dut.units.items(), strict=True):
        port, sizes = getattr(dut, name), rng.integers(1, 5 * large, size=60).tolist()
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
        processes.append(partial(operate, unit=port, begun=begun, sizes=sizes, pace=lambda: py_rng.random() < stall))
    played = play(dut, inputs, outputs, ports=ports, stall=stall, seed=SEED, others=processes, warm_up=WARM_UP)
    for name, beats in wanted.items():
        bits = 8 * dut.units[name.split()[0]].o_bytes
        for payload, (beat, count, last) in zip(played.payloads[name], beats, strict=True):
            assert (payload % (1 << 8 * count), payload >> bits) == (beat, last)
    for name in ("widens i", "narrows o"):
        assert stall or np.diff(played.cycles[name]).max() == 1


@simulated(lambda: Both(8, 16), each=[(1 << bit) + few for bit in range(7, BYTES_BITS) for few in (0, 9)])
async def test_long_operations_do_not_end(ctx, dut, size):
    ctx.set(dut.begun, 3)
    for name in dut.units:
        drive(ctx, getattr(dut, name), bytes=size, **{"i.valid": 1, "o.ready": 1})
    for _ in range(15):
        lasts = [getattr(dut, name).o.payload.last for name in dut.units]
        assert not any((await ctx.tick().sample(*lasts))[-2:])


@simulated(lambda: Both(8, 16), each=(8, 9, 16, 40))
async def test_the_first_part_of_a_beat_is_accepted_immediately(ctx, dut, size):
    ctx.set(dut.begun, 1)
    drive(ctx, dut.widens, bytes=size, **{"i.valid": 1})
    parts = [(await ctx.tick().sample(dut.widens.i.ready, dut.widens.o.valid))[-2:] for _ in range(3)]
    assert parts == [(1, 0), (0, 1), (0, 1)] if size > 8 else [(0, 1)] * 3

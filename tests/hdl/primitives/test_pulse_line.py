"""Pulse line: pulses a fixed time later, unless there was a reset."""

import pytest
from amaranth import Module, ResetInserter, Signal
from amaranth.sim import Simulator

from neuroncore_rtl.hdl.primitives.pulse_line import PulseLine


@pytest.mark.parametrize("delay", [1, 2, 3, 9])
def test_a_reset_removes_the_pulses_before_it(delay):
    m, reset = Module(), Signal()
    line = PulseLine(delay)
    m.submodules.line = ResetInserter(reset)(line)
    simulator, begun = Simulator(m), 4 * delay + 3
    simulator.add_clock(1e-6)
    found = []

    async def drive(ctx):
        for cycle in range(begun + 4 * delay):
            ctx.set(line.i, cycle % 3 != 1)
            ctx.set(reset, cycle == begun)
            found.append(ctx.get(line.o))
            await ctx.tick()

    simulator.add_testbench(drive)
    simulator.run()
    given = [cycle % 3 != 1 for cycle in range(begun + 4 * delay)]
    assert found[delay : begun + 1] == given[: begun + 1 - delay]
    assert not any(found[begun + 1 : begun + 1 + delay]) and not any(found[:delay])
    assert found[begun + 1 + delay :] == given[begun + 1 : begun + 4 * delay - delay]

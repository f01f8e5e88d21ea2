"""Pulse line: pulses a fixed time later, unless there was a reset."""

import pytest

from neuroncore_rtl.hdl.primitives.pulse_line import PulseLine
from tests.hdl.simulation import simulated


@pytest.mark.parametrize("delay", [1, 2, 3, 9])
@simulated(PulseLine)
async def test_a_reset_removes_the_pulses_before_it(ctx, line, reset, delay):
    begun, found = 4 * delay + 3, []
    given = [cycle % 3 != 1 for cycle in range(begun + 4 * delay)]
    for cycle, pulses in enumerate(given):
        ctx.set(line.i, pulses)
        ctx.set(reset, cycle == begun)
        found.append(ctx.get(line.o))
        await ctx.tick()
    assert found[delay : begun + 1] == given[: begun + 1 - delay]
    assert not any(found[begun + 1 : begun + 1 + delay]) and not any(found[:delay])
    assert found[begun + 1 + delay :] == given[begun + 1 : begun + 4 * delay - delay]

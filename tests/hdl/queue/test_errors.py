import pytest

from neuroncore_rtl.hdl.queue.errors import Errors
from neuroncore_rtl.spec.isa import Cause, Rule
from tests.hdl.simulation import expect, simulated

REPORTS = (
    ({"detail": 5}, {"queue": 0, "cause": Cause.BOOT, "address": 0}),
    ({"cause": int(Rule.RANGE), "address": 1 << 39 | 128, "detail": 9}, {"queue": 1}),
    ({"cause": int(Cause.INDEX), "address": 256, "detail": 0xFFFFFFFF}, {"queue": 2}),
    ({"queue": 2, "cause": int(Cause.STUCK), "address": 384, "detail": 0}, {}),
)
"""Error reports of boot, queues 1 and 2, and the watchdog: the latch's input, and the fields that the latch adds."""


@pytest.mark.parametrize("first", range(len(REPORTS)))
@simulated(lambda: Errors(3))
async def test_of_errors_in_a_cycle_the_order_is_boot_queues_watchdog(ctx, dut, first):
    ports = [dut.boot, dut.queue_errors[1], dut.queue_errors[2], dut.watchdog]
    reports = [{"valid": 1} | report for report, _ in REPORTS]
    wanted = reports[first] | REPORTS[first][1]
    await ctx.tick().repeat(3)
    expect(ctx, dut, halt=0, error=0)
    for port, report in zip(ports[first:], reports[first:], strict=True):
        ctx.set(port, report)
    for cycle in range(6):
        await ctx.tick()
        expect(ctx, dut, cycle, halt=1, **{f"error.{name}": value for name, value in wanted.items()})
        ctx.set(ports[0], reports[0])
        ctx.set(ports[first], dict.fromkeys(reports[first], 0))

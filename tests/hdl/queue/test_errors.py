# amaranth: UnusedElaboratable=no

"""The first error stays, and the order of those that come together."""

from neuroncore_rtl.hdl.queue.errors import Errors
from neuroncore_rtl.spec.isa import Cause, Rule
from tests.hdl.simulation import simulate

BOOT = {"valid": 1, "detail": 5}
QUEUE1 = {"valid": 1, "cause": int(Rule.RANGE), "address": 1 << 39 | 128, "detail": 9}
QUEUE2 = {"valid": 1, "cause": int(Cause.INDEX), "address": 256, "detail": 0xFFFFFFFF}
WATCHDOG = {"valid": 1, "queue": 2, "cause": int(Cause.STUCK), "address": 384, "detail": 0}


def test_of_errors_in_a_cycle_the_order_is_boot_queues_watchdog():
    reports = {
        "boot": (BOOT, {"queue": 0, "cause": Cause.BOOT, "address": 0, "detail": 5}),
        "queue1": (QUEUE1, QUEUE1 | {"queue": 1}),
        "queue2": (QUEUE2, QUEUE2 | {"queue": 2}),
        "watchdog": (WATCHDOG, WATCHDOG),
    }
    for first in range(len(reports)):
        dut = Errors(3)
        ports = [dut.boot, dut.queue_errors[1], dut.queue_errors[2], dut.watchdog]
        names = list(reports)

        async def bench(ctx, dut=dut, ports=ports, names=names, first=first):
            await ctx.tick().repeat(3)
            assert not ctx.get(dut.halt) and ctx.get(dut.error.as_value()) == 0
            for port, name in list(zip(ports, names, strict=True))[first:]:
                ctx.set(port, reports[name][0])
            for cycle in range(6):
                await ctx.tick()
                error = ctx.get(dut.error)
                wanted = reports[names[first]][1]
                assert ctx.get(dut.halt) and error.valid
                assert {name: error[name] for name in ("queue", "cause", "address", "detail")} == {
                    name: int(wanted[name]) for name in ("queue", "cause", "address", "detail")
                }, cycle
                ctx.set(ports[0], BOOT)  # comes too late unless it was there
                ctx.set(ports[first], dict.fromkeys(reports[names[first]][0], 0))

        simulate(dut, bench)

"""Amaranth's simulator, and both ends of a stream, for the tests of single units."""

import functools
import inspect
import random
from collections.abc import Callable, Iterable

from amaranth import ClockDomain, Module, Value
from amaranth.sim import Simulator

__all__ = ["drive", "offer", "put", "simulate", "simulated", "take"]

_PERIOD = 1e-6


def simulate(dut, *testbenches: Callable, background: Iterable[Callable] = ()) -> None:
    """Run testbenches on a unit to their end; it has a clock even if it is combinational.

    Arguments:
        dut: the unit, or a module around some.
        testbenches: asynchronous functions of the simulator's context.
        background: others, which may still wait for something at the end.
    """
    m = Module()
    m.domains.sync = ClockDomain()
    m.submodules.dut = dut
    simulator = Simulator(m)
    simulator.add_clock(_PERIOD)
    for testbench in background:
        simulator.add_testbench(testbench, background=True)
    for testbench in testbenches:
        simulator.add_testbench(testbench)
    simulator.run()


def simulated(make: Callable) -> Callable:
    """Make a test of a testbench, which takes the simulator's context and a unit, and a test's arguments behind them.

    Arguments:
        make: returns the unit; it may take arguments of the test, by their names.
    """

    def decorate(testbench):
        _, place, *parameters = inspect.signature(testbench).parameters.values()

        @functools.wraps(testbench)
        def test(**arguments):
            needed = inspect.signature(make).parameters
            unit = make(**{name: value for name, value in arguments.items() if name in needed})
            simulate(unit, functools.partial(testbench, **{place.name: unit}, **arguments))

        test.__signature__ = inspect.Signature(parameters)
        return test

    return decorate


def drive(ctx, unit, **values) -> None:
    """Set ports of a unit, or members of an interface, by their names."""
    for name, value in values.items():
        ctx.set(getattr(unit, name), value)


async def put(ctx, stream, payload) -> None:
    """Offer a payload to a stream until it is taken."""
    drive(ctx, stream, payload=payload, valid=1)
    await ctx.tick().until(stream.ready)
    ctx.set(stream.valid, 0)


async def offer(ctx, stream, payloads: Iterable, *, stall: float = 0.0, pace: random.Random | None = None) -> None:
    """Put payloads into a stream; in a share `stall` of the cycles, chosen by `pace`, no new one is offered."""
    for payload in payloads:
        while stall and pace.random() < stall:
            await ctx.tick()
        await put(ctx, stream, payload)


async def take(
    ctx, stream, count: int, *, limit: int, stall: float = 0.0, pace: random.Random | None = None
) -> list[tuple]:
    """Return the next payloads of a stream, each with the cycle, from now on, in which it was taken.

    Arguments:
        count: how many.
        limit: cycles that it may last.
        stall, pace: in this share of the cycles, chosen by `pace`, none is taken; what waits must then stay as it is.
    """
    taken, waiting = [], None
    for cycle in range(limit):
        ready = not stall or pace.random() >= stall
        ctx.set(stream.ready, ready)
        *_, valid, payload, bits = await ctx.tick().sample(stream.valid, stream.payload, Value.cast(stream.payload))
        assert waiting is None or (valid and bits == waiting), f"a payload changes before it is taken in cycle {cycle}"
        waiting = bits if valid and not ready else None
        if valid and ready:
            taken.append((cycle, payload))
            if len(taken) == count:
                ctx.set(stream.ready, 0)
                return taken
    raise AssertionError(f"{len(taken)} of {count} payloads came in {limit} cycles")

"""Amaranth's simulator, and who feeds a stream, for the tests of single units."""

import functools
import inspect
import random
from collections.abc import Callable, Iterable

import numpy as np
from amaranth import ClockDomain, Module
from amaranth.sim import Simulator

__all__ = ["drive", "offer", "put", "random_bits", "simulate", "simulated", "simulator_of"]

_PERIOD = 1e-6


def simulator_of(dut) -> Simulator:
    """Return Amaranth's simulator of a unit; `tb/campaign/mutation/` puts one of the unit's mutants in its place."""
    m = Module()
    m.domains.sync = ClockDomain()
    m.submodules.dut = dut
    return Simulator(m)


def simulate(dut, testbench: Callable, *, background: Iterable[Callable] = ()):
    """Run a testbench on a unit to its end, and return what it returns; there is a clock even for combinational units.

    Arguments:
        dut: the unit, or a module around some.
        testbench: an asynchronous function of the simulator's context.
        background: others, which may still wait for something at the end.
    """
    simulator = simulator_of(dut)
    simulator.add_clock(_PERIOD)
    returned = []

    async def main(ctx):
        returned.append(await testbench(ctx))

    for other in background:
        simulator.add_testbench(other, background=True)
    simulator.add_testbench(main)
    simulator.run()
    return returned[0]


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


def random_bits(rng: np.random.Generator, bits: int) -> int:
    """Return a random number of so many bits."""
    return int.from_bytes(rng.bytes(-(-bits // 8)), "little") % (1 << bits)


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

"""Amaranth's simulator, and both ends of a stream, for the tests of single units."""

import functools
import inspect
import random
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from amaranth import ClockDomain, Module, Value
from amaranth.sim import Simulator

__all__ = ["Flow", "drive", "flow", "offer", "put", "simulate", "simulated", "take"]

_PERIOD = 1e-6

_PATIENCE = 1_000_000
"""Cycles after which a unit that should be done never will be."""


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


class Flow(NamedTuple):
    """The cycles in which a unit took words, in which it showed something, and what left it, each with its cycle."""

    taken: list[int]
    shown: list[int]
    passed: list[tuple]


async def flow(
    ctx, unit, words: Sequence[int], *, stall: float = 0.0, pace: random.Random | None = None, quiet: int = 12
) -> Flow:
    """Give words to a unit's stream `i` and take what comes at its `o`, until it has done nothing for some cycles.

    Arguments:
        unit: it has an output `busy` besides.
        words: each is offered until it is taken.
        stall, pace: in this share of the cycles, chosen by `pace`, nothing is taken; what waits must then stay.
        quiet: cycles at the end in which the unit is not busy and nothing moves.
    """
    seen, waiting, still = Flow([], [], []), None, 0
    for cycle in range(_PATIENCE):
        left = len(seen.taken) < len(words)
        ctx.set(unit.i.valid, left)
        ctx.set(Value.cast(unit.i.payload), words[len(seen.taken)] if left else 0)
        ready = not stall or pace.random() >= stall
        ctx.set(unit.o.ready, ready)
        outputs = unit.i.ready, unit.o.valid, unit.o.payload, Value.cast(unit.o.payload), unit.busy
        *_, room, valid, payload, bits, busy = await ctx.tick().sample(*outputs)
        assert waiting is None or (valid and bits == waiting), f"a payload changes before it is taken in cycle {cycle}"
        assert busy or not valid, f"what waits at the output in cycle {cycle} does not count as busy"
        waiting = bits if valid and not ready else None
        seen.taken.extend([cycle] * (left and room))
        seen.shown.extend([cycle] * valid)
        seen.passed.extend([(cycle, payload)] * (valid and ready))
        still = 0 if busy or valid or (left and room) else still + 1
        if still == quiet:
            return seen
    raise AssertionError(f"{len(words)} words are not done with in {_PATIENCE} cycles")

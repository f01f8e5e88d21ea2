"""Amaranth's simulator, and who feeds a stream, for the tests of single units."""

import functools
import inspect
import os
import random
from collections.abc import Callable, Iterable
from contextlib import nullcontext

import numpy as np
from amaranth import ClockDomain, Module, ResetInserter, Signal, Value
from amaranth.hdl import Fragment
from amaranth.lib.wiring import In
from amaranth.sim import Simulator

from tests.hdl.engine import Engine
from tests.hdl.processes import in_parts

__all__ = [
    "WAVEFORM", "WORN", "drive", "next_turn", "offer", "pulse", "put", "random_bits", "simulate", "simulate_each",
    "simulated", "simulator_of",
]  # fmt: skip

_PERIOD = 1e-6

WORN = 150
"""Cycles in which a unit can come into most of its states."""

WAVEFORM = "NEURONCORE_WAVEFORM"
"""The variable of the environment that names a VCD: Amaranth's own engine then runs simulations and writes it."""

begun = 0
"""Simulations so far, by which `tests/hdl/conftest.py` sees that a test had one."""


def simulator_of(dut) -> Simulator:
    """Return Amaranth's simulator of a unit; `tb/campaign/mutation/` puts one of the unit's mutants in its place."""
    m = Module()
    m.domains.sync = ClockDomain()
    m.submodules.dut = dut
    fragment = Fragment.get(m, None)
    return Simulator(fragment) if WAVEFORM in os.environ else Simulator(in_parts(fragment), engine=Engine)


def simulate(dut, testbench: Callable, *, background: Iterable[Callable] = (), worn: int = 0):
    """Run a testbench on a unit to its end, and return what it returns; there is a clock even for combinational units.

    Arguments:
        dut: the unit, or a module around some.
        testbench: an asynchronous function of the simulator's context.
        background: others, which may still wait for something at the end.
        worn: cycles in which the unit gets anything at random first, and is then reset: to a testbench it is as new.
    """
    global begun
    begun += 1
    reset, rested = Signal(), not worn
    simulator = simulator_of(ResetInserter(reset)(dut) if worn else dut)
    simulator.add_clock(_PERIOD)
    returned = []

    async def main(ctx):
        nonlocal rested
        if worn:
            await _wear(ctx, dut, reset, worn)
        rested = True
        returned.append(await testbench(ctx))

    async def beside(ctx, other):
        while not rested:
            await ctx.tick()
        await other(ctx)

    for other in background:
        simulator.add_testbench(functools.partial(beside, other=other) if worn else other, background=True)
    simulator.add_testbench(main)
    path = os.environ.get(WAVEFORM)
    with simulator.write_vcd(path) if path else nullcontext():
        simulator.run()
    return returned[0]


def simulate_each(dut, testbench: Callable, cases: Iterable) -> None:
    """Run a testbench, which takes the simulator's context and a case, for each of some, on a unit that was reset."""
    reset = Signal()

    async def bench(ctx):
        for case in cases:
            await pulse(ctx, reset)
            await testbench(ctx, case)

    simulate(ResetInserter(reset)(dut), bench)


async def _wear(ctx, unit, reset: Signal, cycles: int) -> None:
    """Give the inputs of a unit random bits, reset it while they still are, and give them what they begin with."""
    dice = random.Random(cycles)
    members = unit.signature.flatten(unit)
    inputs = [value for _, member, value in members if member.flow == In]
    # Of the parts of one signal only the whole is set; constants are none.
    signals = {id(signal): signal for value in inputs for signal in Value.cast(value)._rhs_signals()}.values()
    for cycle in range(cycles + 1):
        for signal in signals:
            ctx.set(signal, dice.getrandbits(len(signal)) if len(signal) else 0)
        ctx.set(reset, cycle == cycles)
        await ctx.tick()
    for signal in signals:
        ctx.set(signal, signal.init)
    ctx.set(reset, 0)


def next_turn(last: int, asking: int, count: int) -> int:
    """Return who is next behind `last` of those whose bits are set in `asking`, of `count`."""
    return next(number % count for number in range(last + 1, last + 1 + count) if asking >> number % count & 1)


def simulated(make: Callable, *, each: Iterable | None = None, worn: int = 0) -> Callable:
    """Make a test of a testbench, which takes the simulator's context and a unit, and a test's arguments behind them.

    A testbench that takes `reset` gets the signal that resets the unit.

    Arguments:
        make: returns the unit; it may take arguments of the test, by their names.
        each: cases, of which the testbench takes one behind the unit; the unit is reset before each.
        worn: see :func:`simulate`; a test may have a parameter of this name.
    """
    cases = None if each is None else list(each)

    def decorate(testbench):
        _, place, *parameters = inspect.signature(testbench).parameters.values()
        case = None if cases is None else parameters.pop(0).name
        resets = "reset" in inspect.signature(testbench).parameters

        @functools.wraps(testbench)
        def test(**arguments):
            needed = inspect.signature(make).parameters
            unit = make(**{name: value for name, value in arguments.items() if name in needed})
            given, dut = {place.name: unit} | arguments, unit
            if resets:
                given["reset"] = Signal()
                dut = ResetInserter(given["reset"])(unit)
            if case is None:
                simulate(dut, functools.partial(testbench, **given), worn=arguments.get("worn", worn))
            else:
                simulate_each(dut, lambda ctx, one: testbench(ctx, **given, **{case: one}), cases)

        test.__signature__ = inspect.Signature([one for one in parameters if one.name != "reset"])
        return test

    return decorate


async def pulse(ctx, signal: Signal) -> None:
    """Set a bit for a cycle."""
    ctx.set(signal, 1)
    await ctx.tick()
    ctx.set(signal, 0)


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

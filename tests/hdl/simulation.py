"""Amaranth's simulator for tests of single units, and helpers that drive ports and streams; marks of slow cases."""

import functools
import inspect
import os
import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from operator import attrgetter

import numpy as np
import pytest
from amaranth import ClockDomain, Module, ResetInserter, Signal, Value
from amaranth.hdl import Fragment
from amaranth.lib.wiring import In
from amaranth.sim import Simulator

from tests.hdl.engine import Engine, in_parts

__all__ = [
    "WARM_UP", "WAVEFORM", "assign", "drive", "expect", "flash", "next_turn", "offer", "packed", "pulse", "put",
    "random_bits", "simulate", "simulated", "simulator_of", "slow", "slow_if",
]  # fmt: skip

_PERIOD = 1e-6

WARM_UP = 150
"""Cycles of random inputs that bring a unit into most of its states."""

WAVEFORM = "NEURONCORE_WAVEFORM"
"""Environment variable with the path of a VCD; if it is set, Amaranth's engine simulates and writes the VCD."""

simulations = 0
"""Number of simulations so far; `tests/hdl/conftest.py` compares it to detect tests that simulate."""


def simulator_of(dut) -> Simulator:
    """Return Amaranth's simulator of a unit; `tb/campaign/mutation/` substitutes this function to simulate mutants."""
    m = Module()
    m.domains.sync = ClockDomain()
    m.submodules.dut = dut
    fragment = Fragment.get(m, None)
    return Simulator(fragment) if WAVEFORM in os.environ else Simulator(in_parts(fragment), engine=Engine)


def simulate(dut, testbench: Callable, *, background: Iterable[Callable] = (), warm_up: int = 0):
    """Run a testbench on a unit and return its result; combinational units get a clock, too.

    Arguments:
        dut: the unit, or a module around units.
        testbench: asynchronous function of the simulator's context.
        background: further testbenches, which may still be running when `testbench` ends.
        warm_up: cycles of random inputs before the testbench, followed by a reset; detects state that the reset misses.
    """
    global simulations
    simulations += 1
    reset, is_ready = Signal(), not warm_up
    simulator = simulator_of(ResetInserter(reset)(dut) if warm_up else dut)
    simulator.add_clock(_PERIOD)
    returned = []

    async def main(ctx):
        nonlocal is_ready
        if warm_up:
            await _warm_up(ctx, dut, reset, warm_up)
        is_ready = True
        returned.append(await testbench(ctx))

    async def delayed(ctx, other):
        while not is_ready:
            await ctx.tick()
        await other(ctx)

    for other in background:
        simulator.add_testbench(functools.partial(delayed, other=other) if warm_up else other, background=True)
    simulator.add_testbench(main)
    path = os.environ.get(WAVEFORM)
    with simulator.write_vcd(path) if path else nullcontext():
        simulator.run()
    return returned[0]


async def _warm_up(ctx, unit, reset: Signal, cycles: int) -> None:
    """Drive random bits into all inputs of a unit, reset it under random inputs, and restore the initial inputs."""
    rng = random.Random(cycles)
    inputs = [value for _, member, value in unit.signature.flatten(unit) if member.flow == In]
    # A signal is set as a whole, not by its slices; constants are skipped.
    signals = {id(signal): signal for value in inputs for signal in Value.cast(value)._rhs_signals()}.values()
    for cycle in range(cycles + 1):
        for signal in signals:
            ctx.set(signal, rng.getrandbits(len(signal)) if len(signal) else 0)
        ctx.set(reset, cycle == cycles)
        await ctx.tick()
    for signal in signals:
        ctx.set(signal, signal.init)
    ctx.set(reset, 0)


def next_turn(last: int, requests: int, count: int) -> int:
    """Return the next asserted bit of `requests` after `last`, in round-robin order."""
    return next(number % count for number in range(last + 1, last + 1 + count) if requests >> number % count & 1)


def simulated(
    make: Callable, *, each: Iterable | None = None, warm_up: int = 0, helpers: Mapping[str, Callable] | None = None
) -> Callable:
    """Turn a testbench into a test, or into a function that returns its result.

    Parameters of the testbench are the context, the unit, and then the arguments of the test or function. A testbench
    with a parameter `reset` gets the signal that resets the unit.

    Arguments:
        make: returns the unit; may take arguments of the test, by name.
        each: cases, passed to the testbench one at a time after the unit; the unit is reset before each.
        warm_up: see `simulate`; the test may have a parameter of this name instead.
        helpers: further parameters of the testbench, functions of the context and the unit.
    """
    cases, helpers = None if each is None else list(each), helpers or {}

    def decorate(testbench):
        _, unit_parameter, *parameters = inspect.signature(testbench).parameters.values()
        case = None if cases is None else parameters.pop(0).name
        resets = "reset" in inspect.signature(testbench).parameters
        signature = inspect.Signature([one for one in parameters if one.name not in {"reset", *helpers}])

        @functools.wraps(testbench)
        def test(*positional, **named):
            bound = signature.bind(*positional, **named)
            bound.apply_defaults()
            arguments, reset = bound.arguments, Signal(name="reset")
            needed = inspect.signature(make).parameters
            unit = make(**{name: value for name, value in arguments.items() if name in needed})
            given = {unit_parameter.name: unit} | arguments | ({"reset": reset} if resets else {})

            async def bench(ctx):
                helped = given | {name: helper(ctx, unit) for name, helper in helpers.items()}
                for one in cases or ():
                    await pulse(ctx, reset)
                    await testbench(ctx, **helped, **{case: one})
                return await testbench(ctx, **helped) if cases is None else None

            dut = ResetInserter(reset)(unit) if case or resets else unit
            return simulate(dut, bench, warm_up=arguments.get("warm_up", warm_up))

        test.__signature__ = signature
        return test

    return decorate


async def pulse(ctx, signal: Signal) -> None:
    ctx.set(signal, 1)
    await ctx.tick()
    ctx.set(signal, 0)


def random_bits(rng: np.random.Generator, bits: int) -> int:
    """Return a random integer of `bits` bits."""
    return int.from_bytes(rng.bytes(-(-bits // 8)), "little") % (1 << bits)


def packed(words: Iterable[int]) -> int:
    """Return words of 32 bits as one integer, the first one lowest."""
    return sum(int(word) << 32 * number for number, word in enumerate(words))


def assign(m: Module, unit, **values) -> None:
    """Drive ports of a unit combinationally, by name."""
    m.d.comb += [getattr(unit, name).eq(value) for name, value in values.items()]


def drive(ctx, unit, **values) -> None:
    """Set inputs of a unit by name, or by a path such as `o.ready`; an integer has the bits of a structure."""
    for name, value in values.items():
        port = attrgetter(name)(unit)
        ctx.set(Value.cast(port) if isinstance(value, int) else port, value)


def expect(ctx, unit, note: object = "", /, **values) -> None:
    """Compare outputs of a unit by name or path with the bits of values; a failure also prints `note`."""
    seen = {name: ctx.get(Value.cast(attrgetter(name)(unit))) for name in values}
    wanted = {name: getattr(value, "value", value) for name, value in values.items()}
    assert seen == wanted, f"{seen}, not {wanted} {note}"


async def flash(ctx, stream, payload) -> None:
    """Offer a payload to a stream for one cycle, accepted or not."""
    drive(ctx, stream, payload=payload)
    await pulse(ctx, stream.valid)


async def put(ctx, stream, payload) -> None:
    """Offer a payload to a stream until it is accepted."""
    drive(ctx, stream, payload=payload, valid=1)
    await ctx.tick().until(stream.ready)
    ctx.set(stream.valid, 0)


async def offer(ctx, stream, payloads: Iterable, *, stall: float = 0.0, pace: random.Random | None = None) -> None:
    """Send payloads to a stream; with probability `stall` per cycle, drawn from `pace`, no new one is offered."""
    for payload in payloads:
        while stall and pace.random() < stall:
            await ctx.tick()
        await put(ctx, stream, payload)


def slow(*cases) -> list:
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow) for case in cases]


def slow_if(is_slow: Callable[..., bool], cases: Iterable) -> list:
    """Return cases with the mark `slow` where `is_slow` of their parameters is true."""
    tuples = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=[pytest.mark.slow] * is_slow(*case)) for case in tuples]

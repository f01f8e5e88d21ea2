"""What the tests of the lanes' units share: Amaranth's simulator, and words to feed them with."""

from collections.abc import Callable

import numpy as np
from amaranth import Module, Signal
from amaranth.sim import Simulator

from neuroncore_rtl.golden.arith import canonical
from neuroncore_rtl.tb.stimulus import operands as stimulus

__all__ = ["random_words", "simulate"]


def simulate(unit, bench: Callable) -> None:
    """Run `bench`, an asynchronous function of the simulator's context, on a unit with a clock."""
    m = Module()
    m.submodules.unit = unit
    tick = Signal()
    m.d.sync += tick.eq(~tick)
    simulator = Simulator(m)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()


def random_words(rng: np.random.Generator, count: int, special: float = 0.2) -> np.ndarray:
    """Return FP32 words of moderate size, a share of them anything, NaN canonical."""
    words = rng.normal(3, 2, count).astype(np.float32).view(np.uint32)
    wild = np.where(
        rng.random(count) < 0.5, rng.choice(stimulus.special_fp32(), count), stimulus.random_fp32(rng, count)
    )
    return canonical(np.where(rng.random(count) < special, wild, words).astype(np.uint32))

"""Of the worked number format: golden decodes and rounds as gfloat does, the hardware widens and rounds as golden."""

import numpy as np

from neuroncore_rtl.golden.arith import canonical, decode, round_fp32, widen
from neuroncore_rtl.hdl.arith.round import Fp32Rounder
from neuroncore_rtl.hdl.arith.widen import Widen
from neuroncore_rtl.spec.formats import FP8E2M5, MATMUL_FORMATS
from neuroncore_rtl.tb.stimulus.operands import random_fp32
from tests.hdl.simulation import simulate
from tests.oracles.libraries import gfloat_decode, gfloat_round

CODES = np.arange(256, dtype=np.uint8)
WORDS = random_fp32(np.random.default_rng(1), 200)


def simulated(unit, **inputs: np.ndarray) -> list[tuple[int, ...]]:
    """Return the outputs `fp32` or `word` of a unit for each set of inputs, a cycle after it."""
    found = []

    async def bench(ctx):
        for values in zip(*inputs.values(), strict=True):
            for name, word in zip(inputs, values, strict=True):
                ctx.set(getattr(unit, name), int(word))
            if unit.latency:
                await ctx.tick()
            found.append(ctx.get(unit.word if unit.latency else unit.fp32))

    simulate(unit, bench)
    return found


assert FP8E2M5 in MATMUL_FORMATS
np.testing.assert_array_equal(decode(CODES, FP8E2M5), gfloat_decode(CODES, FP8E2M5))
np.testing.assert_array_equal(decode(round_fp32(WORDS, FP8E2M5), FP8E2M5), gfloat_round(WORDS, FP8E2M5))

wide = widen(CODES, FP8E2M5)
selected = np.full(len(CODES), FP8E2M5.code)
assert simulated(Widen(), word=CODES, dtype=selected) == wide.tolist()
assert simulated(Fp32Rounder(1), value=wide, format=selected) == canonical(CODES, FP8E2M5).tolist()
selected = np.full(len(WORDS), FP8E2M5.code)
assert simulated(Fp32Rounder(1), value=WORDS, format=selected) == round_fp32(WORDS, FP8E2M5).tolist()

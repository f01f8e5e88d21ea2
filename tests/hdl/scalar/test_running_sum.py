# amaranth: UnusedElaboratable=no

"""The running sum of deep lanes against golden: additions that depend on each other, every cycle."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import add_fp32
from neuroncore_rtl.hdl.scalar.running_sum import RunningSum
from neuroncore_rtl.tb.stimulus.operands import special_fp32
from tests.hdl.simulation import simulate

SEED = 20260405
ADDITIONS = 1_500
LARGEST_FIELD = 254


def addend(rng: np.random.Generator, sum_word: int) -> int:
    """Return a word that is worth adding to a sum: near it, of the same fraction or a neighbour's, or far below."""
    kind, sign = rng.random(), int(rng.integers(2)) << 31
    if kind < 0.04:
        return int(rng.choice(special_fp32()))
    field, fraction = sum_word >> 23 & 0xFF, sum_word & 0x7FFFFF
    reach = (-3, 4) if kind < 0.6 else (-40, 30)
    field = int(rng.integers(30)) if kind > 0.95 else min(max(field + int(rng.integers(*reach)), 0), LARGEST_FIELD)
    same = (fraction + int(rng.integers(-3, 4))) & 0x7FFFFF
    return sign | field << 23 | int(rng.choice([same, int(rng.integers(1 << 23)), 0, 0x7FFFFF]))


def played(rng: np.random.Generator) -> tuple[int, int, set[str]]:
    """Return how many sums were compared, how many were wrong, and what occurred."""
    unit = RunningSum()

    async def bench(ctx):
        total, compared, wrong, seen = np.float32(0), 0, 0, set()
        for cycle in range(ADDITIONS):
            before = int(total.view(np.uint32))
            y = addend(rng, before)
            adds = int(rng.random() < 0.9)
            restart = int(rng.random() < (0.3 if before & 0x7F800000 == 0x7F800000 else 0.04))
            for name, value in {"y": y, "adds": adds, "restart": restart}.items():
                ctx.set(getattr(unit, name), value)
            await ctx.tick()
            # A sum that is restarted is not looked at any more.
            if cycle and not (adds and restart):
                compared += 1
                wrong += ctx.get(unit.out) != before
            if adds:
                total = add_fp32(np.float32(0) if restart else total, np.uint32(y).view(np.float32))
                exponent = int(total.view(np.uint32)) >> 23 & 0xFF
                seen |= {name for name, met in {
                    "zero": total == 0, "subnormal": exponent == 0 and total != 0, "infinite": np.isinf(total),
                    "nan": np.isnan(total),
                }.items() if met}  # fmt: skip
        return compared, wrong, seen

    return simulate(unit, bench)


def test_every_sum_is_that_of_golden(rng):
    compared, wrong, seen = played(rng)
    assert compared > ADDITIONS * 0.8 and seen == {"zero", "subnormal", "infinite", "nan"}
    assert wrong == 0


@pytest.mark.parametrize("part", ["_far", "_near"])
def test_a_wrong_way_is_noticed(part, rng, monkeypatch):
    right = getattr(RunningSum, part)

    def wrong(self, *arguments):
        first, *rest = right(self, *arguments)
        return first ^ 1, *rest

    monkeypatch.setattr(RunningSum, part, wrong)
    assert played(rng)[1] > 10

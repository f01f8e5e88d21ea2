"""The loops over an instruction's elements beside a model of every step, and counts of which one bit decides."""

import numpy as np
import pytest

from neuroncore_rtl.hdl.elementwise.indices import Indices
from neuroncore_rtl.spec.isa.access import DIMENSIONS
from tests.hdl.simulation import drive, simulated

SEED = 2012
MOST = (1 << 16) - 1


class Model:
    """Where the loops are, in a shape."""

    def __init__(self, shape, group):
        self.shape, self.group = list(shape), group
        self.index = [0] * DIMENSIONS

    def shown(self) -> dict[str, int]:
        left = [d for d in range(DIMENSIONS) if self.index[d] < self.shape[d] - 1]
        inside = range(min(self.group, DIMENSIONS))
        return {
            "first": all(self.index[d] == 0 for d in inside),
            "last": all(d not in left for d in inside),
            "end": not left,
            "dimension": left[0] if left else 0,
        }

    def advance(self) -> None:
        along = self.shown()["dimension"]
        self.index[: along + 1] = [0] * along + [self.index[along] + 1]


def shown(ctx, unit) -> dict[str, int]:
    return {name: ctx.get(getattr(unit, name)) for name in ("first", "last", "end", "dimension")}


async def load(ctx, unit, loaded, counts, group) -> None:
    """Begin with a shape; from the second row on the counts are others, if they are told."""
    for d in range(DIMENSIONS):
        ctx.set(unit.loaded[d], int(loaded[d]))
        ctx.set(unit.counts[d], int(loaded[d] ^ MOST))
    drive(ctx, unit, load=1, advance=0)
    await ctx.tick()
    for d in range(DIMENSIONS):
        ctx.set(unit.loaded[d], int(loaded[d] ^ MOST))
        ctx.set(unit.counts[d], int(counts[d]))
    drive(ctx, unit, load=0, group=group)


@simulated(Indices)
async def test_loops_are_those_of_the_shape(ctx, unit, rng):
    """Groups of any number of dimensions; what is waited for changes nothing."""
    for number in range(80):
        shape = rng.choice([1, 1, 2, 3, 5], DIMENSIONS)
        model = Model(shape, int(rng.integers(0, DIMENSIONS + 2)))
        await load(ctx, unit, shape, shape, model.group)
        for _ in range(int(np.prod(shape)) if number % 4 else 3):
            assert shown(ctx, unit) == model.shown()
            waits = rng.random() < 0.2
            ctx.set(unit.advance, not waits)
            await ctx.tick()
            if not waits:
                if model.shown()["end"]:
                    break
                model.advance()


@simulated(Indices)
async def test_each_bit_of_a_count_keeps_a_loop_from_its_end(ctx, unit):
    """As it is loaded, as it is taken again, and as it is counted down to that bit."""
    for d in range(DIMENSIONS):
        for bit in range(15):
            for above in (1, 2):
                shape = [1] * DIMENSIONS
                shape[d] = (1 << bit) + above
                await load(ctx, unit, shape, shape, DIMENSIONS)
                for step in range(above):
                    assert shown(ctx, unit) == {"first": step == 0, "last": 0, "end": 0, "dimension": d}
                    ctx.set(unit.advance, 1)
                    await ctx.tick()
                if d < DIMENSIONS - 1:
                    await load(ctx, unit, [1] * (d + 1) + [2] + [1] * (DIMENSIONS - d - 2), shape, d + 1)
                    assert shown(ctx, unit) == {"first": 1, "last": 1, "end": 0, "dimension": d + 1}
                    ctx.set(unit.advance, 1)
                    await ctx.tick()
                    for step in range(above):
                        assert shown(ctx, unit) == {"first": step == 0, "last": 0, "end": 0, "dimension": d}
                        await ctx.tick()


@pytest.mark.parametrize("d", [0, *(pytest.param(d, marks=pytest.mark.slow) for d in range(1, DIMENSIONS))])
@simulated(Indices)
async def test_the_longest_loop_has_its_length(ctx, unit, d):
    """Of the innermost dimension the first time, and again."""
    rows = 1 if d else 2
    shape = [{d: MOST, d + 1: rows}.get(other, 1) for other in range(DIMENSIONS)]
    await load(ctx, unit, shape, shape, d + 1)
    ctx.set(unit.advance, 1)
    for row in range(rows):
        ends = row == rows - 1
        assert shown(ctx, unit) == {"first": 1, "last": 0, "end": 0, "dimension": d}
        await ctx.tick().repeat(MOST - 2)
        assert shown(ctx, unit) == {"first": 0, "last": 0, "end": 0, "dimension": d}
        await ctx.tick()
        assert shown(ctx, unit) == {"first": 0, "last": 1, "end": ends, "dimension": 0 if ends else d + 1}
        await ctx.tick()

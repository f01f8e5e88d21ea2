import numpy as np
import pytest

from neuroncore_rtl.hdl.elementwise.indices import Indices
from neuroncore_rtl.spec.isa.access import DIMENSIONS
from tests.hdl.simulation import drive, expect, simulated, slow_if

SEED = 2012
MOST = (1 << 16) - 1


def states(shape, group) -> list[dict[str, int]]:
    """Return the outputs at each index of a shape, dimension 0 innermost."""
    inside, found = range(min(group, DIMENSIONS)), []
    for outermost_first in np.ndindex(*shape[::-1]):
        index = outermost_first[::-1]
        open_loops = [d for d in range(DIMENSIONS) if index[d] < shape[d] - 1]
        first, last = (index[d] == 0 for d in inside), (d not in open_loops for d in inside)
        dimension = open_loops[0] if open_loops else 0
        found.append({"first": all(first), "last": all(last), "end": not open_loops, "dimension": dimension})
    return found


async def load(ctx, unit, loaded, counts, group) -> None:
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
    for number in range(80):
        shape, group = rng.choice([1, 1, 2, 3, 5], DIMENSIONS), int(rng.integers(0, DIMENSIONS + 2))
        await load(ctx, unit, shape, shape, group)
        expected, place = states(shape, group), 0
        for _ in range(len(expected) if number % 4 else 3):
            expect(ctx, unit, **expected[place])
            stalls = rng.random() < 0.2
            ctx.set(unit.advance, not stalls)
            await ctx.tick()
            place += not stalls
            if place == len(expected):
                break


@simulated(Indices)
async def test_each_bit_of_a_loaded_or_counted_down_count_keeps_a_loop_from_its_end(ctx, unit):
    for d in range(DIMENSIONS):
        for bit in range(15):
            for above in (1, 2):
                shape = [1] * DIMENSIONS
                shape[d] = (1 << bit) + above
                await load(ctx, unit, shape, shape, DIMENSIONS)
                for step in range(above):
                    expect(ctx, unit, first=step == 0, last=0, end=0, dimension=d)
                    ctx.set(unit.advance, 1)
                    await ctx.tick()
                if d < DIMENSIONS - 1:
                    await load(ctx, unit, [1] * (d + 1) + [2] + [1] * (DIMENSIONS - d - 2), shape, d + 1)
                    expect(ctx, unit, first=1, last=1, end=0, dimension=d + 1)
                    ctx.set(unit.advance, 1)
                    await ctx.tick()
                    for step in range(above):
                        expect(ctx, unit, first=step == 0, last=0, end=0, dimension=d)
                        await ctx.tick()


@pytest.mark.parametrize("d", slow_if(bool, range(DIMENSIONS)))
@simulated(Indices)
async def test_the_longest_loop_has_its_length(ctx, unit, d):
    shape = [MOST if other == d else 1 for other in range(DIMENSIONS)]
    await load(ctx, unit, shape, shape, d + 1)
    ctx.set(unit.advance, 1)
    expect(ctx, unit, first=1, last=0, end=0, dimension=d)
    await ctx.tick().repeat(MOST - 2)
    expect(ctx, unit, first=0, last=0, end=0, dimension=d)
    await ctx.tick()
    expect(ctx, unit, first=0, last=1, end=1, dimension=0)

import pytest

from neuroncore_rtl.hdl.elementwise.step import ElementwiseStep
from neuroncore_rtl.hdl.elementwise.turns import Turns
from neuroncore_rtl.spec import timing
from tests.hdl.simulation import drive, expect, packed, random_bits, simulated

SEED = 20261124
PARTITIONS = 8
LATENCY = 5
STEPS = 60


@pytest.mark.parametrize("turns", [2, 4, 8])
@simulated(lambda turns: Turns(PARTITIONS, turns))
async def test_every_partition_has_its_turn(ctx, unit, turns, rng):
    """A step of all partitions is split in the next cycle; its results are assembled after the last part."""
    lanes = PARTITIONS // turns
    given, parts, found, in_flight, moved = [], [], [], {}, {}
    cycle = following = 0
    while len(found) < STEPS:
        assert cycle < 40 * STEPS
        drive(ctx, unit, valid=0, a=random_bits(rng, 256), b=random_bits(rng, 256), moved=moved.pop(cycle, 0))
        ctx.set(unit.step.as_value(), random_bits(rng, len(unit.step.as_value())))
        if len(given) < STEPS and cycle >= following:
            step = {
                "index": int(rng.integers(1 << 62)), "index_partition": int(rng.integers(-(1 << 31), 1 << 31)),
                "partitions": int(rng.integers(PARTITIONS + 1)), "scalar0": int(rng.integers(1 << 32)),
            }  # fmt: skip
            a, b, words = rng.integers(0, 1 << 32, (3, PARTITIONS))
            drive(ctx, unit, valid=1, step=ElementwiseStep.const(step), a=packed(a), b=packed(b))
            given.append((cycle, step, a, b, words))
            moved[cycle + 1] = packed(words)
            following = cycle + turns + int(rng.choice([0, 0, 0, 1, 5]))
        word, enable = in_flight.pop(cycle, (None, 0))
        drive(ctx, unit, lanes_result_valid=word is not None, lanes_word=word or 0, lanes_enable=enable)
        if ctx.get(unit.result_valid):
            found.append((cycle, ctx.get(unit.word), ctx.get(unit.enable)))
        has_part = ctx.get(unit.lanes_valid)
        if has_part:
            number, turn = divmod(len(parts), turns)
            issued, step, a, b, words = given[number]
            part = slice(turn * lanes, (turn + 1) * lanes)
            index = (step["index"] + turn * lanes * step["index_partition"]) % (1 << 64)
            partitions = max(0, step["partitions"] - turn * lanes)
            expect(ctx, unit.lanes_step, index=index, partitions=partitions, scalar0=step["scalar0"])
            expect(ctx, unit, lanes_a=packed(a[part]), lanes_b=packed(b[part]))
            assert cycle == issued + 1 + turn
            parts.append((random_bits(rng, 32 * lanes), random_bits(rng, lanes)))
            in_flight[cycle + LATENCY] = parts[-1]
        await ctx.tick()
        if has_part:
            expect(ctx, unit, lanes_moved=packed(words[part]))
        cycle += 1
    assert len(given) == len(found) == STEPS and len(parts) == turns * STEPS
    for number, ((issued, *_), result) in enumerate(zip(given, found, strict=True)):
        own = list(enumerate(parts[turns * number : turns * (number + 1)]))
        word = sum(word << 32 * lanes * turn for turn, (word, _) in own)
        enable = sum(enable << lanes * turn for turn, (_, enable) in own)
        assert result == (issued + LATENCY + timing.turns_latency(turns), word, enable)

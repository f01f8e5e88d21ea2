import numpy as np
import pytest

from neuroncore_rtl.golden.arith import canonical
from neuroncore_rtl.golden.vector.search import find_index8, match_replace8, max8
from neuroncore_rtl.hdl.vector.search import Search
from neuroncore_rtl.spec.isa.alu import Arithmetic
from neuroncore_rtl.spec.isa.elementwise import SEARCH_ELEMENTS, VALUES8
from neuroncore_rtl.tb.stimulus import operands as stimulus
from tests.hdl.simulation import drive, simulated
from tests.hdl.vector.units import flags, pause, random_words

SEED = 20260404
FEWEST = SEARCH_ELEMENTS[0]
ARITHMETIC = pytest.mark.parametrize("arithmetic", Arithmetic, ids=lambda arithmetic: arithmetic.name)


def sequences_of(rng, arithmetic):
    few = np.array([0, 1 << 31, 0x7FC00000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 1], np.uint32)
    sequences = []
    for length in (FEWEST, FEWEST + 1, 20, 20, 60, 200):
        words = rng.integers(0, 1 << 32, length, np.uint32) if arithmetic else random_words(rng, length)
        sequences.append(np.where(rng.random(length) < rng.choice([0.0, 0.5, 1.0]), rng.choice(few, length), words))
    larger = rng.integers(1, 1 << 30, VALUES8, np.uint32)
    for count in range(VALUES8):
        zeros = few[rng.integers(0, 2, VALUES8)]
        sequences.append(np.concatenate([zeros, np.sort(larger[:count])]))
    for bit in range(31):  # one bit decides the comparison with each slot: low < middle < high
        low = int(rng.integers(1 << 31)) & ~(1 << bit)
        high, middle = low | 1 << bit, low | (1 << bit) - 1
        sequences.append(canonical(np.array([low] * VALUES8 + [high, middle] * VALUES8, np.uint32)))
    return sequences


def values_of(rng, words):
    words = rng.choice(words, rng.choice([2, 3, len(words)]))
    others = canonical(rng.choice(stimulus.special_fp32(), VALUES8))
    return np.where(rng.random(VALUES8) < 0.8, rng.choice(words, VALUES8), others).astype(np.uint32)


async def step(ctx, rng, unit, word, position, **probe):
    """Issue one word, and some idle cycles; return whether it hit."""
    drive(ctx, unit, word=int(word), position=position, probe=probe)
    hit = ctx.get(unit.hit)
    await ctx.tick()
    ctx.set(unit.probe, {})
    for _ in range(pause(rng)):
        ctx.set(unit.word, int(rng.integers(1 << 32)))
        await ctx.tick()
    return hit


def eight(ctx, unit, output):
    words = []
    for number in range(VALUES8):
        ctx.set(unit.number, number)
        words.append(ctx.get(output))
    return words


@ARITHMETIC
@simulated(Search)
async def test_largest_are_those_of_golden(ctx, unit, arithmetic, rng):
    drive(ctx, unit, **flags(arithmetic))
    for words in sequences_of(rng, arithmetic):
        for position, word in enumerate(words):
            await step(ctx, rng, unit, word, position, insert=1)
        assert eight(ctx, unit, unit.largest) == max8(words, arithmetic).tolist()


@ARITHMETIC
@simulated(Search)
async def test_values_are_found_where_golden_finds_them(ctx, unit, arithmetic, rng):
    missing, replacement = set(), np.uint32(0x12345678)
    drive(ctx, unit, **flags(arithmetic))
    for words in sequences_of(rng, arithmetic):
        values = values_of(rng, words)
        for number, value in enumerate(values):
            ctx.set(unit.number, number)
            await step(ctx, rng, unit, value, 0, load=1)
        positions = np.sort(rng.choice(SEARCH_ELEMENTS[1], len(words), replace=False)).tolist()
        hit = [await step(ctx, rng, unit, word, at, match=1) for at, word in zip(positions, words, strict=True)]
        replaced = np.where(np.array(hit, bool), replacement, words)
        assert replaced.tolist() == match_replace8(words, values, replacement, arithmetic).tolist()
        indices = find_index8(words, values, arithmetic).tolist()
        expected = [positions[index] if index >= 0 else (1 << 32) - 1 for index in indices]
        assert eight(ctx, unit, unit.found) == expected
        missing |= {index < 0 for index in indices}
    assert missing == {False, True}

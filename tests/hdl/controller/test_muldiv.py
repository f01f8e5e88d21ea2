"""Multiplier and divider against Python's integers."""

import random

import pytest

from neuroncore_rtl.hdl.controller.muldiv import Divider, Multiplier
from tests.hdl.simulation import simulate

WORD = 0xFFFF_FFFF
SPECIAL = (0, 1, 2, 0xFFFF, 0x1_0000, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, WORD - 1, WORD)
PAIRS = [(a, b) for a in SPECIAL for b in SPECIAL]


def signed(word: int) -> int:
    return word - (word >> 31 << 32)


def divided(a: int, b: int, is_signed: bool) -> tuple[int, int]:
    """Quotient and remainder as the M extension defines them."""
    if b == 0:
        return WORD, a
    if is_signed:
        a, b = signed(a), signed(b)
    quotient = abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)
    return quotient & WORD, (a - quotient * b) & WORD


@pytest.mark.parametrize("a_signed, b_signed", [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("high", [False, True])
def test_product(a_signed, b_signed, high):
    """One pair enters per cycle."""
    rng = random.Random(2)
    pairs = PAIRS + [(rng.getrandbits(32), rng.getrandbits(32)) for _ in range(200)]
    unit = Multiplier()

    async def bench(ctx):
        ctx.set(unit.enable, 1)
        ctx.set(unit.a_signed, a_signed)
        ctx.set(unit.b_signed, b_signed)
        ctx.set(unit.high, high)
        for place in range(len(pairs) + unit.LATENCY):
            if place >= unit.LATENCY:
                a, b = pairs[place - unit.LATENCY]
                product = (signed(a) if a_signed else a) * (signed(b) if b_signed else b)
                assert ctx.get(unit.out) == product >> 32 * high & WORD, (hex(a), hex(b))
            if place < len(pairs):
                ctx.set(unit.a, pairs[place][0])
                ctx.set(unit.b, pairs[place][1])
            await ctx.tick()

    simulate(unit, bench)


def test_product_stays_until_the_next_operands():
    unit = Multiplier()

    async def bench(ctx):
        ctx.set(unit.enable, 1)
        ctx.set(unit.a, 6)
        ctx.set(unit.b, 7)
        await ctx.tick()
        ctx.set(unit.enable, 0)
        ctx.set(unit.a, 9)
        await ctx.tick()
        assert ctx.get(unit.out) == 42

    simulate(unit, bench)


@pytest.mark.parametrize("is_signed", [False, True])
@pytest.mark.parametrize("remainder", [False, True])
def test_quotient_and_remainder(is_signed, remainder):
    rng = random.Random(3)
    pairs = [(a, b) for a in SPECIAL[::2] + SPECIAL[-1:] for b in SPECIAL]
    pairs += [(rng.getrandbits(32), rng.getrandbits(rng.randint(1, 32))) for _ in range(20)]
    unit = Divider()

    async def bench(ctx):
        ctx.set(unit.signed, is_signed)
        ctx.set(unit.remainder, remainder)
        for a, b in pairs:
            ctx.set(unit.valid, 1)
            ctx.set(unit.a, a)
            ctx.set(unit.b, b)
            for _ in range(unit.LATENCY):
                assert not ctx.get(unit.done)
                await ctx.tick()
            # The result stays until it is taken.
            for take in (0, 1):
                ctx.set(unit.take, take)
                assert ctx.get(unit.done)
                assert ctx.get(unit.out) == divided(a, b, is_signed)[remainder], (hex(a), hex(b))
                await ctx.tick()
            ctx.set(unit.take, 0)

    simulate(unit, bench)


def test_abandoned_division_leaves_no_trace():
    unit = Divider()

    async def bench(ctx):
        ctx.set(unit.valid, 1)
        ctx.set(unit.a, WORD)
        ctx.set(unit.b, 3)
        await ctx.tick().repeat(10)
        ctx.set(unit.valid, 0)
        await ctx.tick()
        ctx.set(unit.valid, 1)
        ctx.set(unit.a, 100)
        ctx.set(unit.b, 7)
        await ctx.tick().repeat(unit.LATENCY)
        assert ctx.get(unit.done)
        assert ctx.get(unit.out) == 14

    simulate(unit, bench)

"""Multiplier and divider against Python's integers."""

import random

import pytest

from neuroncore_rtl.hdl.controller.muldiv import Divider, Multiplier
from tests.hdl.simulation import drive, simulated

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
@simulated(Multiplier)
async def test_product(ctx, unit, a_signed, b_signed, high):
    """One pair enters per cycle."""
    rng = random.Random(2)
    pairs = PAIRS + [(rng.getrandbits(32), rng.getrandbits(32)) for _ in range(200)]
    drive(ctx, unit, enable=1, a_signed=a_signed, b_signed=b_signed, high=high)
    for place in range(len(pairs) + unit.LATENCY):
        if place >= unit.LATENCY:
            a, b = pairs[place - unit.LATENCY]
            product = (signed(a) if a_signed else a) * (signed(b) if b_signed else b)
            assert ctx.get(unit.out) == product >> 32 * high & WORD, (hex(a), hex(b))
        if place < len(pairs):
            drive(ctx, unit, a=pairs[place][0], b=pairs[place][1])
        await ctx.tick()


@simulated(Multiplier)
async def test_product_stays_until_the_next_operands(ctx, unit):
    drive(ctx, unit, enable=1, a=6, b=7)
    await ctx.tick()
    drive(ctx, unit, enable=0, a=9)
    await ctx.tick()
    assert ctx.get(unit.out) == 42


@pytest.mark.parametrize("is_signed", [False, True])
@pytest.mark.parametrize("remainder", [False, True])
@simulated(Divider)
async def test_quotient_and_remainder(ctx, unit, is_signed, remainder):
    rng = random.Random(3)
    pairs = [(a, b) for a in SPECIAL[::2] + SPECIAL[-1:] for b in SPECIAL]
    pairs += [(rng.getrandbits(32), rng.getrandbits(rng.randint(1, 32))) for _ in range(20)]
    drive(ctx, unit, signed=is_signed, remainder=remainder)
    for a, b in pairs:
        drive(ctx, unit, valid=1, a=a, b=b)
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


@simulated(Divider)
async def test_abandoned_division_leaves_no_trace(ctx, unit):
    drive(ctx, unit, valid=1, a=WORD, b=3)
    await ctx.tick().repeat(10)
    ctx.set(unit.valid, 0)
    await ctx.tick()
    drive(ctx, unit, valid=1, a=100, b=7)
    await ctx.tick().repeat(unit.LATENCY)
    assert ctx.get(unit.done) and ctx.get(unit.out) == 14

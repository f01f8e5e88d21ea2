import random
from itertools import product

import pytest

from neuroncore_rtl.hdl.controller.alu import ControllerAlu
from neuroncore_rtl.hdl.controller.instruction import AluOp
from neuroncore_rtl.hdl.controller.muldiv import Divider, Multiplier
from tests.hdl.simulation import drive, simulated

WORD = 0xFFFF_FFFF
SPECIAL = (0, 1, 2, 31, 32, 33, 0xFFFF, 0x1_0000, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, WORD - 1, WORD)


def signed(word: int) -> int:
    return word - (word >> 31 << 32)


def pairs(count: int, seed: int) -> list[tuple[int, int]]:
    rng = random.Random(seed)
    return [*product(SPECIAL, SPECIAL), *((rng.getrandbits(32), rng.getrandbits(32)) for _ in range(count))]


EXPECTED = {
    AluOp.ADD: lambda a, b: a + b,
    AluOp.SUB: lambda a, b: a - b,
    AluOp.SLL: lambda a, b: a << b % 32,
    AluOp.SLT: lambda a, b: signed(a) < signed(b),
    AluOp.SLTU: lambda a, b: a < b,
    AluOp.XOR: lambda a, b: a ^ b,
    AluOp.SRL: lambda a, b: a >> b % 32,
    AluOp.SRA: lambda a, b: signed(a) >> b % 32,
    AluOp.OR: lambda a, b: a | b,
    AluOp.AND: lambda a, b: a & b,
}

CONDITIONS = {
    0b000: lambda a, b: a == b,
    0b001: lambda a, b: a != b,
    0b100: lambda a, b: signed(a) < signed(b),
    0b101: lambda a, b: signed(a) >= signed(b),
    0b110: lambda a, b: a < b,
    0b111: lambda a, b: a >= b,
}


@pytest.mark.parametrize(
    ("control", "code", "output", "expected"),
    [
        *(("op", op, "result", EXPECTED[op]) for op in AluOp),
        *(("condition", code, "holds", holds) for code, holds in CONDITIONS.items()),
    ],
)
@simulated(ControllerAlu)
async def test_alu_is_that_of_python(ctx, alu, control, code, output, expected):
    ctx.set(getattr(alu, control), code)
    for a, b in pairs(100, seed=1):
        drive(ctx, alu, a=a, b=b)
        assert ctx.get(getattr(alu, output)) == expected(a, b) & WORD, (hex(a), hex(b))


@pytest.mark.parametrize("a_signed, b_signed", [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("high", [False, True])
@simulated(Multiplier)
async def test_a_product_per_cycle(ctx, unit, a_signed, b_signed, high):
    cases = pairs(200, seed=2)
    drive(ctx, unit, enable=1, a_signed=a_signed, b_signed=b_signed, high=high)
    for cycle in range(len(cases) + unit.LATENCY):
        if cycle >= unit.LATENCY:
            a, b = cases[cycle - unit.LATENCY]
            product = (signed(a) if a_signed else a) * (signed(b) if b_signed else b)
            assert ctx.get(unit.out) == product >> 32 * high & WORD, (hex(a), hex(b))
        if cycle < len(cases):
            drive(ctx, unit, a=cases[cycle][0], b=cases[cycle][1])
        await ctx.tick()


@simulated(Multiplier)
async def test_product_stays_until_the_next_operands(ctx, unit):
    drive(ctx, unit, enable=1, a=6, b=7)
    await ctx.tick()
    drive(ctx, unit, enable=0, a=9)
    await ctx.tick()
    assert ctx.get(unit.out) == 42


def divide(a: int, b: int, is_signed: bool) -> tuple[int, int]:
    if b == 0:
        return WORD, a
    if is_signed:
        a, b = signed(a), signed(b)
    quotient = abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)
    return quotient & WORD, (a - quotient * b) & WORD


@pytest.mark.parametrize("is_signed", [False, True])
@pytest.mark.parametrize("remainder", [False, True])
@simulated(Divider)
async def test_quotient_and_remainder(ctx, unit, is_signed, remainder):
    drive(ctx, unit, signed=is_signed, remainder=remainder)
    for number, (a, b) in enumerate(pairs(20, seed=3)):
        b >>= number % 32 if number >= len(SPECIAL) ** 2 else 0
        drive(ctx, unit, valid=1, a=a, b=b)
        for _ in range(unit.LATENCY):
            assert not ctx.get(unit.done)
            await ctx.tick()
        for take in (0, 1):
            ctx.set(unit.take, take)
            assert ctx.get(unit.done)
            assert ctx.get(unit.out) == divide(a, b, is_signed)[remainder], (hex(a), hex(b))
            await ctx.tick()
        ctx.set(unit.take, 0)


@simulated(Divider)
async def test_an_aborted_division_has_no_effect(ctx, unit):
    drive(ctx, unit, valid=1, a=WORD, b=3)
    await ctx.tick().repeat(10)
    ctx.set(unit.valid, 0)
    await ctx.tick()
    drive(ctx, unit, valid=1, a=100, b=7)
    await ctx.tick().repeat(unit.LATENCY)
    assert ctx.get(unit.done) and ctx.get(unit.out) == 14

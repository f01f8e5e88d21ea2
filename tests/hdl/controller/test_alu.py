"""The ALU against Python's integers."""

import random

import pytest

from neuroncore_rtl.hdl.controller.alu import Alu
from neuroncore_rtl.hdl.controller.instruction import AluOp
from tests.hdl.simulation import drive, simulated

WORD = 0xFFFF_FFFF
SPECIAL = (0, 1, 2, 31, 32, 33, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, WORD)


def signed(word: int) -> int:
    return word - (word >> 31 << 32)


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


def cases():
    rng = random.Random(1)
    pairs = [(a, b) for a in SPECIAL for b in SPECIAL]
    return pairs + [(rng.getrandbits(32), rng.getrandbits(32)) for _ in range(100)]


@pytest.mark.parametrize(
    ("control", "code", "output", "expected"),
    [
        *(("op", op, "result", EXPECTED[op]) for op in AluOp),
        *(("condition", code, "holds", holds) for code, holds in CONDITIONS.items()),
    ],
)
@simulated(Alu)
async def test_alu_is_that_of_python(ctx, alu, control, code, output, expected):
    ctx.set(getattr(alu, control), code)
    for a, b in cases():
        drive(ctx, alu, a=a, b=b)
        assert ctx.get(getattr(alu, output)) == expected(a, b) & WORD, (hex(a), hex(b))

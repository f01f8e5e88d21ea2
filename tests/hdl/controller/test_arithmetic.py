from itertools import product

import numpy as np
import pytest

from tests.hdl.controller.programs import run

SEED = 1988
REGISTERS = range(2, 30)
THREE = ("add", "sub", "sll", "slt", "sltu", "xor", "srl", "sra", "or", "and", "mul", "mulh", "mulhsu", "mulhu")
DIVIDE = ("div", "divu", "rem", "remu")
IMMEDIATE = ("addi", "slti", "sltiu", "xori", "ori", "andi")
SHIFT = ("slli", "srli", "srai")
SPECIAL = (
    0, 1, 2, 31, 32, 33, 0xFFFF, 0x1_0000, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, 0xFFFF_FFFE, 0xFFFF_FFFF,
)  # fmt: skip
BRANCH = ("beq", "bne", "blt", "bge", "bltu", "bgeu")


def instruction(rng: np.random.Generator) -> str:
    rd, a, b = (f"x{rng.choice(REGISTERS)}" for _ in range(3))
    kind = rng.choice(5, p=(0.5, 0.1, 0.15, 0.1, 0.15))
    if kind == 0:
        return f"{rng.choice(THREE)} {rd}, {a}, {b}"
    if kind == 1:
        return f"{rng.choice(DIVIDE)} {rd}, {a}, {b}"
    if kind == 2:
        return f"{rng.choice(IMMEDIATE)} {rd}, {a}, {rng.integers(-2048, 2048)}"
    if kind == 3:
        return f"{rng.choice(SHIFT)} {rd}, {a}, {rng.integers(32)}"
    b = a if rng.random() < 0.3 else b
    return f"{rng.choice(BRANCH)} {a}, {b}, . + 8; addi {rd}, {rd}, 1"


def load_random(rng: np.random.Generator) -> str:
    word = int(rng.integers(1 << 32)) >> int(rng.choice((0, 0, 0, 8, 20, 31)))
    return f"li x{rng.choice(REGISTERS)}, {word}"


@pytest.mark.parametrize("stall", [0, 60])
def test_random_arithmetic(stall, rng):
    lines = [f"li x{register}, {rng.integers(1 << 32)}" for register in REGISTERS]
    for _ in range(500):
        lines += [instruction(rng), *([load_random(rng)] if rng.random() < 0.4 else [])]
    result = run("\n".join(lines), stall=stall)
    assert len(result.trace) > 600 and not result.traps


def on_special(name: str, a: str, b: str) -> str:
    return f"{name} {a}, {b}, . + 8; addi x30, x30, 1" if name in BRANCH else f"{name} x30, {a}, {b}"


@pytest.mark.parametrize("names", [THREE, DIVIDE[:2], DIVIDE[2:], BRANCH])
def test_pairs_of_special_operands_and_powers_of_two(names):
    registers = {word: f"x{2 + place}" for place, word in enumerate(SPECIAL)}
    lines = [f"li {register}, {word}" for word, register in registers.items()]
    lines += [on_special(name, a, b) for name, a, b in product(names, registers.values(), registers.values())]
    for name, bit in product(names, range(32)):
        lines.append(f"li x29, {1 << bit}; {on_special(name, registers[0x8000_0001], 'x29')}")
    assert len(run("\n".join(lines)).trace) > len(names) * len(SPECIAL) ** 2

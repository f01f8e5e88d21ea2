"""Random programs of TEST=riscv have all corner cases of divisions."""

import numpy as np
import pytest

from neuroncore_rtl.golden.controller import Hart, LocalMemory
from neuroncore_rtl.run.harness.riscv import MEMORY_BYTES
from neuroncore_rtl.tb.stimulus.riscv_encoding import r_type
from neuroncore_rtl.tb.stimulus.riscv_programs import random_riscv_program

DIVISIONS = {"div": 4, "divu": 5, "rem": 6, "remu": 7}
LEAST, MINUS_ONE = 1 << 31, (1 << 32) - 1


@pytest.fixture(scope="module")
def operands():
    program = random_riscv_program(np.random.default_rng(1), 10_000, memory_bytes=MEMORY_BYTES)
    hart = Hart(LocalMemory(program.image, size=MEMORY_BYTES))
    found = {function: set() for function in DIVISIONS.values()}
    for _ in range(60_000):
        before = hart.x.copy()
        done = hart.step()
        hart.waiting = False
        if done is not None and done.cause is None and done.instruction & 0xFE00_407F == r_type(0x33, 0, 4, 0, 0, 1):
            word = done.instruction
            found[word >> 12 & 7].add((before[word >> 15 & 31], before[word >> 20 & 31]))
    return found


@pytest.mark.parametrize("name", DIVISIONS)
def test_a_program_divides_the_least_integer_by_minus_one_and_others_by_zero(name, operands):
    pairs = operands[DIVISIONS[name]]
    assert (LEAST, MINUS_ONE) in pairs
    assert any(b == 0 and a != 0 for a, b in pairs)
    assert any(a == b != 0 for a, b in pairs)

"""Golden hart: self-checking programs, and equations written independently."""

import math
import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from neuroncore_rtl.golden import controller
from neuroncore_rtl.run.harness.riscv import MEMORY_BYTES
from neuroncore_rtl.spec.memory_map import CONSOLE, EXIT, INTERRUPT_PENDING, LOCAL_BASE, TIMER_COMPARE
from neuroncore_rtl.tb.stimulus import riscv_encoding, riscv_programs
from tests.kernels.control.programs import PROGRAMS, executable

SPECIAL = (0, 1, 2, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, 0xFFFF_FFFE, 0xFFFF_FFFF, 31, 32)


class Board:
    def __init__(self):
        self.external, self.code, self.console = 0, None, ""

    def load(self, address, size):
        if address != INTERRUPT_PENDING or size != 4:
            raise controller.AccessFault
        return self.external

    def store(self, address, size, value):
        if address == INTERRUPT_PENDING:
            self.external = value
        elif address == EXIT:
            self.code = value
        elif address == CONSOLE:
            self.console += chr(value)
        else:
            raise controller.AccessFault


def machine(image):
    timer, board = controller.Timer(), Board()
    regions = [(TIMER_COMPARE, 0xC000, timer), (0x4000_0000, 0x1000_0000, board)]
    return (
        controller.Hart(controller.LocalMemory(image, size=MEMORY_BYTES), controller.AddressMap(regions)),
        timer,
        board,
    )


def tick(hart, timer, board):
    timer.now += 1
    hart.csr.time = timer.now
    hart.csr.cycle += not hart.csr.cycle_inhibited
    hart.csr.timer_interrupt, hart.csr.external_interrupt = timer.pending, bool(board.external)


@pytest.mark.parametrize("name", PROGRAMS)
def test_own_programs_pass(name):
    hart, timer, board = machine(executable(name).image)
    for _ in range(20_000):
        tick(hart, timer, board)
        hart.step()
        if board.code is not None:
            break
    assert board.code == PROGRAMS[name]
    assert board.console == ("hello 0 4294967295 00c0ffee\n" if name == "library" else "")


def execute(word, *, x=(), memory=b"", pc=LOCAL_BASE):
    hart = controller.Hart(controller.LocalMemory(word.to_bytes(4, "little") + memory), pc=pc)
    hart.x[1 : 1 + len(x)] = x
    return hart, hart.step()


def pairs():
    rng = random.Random(1)
    return [*product(SPECIAL, SPECIAL), *((rng.getrandbits(32), rng.getrandbits(bits)) for bits in (12, 32) * 50)]


def as_signed(a):
    return int(np.uint32(a).view(np.int32))


def quotient(a, b):
    return math.trunc(Fraction(a, b)) if b else -1


def remainder(a, b):
    return a - b * quotient(a, b) if b else a


OPERATIONS = {
    ("add", 0, 0): lambda a, b: a + b,
    ("sub", 0, 0x20): lambda a, b: a - b,
    ("sll", 1, 0): lambda a, b: a * 2 ** (b % 32),
    ("slt", 2, 0): lambda a, b: as_signed(a) < as_signed(b),
    ("sltu", 3, 0): lambda a, b: a < b,
    ("xor", 4, 0): lambda a, b: (a | b) - (a & b),
    ("srl", 5, 0): lambda a, b: a // 2 ** (b % 32),
    ("sra", 5, 0x20): lambda a, b: as_signed(a) // 2 ** (b % 32),
    ("or", 6, 0): lambda a, b: a + b - (a & b),
    ("and", 7, 0): lambda a, b: a + b - (a | b),
    ("mul", 0, 1): lambda a, b: a * b,
    ("mulh", 1, 1): lambda a, b: as_signed(a) * as_signed(b) // 2**32,
    ("mulhsu", 2, 1): lambda a, b: as_signed(a) * b // 2**32,
    ("mulhu", 3, 1): lambda a, b: a * b // 2**32,
    ("div", 4, 1): lambda a, b: quotient(as_signed(a), as_signed(b)),
    ("divu", 5, 1): quotient,
    ("rem", 6, 1): lambda a, b: remainder(as_signed(a), as_signed(b)),
    ("remu", 7, 1): remainder,
}
"""By name, funct3 and funct7; exact integers, compared in their lower 32 bits."""


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda key: key[0])
def test_arithmetic(operation):
    _, funct3, funct7 = operation
    for a, b in pairs():
        hart, line = execute(riscv_encoding.r_type(0x33, 3, funct3, 1, 2, funct7), x=(a, b))
        expected = int(OPERATIONS[operation](a, b)) % 2**32
        assert (line.rd, line.value, hart.x[3]) == (3, expected, expected), (a, b)


def test_x0_stays_zero():
    hart, line = execute(riscv_encoding.i_type(0x13, 0, 0, 1, 5), x=(7,))
    assert (line.rd, hart.x[0]) == (0, 0)


def test_what_traps_does_not_count_and_its_line_says_so():
    hart, line = execute(0x0010_0073)
    assert (line.pc, line.instruction, line.rd, line.cause) == (LOCAL_BASE, 0x0010_0073, 0, controller.Cause.BREAKPOINT)
    assert hart.csr.instret == 0


def test_every_word_decodes_or_is_illegal():
    rng, legal = random.Random(3), 0
    for _ in range(20_000):
        word = rng.getrandbits(32)
        rd, run = controller.decode_riscv(word)
        hart = controller.Hart(controller.LocalMemory(size=64))
        hart.x[1:32] = [LOCAL_BASE + 4 * n for n in range(1, 32)]
        try:
            target = run(hart, LOCAL_BASE)
            legal += 1
            assert 0 <= target < 1 << 33 and all(0 <= value < 1 << 32 for value in hart.x)
        except controller.Trap as trap:
            assert trap.cause != controller.Cause.ILLEGAL or (trap.value, rd) in ((word, 0), (word, word >> 7 & 31))
    assert 300 < legal < 5000


def test_a_hart_in_wfi_waits_for_an_enabled_interrupt():
    program = [0x1050_0073, *riscv_encoding.load_constant(1, 1)]
    hart = controller.Hart(controller.LocalMemory(b"".join(word.to_bytes(4, "little") for word in program)))
    assert hart.step().instruction == 0x1050_0073 and hart.waiting
    assert hart.step() is None
    hart.csr.timer_interrupt = True
    assert hart.step() is None
    hart.csr.write(0x304, 1 << 7)
    line = hart.step()
    assert (line.pc, line.cause) == (LOCAL_BASE + 4, None)  # mstatus disables interrupts: execution continues
    hart.csr.write(0x300, 1 << 3)
    assert hart.step().cause == controller.Cause.TIMER


@pytest.mark.parametrize("seed", (1, 2, 3))
def test_random_programs_end(seed):
    hart, timer, board = machine(
        riscv_programs.random_riscv_program(np.random.default_rng(seed), 4000, memory_bytes=MEMORY_BYTES).image
    )
    causes, rng = set(), random.Random(seed)
    for _ in range(20_000):
        timer.now += rng.randrange(5)
        board.external |= rng.random() < 0.002
        tick(hart, timer, board)
        line = hart.step()
        if line is not None and line.cause is not None:
            causes.add(line.cause)
        if hart.memory.load(riscv_programs.TOHOST, 4):
            break
    assert hart.memory.load(riscv_programs.TOHOST, 4) == 1
    assert causes == set(controller.Cause)


def test_memory_refuses_what_it_cannot_hold():
    with pytest.raises(ValueError, match="the image must have at most 8 bytes, not 9"):
        controller.LocalMemory(bytes(9), size=8)
    with pytest.raises(ValueError, match="base and size must be multiples of 4"):
        controller.LocalMemory(base=2)

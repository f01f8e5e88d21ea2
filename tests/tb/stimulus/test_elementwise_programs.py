"""Random programs of TEST=vector detect single mistakes of the ALU."""

from importlib import import_module
from math import prod

import numpy as np
import pytest

from neuroncore_rtl.run.elementwise import expected_memories
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.isa import VECTOR_OPCODES, AluOp, Opcode, Storage
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices, random_elementwise_program

alu = import_module("neuroncore_rtl.golden.vector.alu")  # a function has the same name
CONFIG = PRESETS["tiny"]


@pytest.fixture(scope="module")
def program():
    """Return the program of TEST=vector with its default variables, and golden's memories after it."""
    opcodes = tuple(sorted(VECTOR_OPCODES))
    drawn = random_elementwise_program(np.random.default_rng(1), CONFIG, 800, Choices(opcodes=opcodes))
    return drawn, execute(drawn)


def execute(program):
    return expected_memories(program.instructions, program.sbuf, program.psum, CONFIG)


def without_signed_zeros(words):
    words = np.where(words.view(np.uint32) == 0x8000_0000, 0, words.view(np.uint32)).astype(np.uint32)
    return words.view(np.int32) ^ (words.view(np.int32) >> 31 & np.int32(0x7FFFFFFF))


MISTAKES = {
    "IS_GE without equal": (alu._COMPARISONS, AluOp.IS_GE, np.greater),
    "IS_LE without equal": (alu._COMPARISONS, AluOp.IS_LE, np.less),
    "IS_GT with equal": (alu._COMPARISONS, AluOp.IS_GT, np.greater_equal),
    "IS_LT with equal": (alu._COMPARISONS, AluOp.IS_LT, np.less_equal),
    "LOGICAL_XOR as OR": (alu._LOGICAL, AluOp.LOGICAL_XOR, np.logical_or),
    "of equal magnitudes the first": (alu._MAGNITUDES, AluOp.LARGER_MAGNITUDE, np.greater_equal),
}


@pytest.mark.parametrize("mistake", [*MISTAKES, "-0 as +0 in MAX and MIN"])
def test_a_mistake_at_a_corner_shows(mistake, program, monkeypatch):
    drawn, expected = program
    if mistake in MISTAKES:
        monkeypatch.setitem(*MISTAKES[mistake])
    else:
        monkeypatch.setattr(alu, "rank", without_signed_zeros)
    assert any(not np.array_equal(*both) for both in zip(expected, execute(drawn), strict=True))


def test_what_psum_has_no_room_for_is_in_sbuf():
    short = CONFIG.with_overrides(psum_words=16)
    program_drawn = random_elementwise_program(np.random.default_rng(5), short, 150, Choices(opcodes=(Opcode.BN_AGGR,)))
    sources = [(one.a.storage, prod(one.shape) * one.a.format.bits // 8) for one in program_drawn.instructions]
    assert {storage for storage, _ in sources} == {Storage.SBUF, Storage.PSUM}
    assert all(size <= short.psum_bytes for storage, size in sources if storage == Storage.PSUM)
    assert max(size for _, size in sources) > short.psum_bytes

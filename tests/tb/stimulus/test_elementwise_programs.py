"""Random programs of the vector engine, as TEST=vector draws them, show a mistake at any corner of its ALU."""

from functools import cache
from importlib import import_module

import numpy as np
import pytest

from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.isa import VECTOR_OPCODES
from neuroncore_rtl.spec.isa.alu import AluOp
from neuroncore_rtl.tb.check.execution import expected_memories
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices, random_program

alu = import_module("neuroncore_rtl.golden.vector.alu")  # the name is also that of its function
CONFIG = PRESETS["tiny"]
COUNT = 800  # as TEST=vector, unless told otherwise


@cache
def program(seed):
    choices = Choices(opcodes=tuple(sorted(VECTOR_OPCODES)))
    return random_program(np.random.default_rng(seed), CONFIG, COUNT, choices)


def executed(seed):
    drawn = program(seed)
    return expected_memories(drawn.instructions, drawn.sbuf, drawn.psum, CONFIG)


sound = cache(executed)


def without_signed_zeros(words):
    """Return ranks in which -0 is no less than +0."""
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


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("mistake", [*MISTAKES, "-0 as +0 in MAX and MIN"])
def test_a_mistake_at_a_corner_shows(mistake, seed, monkeypatch):
    expected = sound(seed)
    if mistake in MISTAKES:
        monkeypatch.setitem(*MISTAKES[mistake])
    else:
        monkeypatch.setattr(alu, "rank", without_signed_zeros)
    assert any(not np.array_equal(*both) for both in zip(expected, executed(seed), strict=True))

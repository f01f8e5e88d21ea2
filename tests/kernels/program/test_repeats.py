"""Repeated instructions: which are removed, and that results keep their bits."""

import numpy as np
import pytest

from neuroncore_rtl.kernels.program import Program, build_image, dma_copy
from neuroncore_rtl.kernels.program.instructions import activation, memset, tensor_copy, tensor_tensor
from neuroncore_rtl.spec.config import preset_named
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp
from tests.kernels.running import run_golden

TINY = preset_named("tiny")

CASES = {
    "the same": 1,
    "with another result": 3,
    "after a write to a source": 3,
    "with a result that is written again": 3,
    "in another section": 3,
    "at another place": 3,
    "a copy by either engine": 1,
    "a copy times two": 3,
    "a copy with a sum": 3,
    "a copy that starts sums": 3,
}
"""What differs in each turn of a loop, and how many of three results are computed."""


def repeated(case: str, turn: int, out, a, b):
    """Return the instruction of a turn."""
    match case:
        case "a copy by either engine":
            return activation(out, a, "identity") if turn % 2 else tensor_copy(out, a)
        case "a copy that starts sums":
            return activation(out, a, "identity")
        case "a copy times two":
            return activation(out, a, "identity", 2.0) if turn else tensor_copy(out, a)
        case "a copy with a sum":
            return activation(out[:, :15], a[:, :15], "identity", sum_into=out[:, 15:])
    op = (AluOp.ADD, AluOp.MULTIPLY, AluOp.MAX)[turn if case == "with another result" else 1]
    return tensor_tensor(out, a, b, op)


def turns(order: str, case: str):
    program = Program(TINY, order=order)
    space = program.space
    x, y = (space.hbm(name, FP32, shape) for name, shape in (("x", (2, 4, 16)), ("y", (6, 4, 16))))
    a, b = (space.sbuf(name, FP32, (16,)) for name in "ab")
    program.append(dma_copy(a, x[0]))
    program.append(dma_copy(b, x[1]))
    for turn in range(3):
        wide = space.sbuf("wide", FP32, (32,))
        result = wide[:, turn : turn + 16] if case == "at another place" else wide[:, :16]
        program.append(repeated(case, turn, result, a, b))
        if case == "with a result that is written again":
            program.append(memset(result[:, turn : turn + 1], 2.0 + turn))
        if case == "after a write to a source":
            program.append(memset(b, 2.0 + turn))
        if case == "a copy that starts sums" and turn:
            sums = space.sbuf("sums", FP32, (16,))
            program.append(activation(sums[:, :15], b[:, :15], "exp", sum_into=sums[:, 15:], sum_continue=True))
            program.append(dma_copy(y[3 + turn], sums))
        program.append(dma_copy(y[turn], result))
        if case == "in another section":
            program.start_section()
    return program, x, y


@pytest.mark.parametrize(("case", "kept"), CASES.items())
def test_an_instruction_that_repeats_another_is_removed(rng, case, kept):
    values, found = rng.integers(0x3F800000, 0x40800000, (2, 4, 16)), []
    for order, count in (("program", 3), ("scheduled", kept)):
        program, x, y = turns(order, case)
        image = build_image(program, [(x, values)])
        made = [entry.instruction for entry in program.entries]
        results = [one for one in made if one.name in ("TENSOR_TENSOR", "TENSOR_COPY", "ACTIVATE")]
        assert sum(not one.sum_continue for one in results) == count
        found.append(y.elements(run_golden(image, np.random.default_rng(1)).hbm).copy())
    assert np.array_equal(*found)

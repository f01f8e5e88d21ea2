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
}
"""What differs in each turn of a loop, and how many of three products remain."""


def turns(order: str, case: str):
    program = Program(TINY, order=order)
    space = program.space
    x, y = (space.hbm(name, FP32, shape) for name, shape in (("x", (2, 4, 16)), ("y", (3, 4, 16))))
    a, b = (space.sbuf(name, FP32, (16,)) for name in "ab")
    program.append(dma_copy(a, x[0]))
    program.append(dma_copy(b, x[1]))
    for turn in range(3):
        wide = space.sbuf("product", FP32, (32,))
        product = wide[:, turn : turn + 16] if case == "at another place" else wide[:, :16]
        op = (AluOp.ADD, AluOp.MULTIPLY, AluOp.MAX)[turn if case == "with another result" else 1]
        program.append(tensor_tensor(product, a, b, op))
        if case == "with a result that is written again":
            program.append(memset(product[:, turn : turn + 1], 2.0 + turn))
        if case == "after a write to a source":
            program.append(memset(b, 2.0 + turn))
        out = space.sbuf("out", FP32, (16,))
        program.append(tensor_copy(out, product))
        program.append(dma_copy(y[turn], out))
        if case == "in another section":
            program.start_section()
    return program, x, y


@pytest.mark.parametrize(("case", "kept"), CASES.items())
def test_an_instruction_that_repeats_another_is_removed(rng, case, kept):
    values, found = rng.integers(0x3F800000, 0x40800000, (2, 4, 16)), []
    for order, count in (("program", 3), ("scheduled", kept)):
        program, x, y = turns(order, case)
        image = build_image(program, [(x, values)])
        assert [entry.instruction.name for entry in program.entries].count("TENSOR_TENSOR") == count
        found.append(y.elements(run_golden(image, np.random.default_rng(1)).hbm).copy())
    assert np.array_equal(*found)


COPIES = {
    "by either engine": (lambda tile, a, turn: (activation(tile, a, "identity"), tensor_copy(tile, a))[turn % 2], 1),
    "times two": (lambda tile, a, turn: activation(tile, a, "identity", 2.0) if turn else tensor_copy(tile, a), 3),
    "with a sum": (
        lambda tile, a, turn: activation(tile[:, :15], a[:, :15], "identity", sum_into=tile[:, 15:]),
        3,
    ),
}
"""Copy of a tile in each turn of a loop, and how many of three remain."""


@pytest.mark.parametrize("case", COPIES)
def test_a_copy_that_repeats_another_is_removed_whichever_engine_copies(rng, case):
    values, found, (copied, kept) = rng.integers(0x3F800000, 0x40800000, (4, 16)), [], COPIES[case]
    for order, count in (("program", 3), ("scheduled", kept)):
        program = Program(TINY, order=order)
        x, y = (program.space.hbm(name, FP32, shape) for name, shape in (("x", (4, 16)), ("y", (3, 4, 16))))
        a = program.space.sbuf("a", FP32, (16,))
        program.append(dma_copy(a, x))
        for turn in range(3):
            tile = program.space.sbuf("tile", FP32, (16,))
            program.append(copied(tile, a, turn))
            program.append(dma_copy(y[turn], tile))
        image = build_image(program, [(x, values)])
        assert sum(entry.instruction.name in ("ACTIVATE", "TENSOR_COPY") for entry in program.entries) == count
        found.append(y.elements(run_golden(image, np.random.default_rng(1)).hbm).copy())
    assert np.array_equal(*found)


def test_a_copy_that_starts_sums_remains(rng):
    """The second copy repeats the first one, but the next instruction adds to its sums."""
    values, found = rng.integers(0x3F800000, 0x40800000, (2, 4, 16)), []
    for order in ("program", "scheduled"):
        program = Program(TINY, order=order)
        x, y = (program.space.hbm(name, FP32, shape) for name, shape in (("x", (2, 4, 16)), ("y", (2, 4, 16))))
        a, b = (program.space.sbuf(name, FP32, (16,)) for name in "ab")
        program.append(dma_copy(a, x[0]))
        program.append(dma_copy(b, x[1]))
        for turn in range(2):
            copy, out = (program.space.sbuf(name, FP32, (16,)) for name in ("copy", "out"))
            program.append(activation(copy, a, "identity"))
            if turn:
                program.append(activation(out[:, :15], b[:, :15], "exp", sum_into=out[:, 15:], sum_continue=True))
            else:
                program.append(activation(out, b, "exp"))
            program.append(dma_copy(y[turn], out))
            program.append(dma_copy(y[turn, :, :4], copy[:, :4]))
        found.append(y.elements(run_golden(build_image(program, [(x, values)]), np.random.default_rng(1)).hbm).copy())
    assert np.array_equal(*found)

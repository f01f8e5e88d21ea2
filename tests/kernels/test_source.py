"""Source lines in entries and errors."""

import inspect
from pathlib import Path

import pytest

from neuroncore_rtl.kernels.library.softmax import softmax
from neuroncore_rtl.kernels.program import Program, dma_copy, instructions
from neuroncore_rtl.kernels.tiling.rows import place_rows
from neuroncore_rtl.spec.config import Config, preset_named
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp

HERE = Path(__file__).name
TINY = preset_named("tiny")


def next_line() -> str:
    return f"{HERE}:{inspect.currentframe().f_back.f_lineno + 1}"


def test_entries_name_the_line_that_appended_them():
    program = Program(TINY)
    t = program.space.sbuf("t", FP32, (8,))
    line = next_line()
    program.append(instructions.memset(t, 0.0))
    (entry,) = program.entries
    assert str(entry.source) == line
    assert (entry.source.kernel, entry.source.kernel.file) == (entry.source.user, __file__)


def test_a_kernel_of_the_library_is_named_with_its_caller():
    program = Program(TINY)
    x, y = (place_rows(program.space, name, FP32, 4, 8, kept=True) for name in "xy")
    line = next_line()
    softmax(program, y, x)
    kernels, users = zip(*(entry.source for entry in program.entries), strict=True)
    assert {Path(place.file).name for place in kernels} == {"softmax.py", "inverse.py"}
    assert len(set(kernels)) == len(kernels)
    assert {str(place) for place in users} == {line}
    assert str(program.entries[0].source) == f"{kernels[0]}, from {line}"


def test_nops_name_what_they_are_for():
    program = Program(Config(rows=4, columns=4, dma_engines=6))
    x, t, u = program.space.hbm("x", FP32, (4, 4)), *(program.space.sbuf(name, FP32, (4,)) for name in "tu")
    for row in range(4):
        program.append(dma_copy(t[row : row + 1], x[row : row + 1]), queue=3 + row)
    line = next_line()
    program.append(instructions.tensor_copy(u, t))
    assert [str(entry.source) for entry in program.entries[4:]] == [line] * (len(program.entries) - 4)
    assert len(program.entries) > 5


def test_refusals_end_with_the_line():
    program = Program(TINY)
    x, t = program.space.hbm("x", FP32, (4, 8)), program.space.sbuf("t", FP32, (8,))
    for refused in (
        lambda: program.append(dma_copy(t[:, 1:], t[:, :7])),
        lambda: program.append(instructions.memset(t, 0.0), queue=0),
        lambda: dma_copy(t, x[:, :3]),
        lambda: instructions.tensor_copy(t, t[:2]),
        lambda: instructions.tensor_reduce(t, t, AluOp.ADD, axes=3),
        lambda: instructions.activation(t, t, "gone"),
    ):
        line = f"{HERE}:{refused.__code__.co_firstlineno}"
        with pytest.raises(ValueError) as refusal:
            refused()
        assert str(refusal.value).endswith(f" ({line})") and str(refusal.value).count(HERE) == 1

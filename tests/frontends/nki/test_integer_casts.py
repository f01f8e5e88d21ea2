"""Integers of more than 24 bits on their way to narrow floats: rounded once, on golden and on the RTL."""

import numpy as np
import pytest

from neuroncore_rtl import Program, dma_copy, instructions, run
from neuroncore_rtl.frontends.nki import run_nki
from neuroncore_rtl.spec.isa import AluOp, Index
from tests.frontends.nki.kernels import result, write_kernel

TIE = (1 << 30) + (1 << 22)
"""Halfway between two numbers of BF16. The integers next to it become this number in FP32."""

NUMBERS = np.array([[TIE - 1, TIE, TIE + 1, -TIE - 1, 3 * TIE // 2 + 1, (1 << 31) - 1, -(1 << 31), 5]])
BF16 = np.array([[0x4E80, 0x4E80, 0x4E81, 0xCE81, 0x4EC1, 0x4F00, 0xCF00, 0x40A0]])
ON = pytest.mark.parametrize("on", ["golden", "rtl"])


def bits(numbers: np.ndarray) -> list[list[int]]:
    """Return BF16 numbers, as float32, as their codes."""
    words = numbers.view(np.uint32)
    assert not (words & 0xFFFF).any()
    return (words >> 16).tolist()


@ON
def test_copies_of_the_vector_engine_and_of_dma_round_once(on):
    def kernel(program: Program) -> None:
        x = program.space.hbm("x", "int32", (1, 8))
        copied, loaded, chosen, kept, counted = (
            program.space.hbm(n, "bf16", (1, 8)) for n in ("y0", "y1", "y2", "y3", "y4")
        )
        tile, one = program.space.sbuf("tile", "int32", (8,), 1), program.space.sbuf("one", "int32", (1,), 1)
        program.append(dma_copy(tile, x))
        program.append(dma_copy(one, x[:, 4:5]))
        for to, instruction in (
            (copied, lambda out: instructions.tensor_copy(out, tile)),
            (loaded, lambda out: dma_copy(out, x)),
            (chosen, lambda out: instructions.select(out, tile, tile, one)),
            (kept, lambda out: instructions.affine_select(out, tile, Index(steps=(1,)), AluOp.IS_GE, 0.0)),
            (counted, lambda out: instructions.iota(out, Index(base=TIE + 1, steps=(0,)))),
        ):
            out = program.space.sbuf(to.name, "bf16", (8,), 1)
            program.append(instruction(out))
            program.append(dma_copy(to, out))

    done = run(kernel, {"x": NUMBERS}, preset="tiny", on=on)
    for name in ("y0", "y1", "y2", "y3"):
        assert done.codes[name].tolist() == BF16.tolist(), name
    assert done.codes["y4"].tolist() == [[0x4E81] * 8]


@ON
@pytest.mark.parametrize("expression", ["nl.load(x, dtype=nl.bfloat16)", "nl.copy(nl.load(x), dtype=nl.bfloat16)"])
def test_copies_of_a_kernel_round_once(tmp_path, expression, on):
    kernel = write_kernel(tmp_path, f"a = {expression}", True, out="x.shape, nl.bfloat16", stores="a")
    found = run_nki(kernel, NUMBERS.astype(np.int32), preset="tiny", on=on).outputs[0]
    assert bits(found) == BF16.tolist()


def test_unsigned_integers_round_once(tmp_path):
    kernel = write_kernel(tmp_path, "a = nl.load(x, dtype=nl.bfloat16)", True, out="x.shape, nl.bfloat16", stores="a")
    found = result(kernel, np.array([[2 * TIE + 1, 2 * TIE, (1 << 32) - 1]], np.uint32))
    assert bits(found) == [[0x4F01, 0x4F00, 0x4F80]]


def test_fp32_and_arithmetic_round_to_nearest_even(tmp_path):
    kernel = write_kernel(
        tmp_path, "a = nl.load(x)", True, out="x.shape, nl.float32", stores="nl.copy(a, dtype=nl.float32)"
    )
    assert np.array_equal(result(kernel, NUMBERS.astype(np.int32)), NUMBERS.astype(np.float32))


@pytest.mark.parametrize("value", [TIE + 1, float(TIE + 1), -TIE - 1, 1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8, 1e39, 0.1])
def test_numbers_of_python_round_once(tmp_path, value):
    kernel = write_kernel(tmp_path, f"a = nl.full((1, 2), {value}, nl.bfloat16)", True, "", "(1, 2), nl.bfloat16", "a")
    known = {TIE + 1: 0x4E81, -TIE - 1: 0xCE81, 1 + 2.0**-8 + 2.0**-40: 0x3F81, 1 + 2.0**-8: 0x3F80}
    known |= {1e39: 0x7F80, 0.1: 0x3DCD}
    assert bits(result(kernel)) == [[known[value]] * 2]

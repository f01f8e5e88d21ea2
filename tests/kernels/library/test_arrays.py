"""Kernels from HBM to HBM on arrays of any shape, in programs written by hand: copies, windows, sorts, convolutions."""

import numpy as np
import pytest

from neuroncore_rtl.kernels.library.convolution import convolution
from neuroncore_rtl.kernels.library.copy_hbm import copy_hbm
from neuroncore_rtl.kernels.library.functions import apply_function
from neuroncore_rtl.kernels.library.sort import sort_rows
from neuroncore_rtl.kernels.library.windows import WindowTable, read_windows, write_windows
from neuroncore_rtl.kernels.program import Program, dma_copy
from neuroncore_rtl.kernels.program.instructions import tensor_tensor
from neuroncore_rtl.kernels.tiling.phases import WindowShape
from neuroncore_rtl.spec.config import preset_named
from neuroncore_rtl.spec.isa import AluOp
from tests.kernels.running import hbm_after


def results(program, inputs, outputs, rng):
    """Run a program; return the elements of tensors in HBM, in the inputs' type."""
    codes = [(tensor, array.view(np.uint32)) for tensor, array in inputs]
    hbm = hbm_after(program, codes, rng)
    return [np.array(one.elements(hbm)).view(inputs[0][1].dtype) for one in outputs]


@pytest.mark.parametrize("order", ((2, 0, 1), (2, 1, 0), (1, 0, 2)))
def test_a_copy_permutes_dimensions(order, rng):
    program, x = Program(preset_named("tiny")), rng.integers(0, 1 << 30, (3, 40, 50), np.uint32)
    source, target = (
        program.space.hbm("x", "uint32", x.shape),
        program.space.hbm("y", "uint32", x.transpose(order).shape),
    )
    copy_hbm(program, target, source.permute(*order))
    (found,) = results(program, [(source, x)], [target], rng)
    assert np.array_equal(found, x.transpose(order))


def test_windows_move_between_rows_that_the_program_reads(rng):
    program, x = Program(preset_named("tiny")), rng.integers(0, 1 << 30, (9, 7), np.uint32)
    numbers, space = rng.permutation(8)[:5].astype(np.uint32), program.space
    array, rows, found = (
        space.hbm("x", "uint32", x.shape),
        space.hbm("n", "int32", (5,)),
        space.hbm("y", "uint32", (5, 2, 3)),
    )
    table = WindowTable(array, (2, 3), unit=7, steps=(7, 2))
    read_windows(program, found, table, rows)
    place = space.hbm("place", "int32", (1,))
    write_windows(program, table, found[:1], place)
    windows, after = results(program, [(array, x), (rows, numbers), (place, np.uint32([8]))], [found, array], rng)
    assert np.array_equal(windows, [x[n : n + 2, :6:2] for n in numbers])
    assert np.array_equal(after, x)  # row 8 has no second row, so the window is not written


@pytest.mark.parametrize("rows, columns", ((3, 8), (5, 256), (1, 1024)))
def test_rows_are_sorted_with_their_positions(rows, columns, rng):
    program, x = Program(preset_named("tiny")), rng.integers(0, columns, (rows, columns), np.uint32)
    at = np.broadcast_to(np.arange(columns, dtype=np.uint32), x.shape).copy()
    given, sorted_ = ([program.space.hbm(name, "uint32", x.shape) for name in side] for side in ("xa", "yb"))

    def is_before(some, others):
        def compared(n, op):
            out = program.space.sbuf("compared", "uint8", some[n].shape, some[n].partitions)
            program.append(tensor_tensor(out, some[n], others[n], op))
            return out

        less, tied, first = compared(0, AluOp.IS_LT), compared(0, AluOp.IS_EQUAL), compared(1, AluOp.IS_LT)
        program.append(tensor_tensor(tied, tied, first, AluOp.BITWISE_AND))
        program.append(tensor_tensor(less, less, tied, AluOp.BITWISE_OR))
        return less

    sort_rows(program, sorted_, given, is_before)
    values, places = results(program, [(given[0], x), (given[1], at)], sorted_, rng)
    assert np.array_equal(values, np.sort(x)) and np.array_equal(places, np.argsort(x, kind="stable"))


@pytest.mark.parametrize("size", ((3, 2), (1, 1)))
def test_a_convolution_has_gaps_strides_and_groups(size, rng):
    """Of a filter of one element, every other column meets a gap only, and is zero."""
    program = Program(preset_named("tiny"))
    x, w = (rng.integers(-8, 8, shape).astype(np.float32) for shape in ((2, 4, 7, 6), (6, 2, *size)))
    window = WindowShape(size=size, stride=(2, 1), low=(1, 0), high=(2, 1), spread=(1, 2), dilation=(2, 1))
    wide = np.zeros((2, 4, 10, 12), np.float32)
    wide[:, :, 1:8, 0:11:2] = x
    expected = np.zeros((2, 6, *window.counts(x.shape[2:])), np.float32)
    for o, i, j in np.ndindex(6, *expected.shape[2:]):
        part = wide[:, o // 3 * 2 :, 2 * i : 2 * i + 2 * size[0] - 1 : 2, j : j + size[1]][:, :2]
        expected[:, o, i, j] = (part * w[o]).sum((1, 2, 3))
    space = program.space
    array, filter_, out = (space.hbm(name, "fp32", one.shape) for name, one in (("x", x), ("w", w), ("y", expected)))
    convolution(program, out, array, filter_, window, groups=2)
    (found,) = results(program, [(array, x), (filter_, w)], [out], rng)
    assert np.array_equal(found, expected)
    with pytest.raises(ValueError, match=r"y: shape must be \[2, 6, "):
        convolution(program, out[:, :5], array, filter_, window, groups=2)


def test_functions_of_elements_take_tiles_and_numbers(rng):
    program, x = Program(preset_named("tiny")), rng.integers(-1000, 1000, (4, 9)).astype(np.int32)
    source, target = (program.space.hbm(name, "int32", x.shape) for name in "xy")
    tile, quotient, bits = (program.space.sbuf(name, "int32", (9,), 4) for name in ("x", "q", "b"))
    program.append(dma_copy(tile, source))
    apply_function(program, quotient, "divide", tile, 7)
    apply_function(program, bits, "popcnt", quotient)
    program.append(dma_copy(target, bits))
    (found,) = results(program, [(source, x)], [target], rng)
    assert np.array_equal(found, np.bitwise_count(np.trunc(x / 7).astype(np.int32).view(np.uint32)))
    with pytest.raises(ValueError, match="function must be one of .*, not 'sinh'"):
        apply_function(program, bits, "sinh", tile)

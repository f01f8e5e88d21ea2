"""Reads on chip of what nobody has written are found byte by byte, and nothing else is taken for one."""

import re

import pytest

from neuroncore_rtl.kernels.program import (
    Program,
    build_image,
    dma_copy,
    dma_gather,
    load_stationary,
    multiply_moving,
)
from neuroncore_rtl.kernels.program.instructions import iota, memset, tensor_copy, tensor_copy_predicated
from neuroncore_rtl.run.check.unwritten import find_unwritten
from neuroncore_rtl.spec.config import preset_named
from neuroncore_rtl.spec.formats import BF16, FP32, INT32
from neuroncore_rtl.spec.isa import Index
from tests.kernels.running import finished

TINY = preset_named("tiny")


def half(program):
    tile, other = tiles(program)
    program.append(memset(tile[:, :4], 1.0))
    program.append(tensor_copy(other, tile))


def every_other(program):
    """Of elements with gaps between them the ones between are told."""
    tile, other = tiles(program)
    program.append(memset(tile[:, ::2], 1.0))
    program.append(tensor_copy(other[:, ::2], tile[:, ::2]))
    program.append(tensor_copy(other[:, 1::2], tile[:, 1::2]))


def fewer_partitions(program):
    tile, other = tiles(program)
    program.append(memset(tile[:3], 1.0))
    program.append(tensor_copy(other, tile))


def a_wider_weight(program):
    weight, moving = (program.space.sbuf(name, BF16, (4,)) for name in ("weight", "moving"))
    program.append(memset(weight[:, :2], 1.0))
    program.append(memset(moving, 1.0))
    program.append(load_stationary(weight))
    program.append(multiply_moving(program.space.psum("sums", FP32, (4,)), moving))


def sums_of_nothing(program):
    operand, sums = program.space.sbuf("operand", BF16, (4,)), program.space.psum("sums", FP32, (8,))
    program.append(memset(operand, 1.0))
    program.append(memset(sums[:, 4:], 1.0))
    program.append(load_stationary(operand))
    program.append(multiply_moving(sums[:, :4], operand, accumulate=True))


def stored(program):
    """A copy to HBM."""
    tile, _ = tiles(program)
    program.append(memset(tile[:, 1:], 1.0))
    program.append(dma_copy(program.space.hbm("y", FP32, (4, 8)), tile))


def tiles(program):
    return program.space.sbuf("tile", FP32, (8,)), program.space.sbuf("other", FP32, (8,))


def kept(program):
    """Where a predicate is 0, a predicated copy leaves what is there."""
    tile, other = tiles(program)
    program.append(memset(other, 0.0))
    program.append(tensor_copy_predicated(tile, other, other))


FOUND = {
    kept: "SELECT: dst .* SBUF partition 0, byte 32 is not",
    half: "TENSOR_COPY: a .* SBUF partition 0, byte 16 is not",
    every_other: "TENSOR_COPY: a .* SBUF partition 0, byte 4 is not",
    fewer_partitions: "TENSOR_COPY: a .* SBUF partition 3, byte 0 is not",
    a_wider_weight: "LOAD_STATIONARY: stationary .* SBUF partition 0, byte 4 is not",
    sums_of_nothing: "MULTIPLY_MOVING: psum .* PSUM partition 0, byte 0 is not",
    stored: "DMA_COPY: src .* SBUF partition 0, byte 0 is not",
}


def unwritten(kernel):
    """Return what is found in a kernel's program, a sentence each."""
    program = Program(TINY)
    kernel(program)
    image = build_image(program)
    return [*map(str, find_unwritten(image, finished(image).records))]


@pytest.mark.parametrize("kernel", FOUND, ids=lambda kernel: kernel.__name__)
def test_what_was_not_written_is_told_with_its_line(kernel):
    (message,) = unwritten(kernel)
    assert re.match(rf"{FOUND[kernel]} \(test_unwritten.py:\d+\)", message)


def test_rows_found_by_number():
    """Of a table those rows are read that are named."""

    def gathered(program):
        tile, numbers = program.space.sbuf("tile", FP32, (8,)), program.space.sbuf("numbers", INT32, (1,))
        program.append(iota(numbers, Index(partition=1)))
        program.append(dma_gather(tile, program.space.hbm("table", FP32, (4, 8)), numbers[:, 0]))
        program.append(tensor_copy(tile, tile))

    assert unwritten(gathered) == []


@pytest.mark.parametrize(("runs", "told"), [((0, 1, 0, 1), 1), ((1, 0), 0)])
def test_sections_that_run_again(runs, told):
    """Section 0 reads what section 1 writes, so that the first time it comes too early; told once."""
    program = Program(TINY)
    tile, other = (program.space.sbuf(name, FP32, (8,), kept=True) for name in ("tile", "other"))
    program.append(tensor_copy(other, tile))
    program.start_section()
    program.append(memset(tile, 1.0))
    image = build_image(program, runs=runs)
    assert len([*find_unwritten(image, finished(image).records)]) == told

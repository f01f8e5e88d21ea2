"""Detection of reads of unwritten on-chip bytes."""

import re

import pytest

from neuroncore_rtl.kernels.program import Program, build_image, dma_copy, dma_gather, load_stationary, multiply_moving
from neuroncore_rtl.kernels.program.instructions import iota, memset, tensor_copy, tensor_copy_predicated
from neuroncore_rtl.run.check.unwritten import find_unwritten
from neuroncore_rtl.spec.config import preset_named
from neuroncore_rtl.spec.formats import BF16, FP32, INT32
from neuroncore_rtl.spec.isa import Index
from tests.kernels.running import run_golden

TINY = preset_named("tiny")


def a_wider_weight(space, *_):
    weight, moving = (space.sbuf(name, BF16, (4,)) for name in ("weight", "moving"))
    product = multiply_moving(space.psum("sums", FP32, (4,)), moving)
    return memset(weight[:, :2], 1.0), memset(moving, 1.0), load_stationary(weight), product


def sums_of_nothing(space, *_):
    operand, sums = space.sbuf("operand", BF16, (4,)), space.psum("sums", FP32, (8,))
    product = multiply_moving(sums[:, :4], operand, accumulate=True)
    return memset(operand, 1.0), memset(sums[:, 4:], 1.0), load_stationary(operand), product


FOUND = {
    "copy where a predicate is 0": (
        lambda space, tile, other: (memset(other, 0.0), tensor_copy_predicated(tile, other, other)),
        "SELECT: dst .* SBUF partition 0, byte 32 is not",
    ),
    "half of a tile": (
        lambda space, tile, other: (memset(tile[:, :4], 1.0), tensor_copy(other, tile)),
        "TENSOR_COPY: a .* SBUF partition 0, byte 16 is not",
    ),
    "gaps between elements": (
        lambda space, tile, other: (
            memset(tile[:, ::2], 1.0),
            *(tensor_copy(other[:, n::2], tile[:, n::2]) for n in (0, 1)),
        ),
        "TENSOR_COPY: a .* SBUF partition 0, byte 4 is not",
    ),
    "fewer partitions": (
        lambda space, tile, other: (memset(tile[:3], 1.0), tensor_copy(other, tile)),
        "TENSOR_COPY: a .* SBUF partition 3, byte 0 is not",
    ),
    "a wider weight": (a_wider_weight, "LOAD_STATIONARY: stationary .* SBUF partition 0, byte 4 is not"),
    "sums of nothing": (sums_of_nothing, "MULTIPLY_MOVING: psum .* PSUM partition 0, byte 0 is not"),
    "copy to HBM": (
        lambda space, tile, other: (memset(tile[:, 1:], 1.0), dma_copy(space.hbm("y", FP32, (4, 8)), tile)),
        "DMA_COPY: src .* SBUF partition 0, byte 0 is not",
    ),
}
"""Kernels (functions from an allocator and two tiles to instructions), and the message."""


def messages_of(kernel):
    program = Program(TINY)
    for instruction in kernel(program.space, *(program.space.sbuf(name, FP32, (8,)) for name in ("tile", "other"))):
        program.append(instruction)
    image = build_image(program)
    return [*map(str, find_unwritten(image, run_golden(image).records))]


@pytest.mark.parametrize(("kernel", "told"), FOUND.values(), ids=FOUND)
def test_a_read_of_unwritten_bytes_is_told_with_its_line(kernel, told):
    (message,) = messages_of(kernel)
    assert re.match(rf"{told} \(test_unwritten.py:\d+\)", message)


def test_rows_found_by_number():
    def gathered(space, tile, other):
        table, numbers = space.hbm("table", FP32, (4, 8)), space.sbuf("numbers", INT32, (1,))
        return iota(numbers, Index(partition=1)), dma_gather(tile, table, numbers[:, 0]), tensor_copy(tile, tile)

    assert messages_of(gathered) == []


@pytest.mark.parametrize(("runs", "told"), [((0, 1, 0, 1), 1), ((1, 0), 0)])
def test_sections_that_run_again(runs, told):
    """Section 0 reads the results of section 1, so its first run is an error, reported once."""
    program = Program(TINY)
    tile, other = (program.space.sbuf(name, FP32, (8,), kept=True) for name in ("tile", "other"))
    program.append(tensor_copy(other, tile))
    program.start_section()
    program.append(memset(tile, 1.0))
    image = build_image(program, runs=runs)
    assert len([*find_unwritten(image, run_golden(image).records)]) == told

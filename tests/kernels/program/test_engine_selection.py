"""Selection of the engine for copies that two engines can execute; repeated instructions count once."""

from collections import Counter

import numpy as np
import pytest

from neuroncore_rtl.kernels.program import Program, build_image, dma_copy
from neuroncore_rtl.kernels.program.instructions import activation, tensor_copy, tensor_scalar
from neuroncore_rtl.spec.config import preset_named
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp
from tests.kernels.running import run_golden


@pytest.mark.parametrize(("order", "scalar"), [("program", 4), ("scheduled", 2)])
def test_the_engine_with_fewer_cycles_of_instructions_that_remain_copies(rng, order, scalar):
    program = Program(preset_named("tiny"), order=order)
    space = program.space
    x, y, z = (space.hbm(name, FP32, (4, 4, 16)) for name in "xyz")
    tiles = [space.sbuf("tile", FP32, (16,)) for _ in range(4)]
    for tile, source in zip(tiles, x, strict=True):
        program.append(dma_copy(tile, source))
    for turn in range(4):
        product = space.sbuf("product", FP32, (16,))
        program.append(tensor_scalar(product, tiles[0], 3.0, AluOp.MULTIPLY))
        program.append(dma_copy(z[turn], product))
    for turn, tile in enumerate(tiles):
        copied = space.sbuf("copied", FP32, (16,))
        program.append(tensor_copy(copied, tile), other=activation(copied, tile, "identity"))
        program.append(dma_copy(y[turn], copied))
    values = rng.integers(0x3F800000, 0x40800000, x.shape)
    found = y.elements(run_golden(build_image(program, [(x, values)]), rng).hbm)
    names = Counter(entry.instruction.name for entry in program.entries)
    assert np.array_equal(found, values)
    assert (names["ACTIVATE"], names["TENSOR_COPY"]) == (scalar, 4 - scalar)

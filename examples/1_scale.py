"""y = 3 x: load a matrix from HBM, multiply it in place on the vector engine, store it."""

import sys

import numpy as np

from neuroncore_rtl import AluOp, Program, dma_copy, run
from neuroncore_rtl.kernels.program.instructions import tensor_scalar

ROWS, COLUMNS = 4, 200


def scale(program: Program) -> None:
    space = program.space
    x, y = space.hbm("x", "fp32", (ROWS, COLUMNS)), space.hbm("y", "fp32", (ROWS, COLUMNS))
    tile = space.sbuf("tile", "fp32", (COLUMNS,), ROWS)  # one partition per row

    program.append(dma_copy(tile, x))
    program.append(tensor_scalar(tile, tile, 3.0, AluOp.MULTIPLY))
    program.append(dma_copy(y, tile))


if __name__ == "__main__":
    preset = sys.argv[1] if len(sys.argv) > 1 else "small"
    x = np.random.default_rng(1).normal(size=(ROWS, COLUMNS)).astype(np.float32)
    result = run(scale, {"x": x}, preset=preset)
    print(result)
    assert result.bit_exact
    assert np.array_equal(result.arrays["y"], 3 * x)

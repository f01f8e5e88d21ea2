"""C = A.T B on the tensor engine: one tile of C, accumulated in PSUM over tiles of K."""

import sys

import numpy as np

from neuroncore_rtl import Program, dma_copy, load_stationary, multiply_moving, run
from neuroncore_rtl.kernels.program.instructions import tensor_copy

K, M, N = 40, 4, 100


def product(program: Program) -> None:
    space, depth = program.space, program.config.rows
    a, b, c = space.hbm("a", "bf16", (K, M)), space.hbm("b", "bf16", (K, N)), space.hbm("c", "fp32", (M, N))
    sums = space.psum("sums", "fp32", (N,), M)

    for first in range(0, K, depth):
        part = slice(first, min(first + depth, K))  # one partition per row of the array
        stationary = space.sbuf("stationary", "bf16", (M,), part.stop - part.start)
        moving = space.sbuf("moving", "bf16", (N,), part.stop - part.start)
        program.append(dma_copy(stationary, a[part]))
        program.append(dma_copy(moving, b[part]))
        program.append(load_stationary(stationary))
        program.append(multiply_moving(sums, moving, accumulate=first > 0))

    out = space.sbuf("out", "fp32", (N,), M)
    program.append(tensor_copy(out, sums))
    program.append(dma_copy(c, out))


if __name__ == "__main__":
    preset = sys.argv[1] if len(sys.argv) > 1 else "small"
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(K, M)), rng.normal(size=(K, N))
    result = run(product, {"a": a, "b": b}, preset=preset)
    print(result)
    assert result.bit_exact
    # Rounding to BF16: a relative error of up to 2^-9 in each operand.
    np.testing.assert_allclose(result.arrays["c"], a.T @ b, atol=2**-8 * (abs(a).T @ abs(b)).max())

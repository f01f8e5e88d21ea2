"""y = x / sqrt(mean(x * x) + epsilon) * gamma, row by row: more rows than partitions, two engines in parallel."""

import sys

import numpy as np

from neuroncore_rtl import AluOp, Program, dma_copy, run
from neuroncore_rtl.kernels.program.instructions import activation, scalar_tensor_tensor, tensor_scalar

ROWS, COLUMNS = 72, 96
EPSILON = 1e-5


def rmsnorm(program: Program) -> None:
    space, lanes = program.space, program.config.partitions
    x, y = space.hbm("x", "bf16", (ROWS, COLUMNS)), space.hbm("y", "bf16", (ROWS, COLUMNS))
    gamma = space.hbm("gamma", "fp32", (COLUMNS,))

    gain = space.sbuf("gain", "fp32", (COLUMNS,))
    program.append(dma_copy(gain, gamma))  # the same in every partition
    # Double buffering: one tile is loaded or stored while the other is computed.
    places = [
        (
            space.sbuf("tile", "bf16", (COLUMNS,)),
            space.sbuf("square", "fp32", (COLUMNS,)),
            space.sbuf("scale", "fp32", (1,)),
        )
        for _ in range(2)
    ]
    for number, first in enumerate(range(0, ROWS, lanes)):
        rows = x[first : first + lanes]
        tile, square, scale = (place[: rows.shape[0]] for place in places[number % 2])

        program.append(dma_copy(tile, rows))
        program.append(activation(square, tile, "square", sum_into=scale))
        program.append(tensor_scalar(scale, scale, 1 / COLUMNS, AluOp.MULTIPLY, EPSILON, AluOp.ADD))
        program.append(activation(scale, scale, "rsqrt"))
        program.append(scalar_tensor_tensor(tile, tile, scale, AluOp.MULTIPLY, gain[: rows.shape[0]], AluOp.MULTIPLY))
        program.append(dma_copy(y[first : first + lanes], tile))


if __name__ == "__main__":
    preset = sys.argv[1] if len(sys.argv) > 1 else "small"
    rng = np.random.default_rng(2)
    x, gamma = rng.normal(0, 2, (ROWS, COLUMNS)), rng.normal(1, 0.1, COLUMNS)
    result = run(rmsnorm, {"x": x, "gamma": gamma}, preset=preset)
    print(result)
    assert result.bit_exact
    expected = x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + EPSILON) * gamma
    np.testing.assert_allclose(result.arrays["y"], expected, rtol=2**-7, atol=2**-7)

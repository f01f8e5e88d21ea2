"""A layer, y = gelu(w.T x + b), of any size: bias and GELU are applied on the way from PSUM to SBUF.

Activations are [features, tokens], so that the result of a layer can be the operand of the next one.
"""

import sys
from math import erf

import numpy as np

from neuroncore_rtl import Program, dma_copy, load_stationary, multiply_moving, run
from neuroncore_rtl.kernels.program.instructions import activation

INPUTS, OUTPUTS, TOKENS = 12, 10, 600


def tiles(size: int, step: int) -> list[slice]:
    return [slice(first, min(first + step, size)) for first in range(0, size, step)]


def linear_gelu(program: Program) -> None:
    space, config = program.space, program.config
    x, w = space.hbm("x", "bf16", (INPUTS, TOKENS)), space.hbm("w", "bf16", (INPUTS, OUTPUTS))
    b, y = space.hbm("b", "fp32", (OUTPUTS,)), space.hbm("y", "bf16", (OUTPUTS, TOKENS))

    # Operands used more than once stay in SBUF: one tile per `config.rows` inputs.
    depth = tiles(INPUTS, config.rows)
    weights, moving = [], []
    for number, part in enumerate(depth):
        rows = part.stop - part.start
        weights.append(space.sbuf(f"w{number}", "bf16", (OUTPUTS,), rows))
        moving.append(space.sbuf(f"x{number}", "bf16", (TOKENS,), rows))
        program.append(dma_copy(weights[-1], w[part]))
        program.append(dma_copy(moving[-1], x[part]))

    words = config.psum_words
    sums = space.psum("sums", "fp32", (2, words))  # two banks: one accumulates while the other is read
    turn = 0
    for outputs in tiles(OUTPUTS, config.columns):
        count = outputs.stop - outputs.start
        bias = space.sbuf("bias", "fp32", (1,), count)
        program.append(dma_copy(bias, b[outputs, None]))
        for tokens in tiles(TOKENS, words):
            width = tokens.stop - tokens.start
            bank, turn = sums[:count, turn, :width], 1 - turn
            for k in range(len(depth)):
                program.append(load_stationary(weights[k][:, outputs]))
                program.append(multiply_moving(bank, moving[k][:, tokens], accumulate=k > 0))
            out = space.sbuf("out", "bf16", (width,), count)
            program.append(activation(out, bank, "gelu", bias=bias))
            program.append(dma_copy(y[outputs, tokens], out))


if __name__ == "__main__":
    preset = sys.argv[1] if len(sys.argv) > 1 else "small"
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(INPUTS, TOKENS)), rng.normal(0, 0.2, (INPUTS, OUTPUTS))
    b = rng.normal(size=OUTPUTS)
    result = run(linear_gelu, {"x": x, "w": w, "b": b}, preset=preset)
    print(result)
    assert result.bit_exact
    sums = w.T @ x + b[:, None]
    np.testing.assert_allclose(result.arrays["y"], sums * (1 + np.vectorize(erf)(sums / np.sqrt(2))) / 2, atol=2**-5)

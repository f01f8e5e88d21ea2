"""Attention head, softmax(q.T k / sqrt(d)) v.T, in one program: scores and weights stay on chip.

The scores of a tile of queries are rows: their maximum, exponentials and sum run along the keys. The second product
contracts over the keys, which must then be partitions: the tensor engine transposes the weights by a product with an
identity matrix.
"""

import sys
from math import sqrt

import numpy as np

from neuroncore_rtl import AluOp, Program, dma_copy, load_stationary, multiply_moving, run
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program.instructions import (
    activation,
    affine_select,
    memset,
    reciprocal,
    tensor_copy,
    tensor_reduce,
    tensor_scalar,
)
from neuroncore_rtl.spec.isa import Index

QUERIES, KEYS, WIDTH = 24, 40, 4


def tiles(size: int, step: int) -> list[slice]:
    return [slice(first, min(first + step, size)) for first in range(0, size, step)]


def identity_matrix(program: Program, size: int) -> Tensor:
    """Return an identity matrix: ones, kept where partition - column = 0."""
    ones, identity = (program.space.sbuf(name, "bf16", (size,), size) for name in ("ones", "identity"))
    program.append(memset(ones, 1.0))
    program.append(affine_select(identity, ones, Index(partition=1, steps=(-1,)), AluOp.IS_EQUAL, 0.0))
    return identity


def attention(program: Program) -> None:
    space, size = program.space, min(program.config.rows, program.config.columns)
    q, k = space.hbm("q", "bf16", (WIDTH, QUERIES)), space.hbm("k", "bf16", (WIDTH, KEYS))
    v, out = space.hbm("v", "bf16", (KEYS, WIDTH)), space.hbm("out", "fp32", (QUERIES, WIDTH))
    identity = identity_matrix(program, size)

    keys = space.sbuf("keys", "bf16", (KEYS,), WIDTH)
    program.append(dma_copy(keys, k))
    values = [space.sbuf("values", "bf16", (WIDTH,), part.stop - part.start) for part in tiles(KEYS, size)]
    for tile, part in zip(values, tiles(KEYS, size), strict=True):
        program.append(dma_copy(tile, v[part]))

    scores, turned, sums = (space.psum(name, "fp32", (512,)) for name in ("scores", "turned", "sums"))  # one bank each
    for queries in tiles(QUERIES, size):
        n = queries.stop - queries.start
        stationary = space.sbuf("queries", "bf16", (n,), WIDTH)
        program.append(dma_copy(stationary, q[:, queries]))
        program.append(load_stationary(stationary))
        program.append(multiply_moving(scores[:n, :KEYS], keys))

        # weights = exp((scores - max) / sqrt(d)); the activation also sums them.
        weights = space.sbuf("weights", "bf16", (KEYS,), n)
        lowest, total = space.sbuf("lowest", "fp32", (1,), n), space.sbuf("total", "fp32", (1,), n)
        program.append(tensor_reduce(lowest, scores[:n, :KEYS], AluOp.MAX, negate=True))
        program.append(tensor_scalar(lowest, lowest, 1 / sqrt(WIDTH), AluOp.MULTIPLY))
        program.append(
            activation(weights, scores[:n, :KEYS], "exp", scale=1 / sqrt(WIDTH), bias=lowest, sum_into=total)
        )
        program.append(reciprocal(total, total))

        for number, part in enumerate(tiles(KEYS, size)):
            count = part.stop - part.start
            turned_weights = space.sbuf("turned weights", "bf16", (n,), count)
            program.append(load_stationary(weights[:, part]))
            program.append(multiply_moving(turned[:count, :n], identity[:n, :n], transpose=True))
            program.append(tensor_copy(turned_weights, turned[:count, :n]))
            program.append(load_stationary(turned_weights))
            program.append(multiply_moving(sums[:n, :WIDTH], values[number], accumulate=number > 0))

        result = space.sbuf("result", "fp32", (WIDTH,), n)
        program.append(tensor_scalar(result, sums[:n, :WIDTH], total, AluOp.MULTIPLY))
        program.append(dma_copy(out[queries], result))


if __name__ == "__main__":
    preset = sys.argv[1] if len(sys.argv) > 1 else "small"
    rng = np.random.default_rng(5)
    q, k, v = rng.normal(size=(WIDTH, QUERIES)), rng.normal(size=(WIDTH, KEYS)), rng.normal(size=(KEYS, WIDTH))
    result = run(attention, {"q": q, "k": k, "v": v}, preset=preset)
    print(result)
    assert result.bit_exact
    powers = np.exp(q.T @ k / sqrt(WIDTH))
    np.testing.assert_allclose(result.arrays["out"], powers / powers.sum(1, keepdims=True) @ v, atol=2**-5)

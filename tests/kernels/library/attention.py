"""Attention of one head as one program, from HBM to HBM."""

from math import sqrt

import numpy as np

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.kernels.library.matmul import matmul
from neuroncore_rtl.kernels.library.softmax import softmax
from neuroncore_rtl.kernels.program import Program, build_image, instructions
from neuroncore_rtl.kernels.tiling.streamed import streamed
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.spec.formats import BF16, FP32


def attention(rng, config, queries, keys, width):
    program = Program(config)
    space = program.space
    q, k = space.hbm("q", BF16, (width, queries)), space.hbm("k", BF16, (width, keys))
    v, out = space.hbm("v", BF16, (keys, width)), space.hbm("out", FP32, (queries, width))
    scores, weights = space.hbm("scores", FP32, (queries, keys)), space.hbm("weights", BF16, (queries, keys))

    def scaled(stage, sums, rows, columns):
        program.append(instructions.activation(stage, sums, "identity", scale=1 / sqrt(width)))

    matmul(program, scores, q, k, scaled)
    streamed(program, softmax, [weights], [scores])
    matmul(program, out, weights.permute(1, 0), v)

    contents = [(tensor, encode(rng.normal(size=tensor.shape), BF16)) for tensor in (q, k, v)]
    exact_q, exact_k, exact_v = (decode(codes, BF16) for _, codes in contents)
    powers = np.exp(exact_q.T @ exact_k / sqrt(width))
    return build_image(program, contents), out, powers / powers.sum(1, keepdims=True) @ exact_v

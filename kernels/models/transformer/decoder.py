"""Decoder layer for one token: appends its key and value to a cache of earlier tokens in HBM.

Layer and parameters are the same as in `kernels.models.transformer.encoder`, causal. The position is a number in
SBUF, so that a section that runs repeatedly generates a text.

With one query per head, heads fill the array instead of queries. The queries of all heads form a block-diagonal matrix,
so that one product gives the scores of all heads, a row each. In the second product each head keeps only its own
features; these are added along the partitions.
"""

from math import sqrt
from typing import NamedTuple

from neuroncore_rtl.kernels.library.attention_tile import HIDDEN
from neuroncore_rtl.kernels.library.linear import linear, linear_t
from neuroncore_rtl.kernels.library.postnorm import postnorm
from neuroncore_rtl.kernels.library.product import product
from neuroncore_rtl.kernels.library.softmax import softmax
from neuroncore_rtl.kernels.library.transpose import identity, transpose
from neuroncore_rtl.kernels.models.transformer.encoder import EncoderWeights
from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, dma_scatter
from neuroncore_rtl.kernels.program.instructions import (
    affine_select,
    iota,
    memset,
    scalar_tensor_tensor,
    tensor_scalar,
    tensor_tensor,
)
from neuroncore_rtl.kernels.tiling.rows import Rows, place_rows, scratch, tiles_of
from neuroncore_rtl.spec.formats import BF16, FP32, INT32
from neuroncore_rtl.spec.isa import AluOp, Index

__all__ = ["Cache", "Owners", "decoder", "owners"]


class Cache(NamedTuple):
    """Keys, transposed [features, positions], and values [positions, features] of all tokens so far, BF16 in HBM."""

    keys_t: HbmTensor
    values: HbmTensor


class Owners(NamedTuple):
    """Masks, 1 where a feature belongs to a head, else 0: BF16 [features, heads], and FP32 [heads, features]."""

    by_features: Rows
    by_heads: Rows


def owners(program: Program, features: int, heads: int) -> Owners:
    """Append and return a layer's masks, once for all tokens; ValueError if heads do not divide the features."""
    if heads < 1 or features % heads:
        raise ValueError(f"heads must divide the {features} features of a token, not {heads}")
    width, lanes = features // heads, program.lanes
    by_features = place_rows(program.space, "by features", BF16, features, heads, lanes=lanes)
    by_heads = place_rows(program.space, "by heads", FP32, heads, features, lanes=lanes)
    for matrix, feature, head in ((by_features, (1, 0), (0, 1)), (by_heads, (0, 1), (1, 0))):
        for part, tile in zip(matrix.parts, matrix.tiles, strict=True):
            # Keep a feature where 0 <= feature - width * head < width.
            down, across = (feature[axis] - width * head[axis] for axis in (0, 1))
            program.append(memset(tile, 1.0))
            for base, op in ((0, AluOp.IS_GE), (-width, AluOp.IS_LT)):
                index = Index(base=base + part.start * down, partition=down, steps=(across,))
                program.append(affine_select(tile, tile, index, op, 0.0))
    return Owners(by_features, by_heads)


def decoder(
    program: Program,
    x: Rows,
    weights: EncoderWeights,
    own: Owners,
    cache: Cache,
    position: Tensor,
    *,
    epsilon: float = 1e-5,
) -> Rows:
    """Append and return the layer for one token, x and the result BF16 [1, features].

    Matrices are BF16, vectors FP32. `own` are the masks of the heads. The position of the token, INT32 [1] in every
    partition, must lie in the cache.
    """
    matrix = identity(program, x.format)
    x_t = transpose(program, x, matrix)
    q_t, k_t = (
        linear_t(program, dense.w, x_t, dense.bias, name=name)
        for name, dense in (("q_t", weights.query), ("k_t", weights.key))
    )
    _remember(program, cache, k_t, linear(program, x_t, *weights.value, name="v"), position)
    attended_t = _attend(program, q_t, own, cache, position, matrix)
    middle = postnorm(program, attended_t, *weights.output, x, weights.first, epsilon=epsilon, name="h").y
    middle_t = transpose(program, middle, matrix, "h_t")
    hidden_t = linear_t(program, weights.up.w, middle_t, weights.up.bias, "gelu", name="hidden_t")
    return postnorm(program, hidden_t, *weights.down, middle, weights.second, epsilon=epsilon).y


def _remember(program: Program, cache: Cache, k_t: Rows, v: Rows, position: Tensor) -> None:
    features, positions = cache.keys_t.shape
    column = cache.keys_t.reshape(features * positions, 1)
    for part, tile in zip(k_t.parts, k_t.tiles, strict=True):
        row = program.space.sbuf("places", INT32, (1,), tile.partitions)
        program.append(iota(row, Index(base=part.start * positions, partition=positions)))
        program.append(tensor_tensor(row, row, position[: tile.partitions], AluOp.ADD))
        program.append(dma_scatter(column, tile, row), next(program.stores))
    program.append(dma_scatter(cache.values, v.tiles[0], position[:1]), next(program.stores))


def _attend(program: Program, q_t: Rows, own: Owners, cache: Cache, position: Tensor, matrix: Tensor) -> Rows:
    (features, positions), heads = cache.keys_t.shape, own.by_heads.shape[0]
    queries_t = scratch(program.space, "queries_t", own.by_features, fmt=BF16)
    for out, owned, q in tiles_of(queries_t, own.by_features, q_t):
        program.append(tensor_scalar(out, owned, q, AluOp.MULTIPLY))
    # Later positions have no weight: a large negative number is added to their scores.
    numbers = program.space.sbuf("positions", INT32, (positions,))
    hidden = program.space.sbuf("hidden", FP32, (positions,))
    program.append(iota(numbers, Index(steps=(1,))))
    program.append(tensor_scalar(hidden, numbers, position, AluOp.IS_GT, HIDDEN, AluOp.MULTIPLY))

    def scale_scores(out: Tensor, sums: Tensor, rows: slice, columns: slice) -> None:
        beyond, scale = hidden[: sums.partitions, columns], sqrt(heads / features)
        program.append(scalar_tensor_tensor(out, sums, scale, AluOp.MULTIPLY, beyond, AluOp.ADD))

    scores = product(program, queries_t, cache.keys_t, name="scores", fmt=FP32, finish=scale_scores)
    weights = scratch(program.space, "weights", scores, fmt=BF16)
    softmax(program, weights, scores)
    weights_t = transpose(program, weights, matrix, "weights_t")
    mixed = product(program, weights_t, cache.values, name="mixed", factors=own.by_heads)
    ones = scratch(program.space, "ones", mixed, 1, BF16)
    for tile in ones.tiles:
        program.append(memset(tile, 1.0))
    return product(program, mixed, ones, name="attended_t")

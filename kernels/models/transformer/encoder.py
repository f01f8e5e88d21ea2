"""Post-norm encoder layer as in BERT: h = layernorm(x + attention(x)), y = layernorm(h + mlp(h)).

Only parameters are loaded from HBM; everything between x and y stays in SBUF. Products that contract over features need
features along the partitions (`_t`); normalisation and the product with values need tokens there. So the tensor engine
transposes x, the result of attention, and h.
"""

from typing import NamedTuple

from neuroncore_rtl.kernels.library.attention import Attended, Head, attention
from neuroncore_rtl.kernels.library.linear import column_of, linear, linear_t
from neuroncore_rtl.kernels.library.postnorm import Normed, Scales, postnorm
from neuroncore_rtl.kernels.library.transpose import identity, transpose
from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor
from neuroncore_rtl.kernels.tiling.blocks import cut
from neuroncore_rtl.kernels.tiling.rows import Rows
from neuroncore_rtl.kernels.tiling.transfer import load_row

__all__ = ["Dense", "Encoded", "EncoderWeights", "encoder"]


class Dense(NamedTuple):
    """Parameters of a linear layer: w [inputs, outputs], bias [outputs]."""

    w: HbmTensor
    bias: HbmTensor


class EncoderWeights(NamedTuple):
    """Parameters of an encoder layer.

    Query, key, value and output are [features, features]; up is [features, hidden], down is [hidden, features]. The
    first normalisation follows attention, the second one the MLP.
    """

    query: Dense
    key: Dense
    value: Dense
    output: Dense
    first: Scales
    up: Dense
    down: Dense
    second: Scales


class Encoded(NamedTuple):
    """Result of an encoder layer, and intermediate results for its gradient.

    `last` is the output y, `middle` the intermediate result h, each with the operand of the normalisation that gives
    it. `heads` are the operands of attention, `attended` is its result. `hidden_t` is gelu(h up + bias).
    """

    last: Normed
    x_t: Rows
    heads: list[Head]
    attended: Attended
    attended_t: Rows
    middle: Normed
    middle_t: Rows
    hidden_t: Rows


def encoder(
    program: Program, x: Rows, weights: EncoderWeights, heads: int, *, causal: bool = False, epsilon: float = 1e-5
) -> Encoded:
    """Append and return an encoder layer of x, BF16 [tokens, features], in tiles that may be operands of the array.

    Weights have the format of x; vectors may be FP32, but then load more slowly. If `causal`, a token sees only tokens
    up to itself. Raises ValueError if heads do not divide the features, or shapes or formats do not match.
    """
    features = x.shape[1]
    if heads < 1 or features % heads:
        raise ValueError(f"heads must divide the {features} features of a token, not {heads}")
    matrix = identity(program, x.format)
    # The array is idle until x is loaded.
    row = load_row(program, weights.value.bias)
    x_t = transpose(program, x, matrix)
    biases = column_of(program, weights.up.bias, weights.up.w.shape[1], matrix=matrix)
    operands = _heads(program, x_t, weights, row, matrix, heads)
    # HBM is idle while softmax keeps the other engines busy.
    rows = [load_row(program, row, each=True) for row in (weights.output.bias, *weights.first)]
    attended = attention(program, operands, matrix, causal=causal)
    attended_t = transpose(program, attended.out, matrix, "attended_t")
    middle = postnorm(program, attended_t, weights.output.w, rows[0], x, Scales(*rows[1:3]), epsilon=epsilon, name="h")
    middle_t = transpose(program, middle.y, matrix, "h_t")
    hidden_t = linear_t(program, weights.up.w, middle_t, biases, "gelu", name="hidden_t")
    rows += [load_row(program, row, each=True) for row in (weights.down.bias, *weights.second)]
    last = postnorm(program, hidden_t, weights.down.w, rows[3], middle.y, Scales(*rows[4:]), epsilon=epsilon)
    return Encoded(last, x_t, operands, attended, attended_t, middle, middle_t, hidden_t)


def _heads(program: Program, x_t: Rows, weights: EncoderWeights, row: Tensor, matrix: Tensor, heads: int) -> list[Head]:
    width = x_t.shape[0] // heads
    each = cut(0, width, program.lanes)
    parts = [slice(head * width + part.start, head * width + part.stop) for head in range(heads) for part in each]
    biases = [column_of(program, dense.bias, x_t.shape[0], parts, matrix) for dense in (weights.query, weights.key)]
    q_t, k_t = (
        linear_t(program, dense.w, x_t, bias, name=name, parts=parts)
        for name, dense, bias in zip(("q_t", "k_t"), (weights.query, weights.key), biases, strict=True)
    )
    v = linear(program, x_t, weights.value.w, row, name="v")
    return [
        Head(
            Rows(q_t.tiles[head * len(each) : (head + 1) * len(each)]),
            Rows(k_t.tiles[head * len(each) : (head + 1) * len(each)]),
            v.columns(head * width, (head + 1) * width),
        )
        for head in range(heads)
    ]

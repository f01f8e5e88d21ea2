"""Gradients of an encoder layer: of its input and of all its parameters.

Only the slopes of gelu are recomputed from the forward pass. Each gradient of a parameter is stored to HBM immediately,
so that SBUF need not hold all of them.
"""

from neuroncore_rtl.kernels.library.linear import linear, linear_t
from neuroncore_rtl.kernels.library.postnorm import Scales
from neuroncore_rtl.kernels.library.transpose import identity, transpose
from neuroncore_rtl.kernels.models.transformer.encoder import Dense, Encoded, EncoderWeights
from neuroncore_rtl.kernels.program import HbmTensor, Program
from neuroncore_rtl.kernels.tiling.rows import Rows
from neuroncore_rtl.kernels.tiling.transfer import load, store
from neuroncore_rtl.kernels.training.attention_backward import attention_backward
from neuroncore_rtl.kernels.training.layernorm_backward import layernorm_backward
from neuroncore_rtl.kernels.training.linear_backward import (
    bias_gradient,
    input_gradient,
    input_gradient_t,
    weight_gradient,
)

__all__ = ["encoder_backward"]


def encoder_backward(
    program: Program,
    x: Rows,
    encoded: Encoded,
    weights: EncoderWeights,
    dy: Rows,
    gradients: EncoderWeights,
    *,
    causal: bool = False,
    epsilon: float = 1e-5,
) -> Rows:
    """Append and return the gradient of x, BF16 [tokens, features]; store the gradients of all parameters to HBM.

    `encoded` is the result of the forward pass, and x, weights, `causal` and `epsilon` are its arguments. dy is BF16 in
    tiles like the result. `gradients` are the destinations of the parameters' gradients, FP32.
    """
    matrix = identity(program, dy.format)
    dsums = _normalise_backward(program, encoded.last.sums, weights.second, dy, gradients.second, epsilon)
    slopes_t = linear_t(program, weights.up.w, encoded.middle_t, weights.up.bias, "dgelu", name="slopes_t")
    dsums_t = transpose(program, dsums, matrix, "dsums_t")
    dhidden_t = input_gradient_t(program, weights.down.w, dsums_t, matrix, slopes_t, name="dhidden_t")
    _dense(program, transpose(program, encoded.hidden_t, matrix, "hidden"), dsums, gradients.down)
    _dense(program, encoded.middle.y, transpose(program, dhidden_t, matrix, "dhidden"), gradients.up)
    dmiddle = input_gradient(program, dhidden_t, weights.up.w, matrix, dsums, name="dmiddle")

    dsums = _normalise_backward(program, encoded.middle.sums, weights.first, dmiddle, gradients.first, epsilon)
    dsums_t = transpose(program, dsums, matrix, "dsums_t")
    dattended = input_gradient(program, dsums_t, weights.output.w, matrix, name="dattended")
    _dense(program, encoded.attended.out, dsums, gradients.output)
    slopes = attention_backward(program, encoded.heads, encoded.attended, dattended, matrix, causal=causal)
    # Queries, keys and values together are one linear layer of x, so one product gives its gradient.
    slopes_t, weights_t = [], []
    for name, slope in zip(("query", "key", "value"), slopes, strict=True):
        slopes_t += transpose(program, slope, matrix, f"d{name}_t").tiles
        weights_t += transpose(program, load(program, getattr(weights, name).w), matrix, f"{name}_t").tiles
        _dense(program, x, slope, getattr(gradients, name))
    return linear(program, Rows(tuple(slopes_t)), Rows(tuple(weights_t)), residual=dsums, name="dx")


def _normalise_backward(program: Program, x: Rows, scales: Scales, dy: Rows, gradients: Scales, epsilon: float) -> Rows:
    found = layernorm_backward(program, x, scales.gamma, dy, epsilon=epsilon, name="dsums")
    _store(program, gradients.gamma, found.gamma)
    _store(program, gradients.beta, found.beta)
    return found.x


def _dense(program: Program, x: Rows, dy: Rows, gradients: Dense) -> None:
    store(program, gradients.w, weight_gradient(program, x, dy))
    _store(program, gradients.bias, bias_gradient(program, dy))


def _store(program: Program, target: HbmTensor, row: Rows) -> None:
    store(program, target.reshape(1, -1), row)

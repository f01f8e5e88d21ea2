"""Layers, their derivatives and a step of AdamW in float64, the references of kernels that train."""

import math
from collections.abc import Mapping

import numpy as np

from neuroncore_rtl.kernels.training.adamw import AdamW

__all__ = [
    "EPSILON", "adamw_step", "attention", "attention_gradients", "crossentropy", "encoded", "encoder_gradients",
    "gelu", "layernorm", "layernorm_gradients", "linear_gradients", "softmax", "softmax_gradient",
]  # fmt: skip

Gradients = dict[str, np.ndarray]
Weights = Mapping[str, np.ndarray]
EPSILON = 1e-5  # added to the variance in normalisations


def linear_gradients(x: np.ndarray, w: np.ndarray, dy: np.ndarray) -> Gradients:
    """Return dx, dw and dbias of y = x w + bias."""
    return {"dx": dy @ w.T, "dw": x.T @ dy, "dbias": dy.sum(0, keepdims=True)}


def layernorm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Return the normalised rows, scaled by gamma and shifted by beta."""
    return _normal(x)[0] * gamma + beta


def layernorm_gradients(x: np.ndarray, gamma: np.ndarray, dy: np.ndarray) -> Gradients:
    """Return dx, dgamma and dbeta."""
    (normal, inverse), slopes = _normal(x), dy * gamma
    along = slopes.mean(1, keepdims=True) + normal * (slopes * normal).mean(1, keepdims=True)
    dgamma, dbeta = ((dy * weight).sum(0, keepdims=True) for weight in (normal, 1))
    return {"dx": (slopes - along) * inverse, "dgamma": dgamma, "dbeta": dbeta}


def _normal(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    centred = x - x.mean(1, keepdims=True)
    inverse = 1 / np.sqrt((centred**2).mean(1, keepdims=True) + EPSILON)
    return centred * inverse, inverse


def softmax(x: np.ndarray) -> np.ndarray:
    """Return the softmax of each row."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def softmax_gradient(y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """Return the gradient of x, given the gradient of y = softmax(x)."""
    return y * (dy - (y * dy).sum(-1, keepdims=True))


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool = False) -> np.ndarray:
    """Return softmax(q k.T / sqrt(width)) v; if `causal`, the last query uses all keys, an earlier one one key less."""
    return _weights(q, k, causal) @ v


def attention_gradients(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, dout: np.ndarray, causal: bool = False
) -> Gradients:
    """Return dq, dk and dv."""
    weights = _weights(q, k, causal)
    slopes = softmax_gradient(weights, dout @ v.T) / np.sqrt(q.shape[1])
    return {"dq": slopes @ k, "dk": slopes.T @ q, "dv": weights.T @ dout}


def _weights(q: np.ndarray, k: np.ndarray, causal: bool) -> np.ndarray:
    if causal and len(q) > len(k):
        raise ValueError(f"keys must be at least as many as the {len(q)} queries if causal, not {len(k)}")
    scores = q @ k.T / np.sqrt(q.shape[1])
    if causal:
        scores[~np.tri(*scores.shape, len(k) - len(q), dtype=bool)] = -np.inf
    return softmax(scores)


def gelu(x: np.ndarray, function: str = "gelu") -> tuple[np.ndarray, np.ndarray]:
    """Return GELU, exact or by tanh, and its derivative."""
    if function == "gelu":
        gate, density = (1 + np.vectorize(math.erf)(x / np.sqrt(2))) / 2, np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
        return x * gate, gate + x * density
    slope = np.sqrt(2 / np.pi)
    t = np.tanh(slope * (x + 0.044715 * x**3))
    return x * (1 + t) / 2, (1 + t) / 2 + x * (1 - t * t) / 2 * slope * (1 + 3 * 0.044715 * x * x)


def crossentropy(logits: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cross entropy of each row, and the gradient of their sum with respect to the logits."""
    y, rows = softmax(logits), np.arange(len(labels))
    loss = -np.log(y[rows, labels])[:, None]
    y[rows, labels] -= 1
    return loss, y


def encoded(x: np.ndarray, weights: Weights, heads: int, causal: bool = False) -> np.ndarray:
    """Return an encoder layer of x; weights: see `encoder_gradients`."""
    return layernorm(_encoder_stages(x, weights, heads, causal)[-1], weights["second.gamma"], weights["second.beta"])


def _encoder_stages(x: np.ndarray, weights: Weights, heads: int, causal: bool) -> tuple:
    """Return query, key and value by head, the attention, and the inputs of first norm, MLP, gelu, and second norm."""

    def dense(name: str, values: np.ndarray) -> np.ndarray:
        return values @ weights[f"{name}.w"] + weights[f"{name}.bias"]

    parts = [np.split(dense(name, x), heads, axis=1) for name in ("query", "key", "value")]
    mixed = np.concatenate([attention(*one, causal) for one in zip(*parts, strict=True)], axis=1)
    sums = x + dense("output", mixed)
    middle = layernorm(sums, weights["first.gamma"], weights["first.beta"])
    up = dense("up", middle)
    return parts, mixed, sums, middle, up, middle + dense("down", gelu(up)[0])


def encoder_gradients(x: np.ndarray, weights: Weights, heads: int, dy: np.ndarray, causal: bool = False) -> Gradients:
    """Return the gradients of an encoder layer's parameters by name, and of x by "x".

    The weights have names such as "query.w": `w` and `bias` of query, key, value, output, up and down, `gamma` and
    `beta` of the normalisations first and second. If `causal`, a token uses the keys of itself and of earlier tokens.
    """
    found = {}

    def dense_gradient(name: str, values: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        dx, found[f"{name}.w"], found[f"{name}.bias"] = linear_gradients(values, weights[f"{name}.w"], slopes).values()
        return dx

    def norm_gradient(name: str, values: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        gradients = layernorm_gradients(values, weights[f"{name}.gamma"], slopes)
        dx, found[f"{name}.gamma"], found[f"{name}.beta"] = gradients.values()
        return dx

    parts, mixed, sums, middle, up, last = _encoder_stages(x, weights, heads, causal)
    hidden, bends = gelu(up)
    slopes = norm_gradient("second", last, dy)
    slopes = slopes + dense_gradient("up", middle, dense_gradient("down", hidden, slopes) * bends)
    slopes = norm_gradient("first", sums, slopes)
    dmixed = np.split(dense_gradient("output", mixed, slopes), heads, axis=1)
    each = [attention_gradients(*one, causal).values() for one in zip(*parts, dmixed, strict=True)]
    for name, own in zip(("query", "key", "value"), zip(*each, strict=True), strict=True):
        slopes = slopes + dense_gradient(name, x, np.concatenate(own, axis=1))
    return found | {"x": slopes}


def adamw_step(
    options: AdamW, step: int, p: np.ndarray, gradient: np.ndarray, first: np.ndarray, second: np.ndarray
) -> None:
    """Update parameters and moments in place, in float64; `step` counts from 1."""
    first += (1 - options.beta1) * (gradient - first)
    second += (1 - options.beta2) * (gradient * gradient - second)
    root = np.sqrt(second / (1 - options.beta2**step)) + options.epsilon
    p -= options.rate * (options.decay * p + first / (1 - options.beta1**step) / root)

"""Layers and their derivatives in float64: what backward kernels are compared with."""

import numpy as np

__all__ = [
    "attention_gradients", "crossentropy", "layernorm", "layernorm_gradients", "linear_gradients",
    "softmax", "softmax_gradient",
]  # fmt: skip


def linear_gradients(x: np.ndarray, w: np.ndarray, dy: np.ndarray) -> dict[str, np.ndarray]:
    """Return dx, dw and dbias [1, outputs] of y = x w + bias."""
    return {"dx": dy @ w.T, "dw": x.T @ dy, "dbias": dy.sum(0, keepdims=True)}


def layernorm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, epsilon: float = 1e-5) -> np.ndarray:
    """Return (x - mean) / sqrt(variance + epsilon) * gamma + beta of each row."""
    return _normal(x, epsilon)[0] * gamma + beta


def layernorm_gradients(
    x: np.ndarray, gamma: np.ndarray, dy: np.ndarray, epsilon: float = 1e-5
) -> dict[str, np.ndarray]:
    """Return dx, dgamma and dbeta, [1, features] each."""
    (normal, inverse), slopes = _normal(x, epsilon), dy * gamma
    along = slopes.mean(1, keepdims=True) + normal * (slopes * normal).mean(1, keepdims=True)
    dgamma, dbeta = ((dy * weight).sum(0, keepdims=True) for weight in (normal, 1))
    return {"dx": (slopes - along) * inverse, "dgamma": dgamma, "dbeta": dbeta}


def _normal(x: np.ndarray, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the normalised rows, and the inverse of their deviations."""
    centred = x - x.mean(1, keepdims=True)
    inverse = 1 / np.sqrt((centred**2).mean(1, keepdims=True) + epsilon)
    return centred * inverse, inverse


def softmax(x: np.ndarray) -> np.ndarray:
    """Return the softmax of each row."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def softmax_gradient(y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """Return the gradient of x, by that of y = softmax(x)."""
    return y * (dy - (y * dy).sum(-1, keepdims=True))


def attention_gradients(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, dout: np.ndarray, causal: bool = False
) -> dict[str, np.ndarray]:
    """Return dq, dk and dv of softmax(q k.T / sqrt(width)) v; if causal, the last query sees all keys, others fewer."""
    scores = q @ k.T / np.sqrt(q.shape[1])
    if causal:
        scores[~np.tri(*scores.shape, len(k) - len(q), dtype=bool)] = -np.inf
    weights = softmax(scores)
    slopes = softmax_gradient(weights, dout @ v.T) / np.sqrt(q.shape[1])
    return {"dq": slopes @ k, "dk": slopes.T @ q, "dv": weights.T @ dout}


def crossentropy(logits: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cross entropy of each row, [rows, 1], and the gradient of the logits by their sum.

    Arguments:
        logits: [rows, classes].
        labels: integers [rows].
    """
    y, rows = softmax(logits), np.arange(len(labels))
    loss = -np.log(y[rows, labels])[:, None]
    y[rows, labels] -= 1
    return loss, y

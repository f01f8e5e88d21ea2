"""A block of a large language model, from HBM to HBM: grouped queries, RMS norm, SwiGLU, two residuals.

h = x + attention(rmsnorm(x)) wo, y = h + (silu(n gate) * (n up)) down with n = rmsnorm(h). Every key/value head serves
several query heads. The library's kernels tile the matrices; all between x and y stays in SBUF. The array contracts
along the partitions: an operand by features is transposed, and its name ends in `_t`.
"""

import sys

import numpy as np

from neuroncore_rtl import Program, Rows, load, run, store
from neuroncore_rtl.kernels.library.attention import Head, attention
from neuroncore_rtl.kernels.library.linear import linear, linear_t
from neuroncore_rtl.kernels.library.rmsnorm import rmsnorm
from neuroncore_rtl.kernels.library.swiglu import swiglu_t
from neuroncore_rtl.kernels.library.transpose import transpose
from neuroncore_rtl.kernels.program import HbmTensor
from neuroncore_rtl.kernels.tiling.rows import scratch

TOKENS, FEATURES, HIDDEN = 20, 16, 40
QUERY_HEADS, KEY_HEADS, WIDTH = 4, 2, 4

WEIGHTS = {
    "wq": (FEATURES, QUERY_HEADS * WIDTH),
    "wk": (FEATURES, KEY_HEADS * WIDTH),
    "wv": (FEATURES, KEY_HEADS * WIDTH),
    "wo": (QUERY_HEADS * WIDTH, FEATURES),
    "gate": (FEATURES, HIDDEN),
    "up": (FEATURES, HIDDEN),
    "down": (HIDDEN, FEATURES),
}


def head(number: int) -> slice:
    return slice(number * WIDTH, (number + 1) * WIDTH)


def normed_t(program: Program, x: Rows, gamma: HbmTensor) -> Rows:
    normed = scratch(program.space, "normed", x, fmt="bf16")
    rmsnorm(program, normed, x, gamma)
    return transpose(program, normed)


def block(program: Program) -> None:
    space = program.space
    x, y = (space.hbm(name, "fp32", (TOKENS, FEATURES)) for name in "xy")
    w = {name: space.hbm(name, "bf16", shape) for name, shape in WEIGHTS.items()}
    gammas = [space.hbm(name, "fp32", (FEATURES,)) for name in ("gamma1", "gamma2")]

    tokens = load(program, x)
    n_t = normed_t(program, tokens, gammas[0])
    k_t = [linear_t(program, w["wk"][:, head(number)], n_t) for number in range(KEY_HEADS)]
    v = [linear(program, n_t, w["wv"][:, head(number)]) for number in range(KEY_HEADS)]
    heads = []
    for number in range(QUERY_HEADS):
        group = number * KEY_HEADS // QUERY_HEADS
        heads.append(Head(linear_t(program, w["wq"][:, head(number)], n_t), k_t[group], v[group]))
    attended = attention(program, heads, causal=True).out
    h = linear(program, transpose(program, attended), w["wo"], residual=tokens, fmt="fp32")

    hidden_t = swiglu_t(program, w["gate"], w["up"], normed_t(program, h, gammas[1]))
    store(program, y, linear(program, hidden_t, w["down"], residual=h, fmt="fp32"))


def reference(x: np.ndarray, gamma1: np.ndarray, gamma2: np.ndarray, **w: np.ndarray) -> np.ndarray:
    """Return y in float64."""

    def norm(rows: np.ndarray, gamma: np.ndarray) -> np.ndarray:
        return rows / np.sqrt(np.mean(rows**2, axis=1, keepdims=True) + 1e-5) * gamma

    n, outs = norm(x, gamma1), []
    for number in range(QUERY_HEADS):
        group = head(number * KEY_HEADS // QUERY_HEADS)
        scores = n @ w["wq"][:, head(number)] @ (n @ w["wk"][:, group]).T / np.sqrt(WIDTH)
        powers = np.where(np.tri(TOKENS, dtype=bool), np.exp(scores), 0)
        outs.append(powers / powers.sum(axis=1, keepdims=True) @ (n @ w["wv"][:, group]))
    h = x + np.concatenate(outs, axis=1) @ w["wo"]
    n = norm(h, gamma2)
    gates = n @ w["gate"]
    return h + (gates / (1 + np.exp(-gates)) * (n @ w["up"])) @ w["down"]


if __name__ == "__main__":
    preset, target = (sys.argv[1:] + ["small", "rtl"][len(sys.argv) - 1 :])[:2]
    rng = np.random.default_rng(6)
    inputs = {name: rng.normal(0, shape[0] ** -0.5, shape) for name, shape in WEIGHTS.items()}
    inputs |= {name: rng.normal(1, 0.1, FEATURES) for name in ("gamma1", "gamma2")}
    inputs["x"] = rng.normal(size=(TOKENS, FEATURES))
    result = run(block, inputs, preset=preset, on=target)
    print(result)
    exact = reference(**inputs)
    error = result.arrays["y"] - exact
    largest, mean = np.abs(error).max() / np.abs(exact).max(), np.sqrt(np.mean(error**2) / np.mean(exact**2))
    print(f"error of y against float64: largest {largest:.2%} of the largest y, root mean square {mean:.2%}")
    assert result.bit_exact in (True, None)
    assert largest < 0.02 and mean < 0.01

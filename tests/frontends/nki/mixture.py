"""Backward pass of a mixture of two experts."""

from types import SimpleNamespace

import numpy as np

from neuroncore_rtl.frontends.nki.indices.dtypes import dtype_of
from neuroncore_rtl.frontends.nki.runtime.run import rounded

__all__ = ["gradient_arguments", "gradients"]

HIDDEN, WIDTH, BLOCK = 4096, 256, 512
"""Smallest sizes that the kernel accepts: features of a token, of an expert, tokens of a block."""

STORED = 512
"""Number of features for which the kernel stores derivatives by the first weights, before it returns early."""


def gradient_arguments(tokens: int) -> tuple:
    rng = np.random.default_rng(11)

    def random_bf16(*shape: int, scale: float = 1.0) -> np.ndarray:
        return rounded(rng.normal(size=shape) * scale, dtype_of("bf16").machine_format).astype(np.float64)

    hidden, dy = random_bf16(tokens + 1, HIDDEN), random_bf16(tokens + 1, HIDDEN)
    affinities = abs(random_bf16(2 * tokens + 2, 1))
    hidden[tokens], dy[tokens], affinities[2 * tokens :] = 0, 0, 0
    up, down = random_bf16(2, HIDDEN, 2, WIDTH, scale=1 / 64), random_bf16(2, WIDTH, HIDDEN, scale=1 / 16)
    places, order = np.full(2 * BLOCK, tokens, np.int32), rng.permutation(tokens)
    most = 2 * tokens // 3
    places[:most], places[BLOCK : BLOCK + most] = order[:most], order[-most:]
    kept = np.stack([np.einsum("th,hgi->git", hidden[own], up[e]) for e, own in enumerate(places.reshape(2, BLOCK))])
    kept = rounded(kept, dtype_of("bf16").machine_format).astype(np.float64)
    made = np.stack([(_silu(gate)[0] * value).T @ down[e] for e, (gate, value) in enumerate(kept)])
    found = []
    for x in (hidden, affinities, up):
        found += [(x, "bf16"), (np.zeros(x.shape), "bf16")]
    found += [(kept, "bf16"), (down, "bf16"), (np.zeros(down.shape), "bf16"), (made, "bf16")]
    options = SimpleNamespace(skip_token=False, skip_weight=False)
    return *found, places, np.array([[0], [1]], np.int32), (dy, "bf16"), BLOCK, options


def gradients(hidden, _, affinities, _1, up, _2, kept, down, _3, made, places, expert_of, dy, *rest) -> tuple:
    by_hidden, by_affinity, by_up, by_down = (np.zeros(x.shape) for x in (hidden, affinities, up, down))
    for own, (e,), (gate, value), result in zip(places.reshape(-1, BLOCK), expert_of, kept, made, strict=True):
        by_affinity[2 * own + e, 0] = (dy[own] * result).sum(1)
        scaled = dy[own] * affinities[2 * own + e]
        silu, slope = _silu(gate)
        by_product = down[e] @ scaled.T
        both = np.stack([by_product * value * slope, by_product * silu])
        by_down[e] += silu * value @ scaled
        np.add.at(by_hidden, own, np.einsum("git,hgi->th", both, up[e]))
        by_up[e] += np.einsum("th,git->hgi", hidden[own], both)
    by_up[:, STORED:] = 0
    return by_hidden, by_affinity, by_up, by_down


def _silu(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    share = 1 / (1 + np.exp(-x))
    return x * share, share * (1 + x * (1 - share))

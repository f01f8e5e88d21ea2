"""Kernels of aws-neuron/nki-library."""

import numpy as np

from tests.frontends.nki.published import RNG, Published, attention, bf16, normal, turned_pairs

__all__ = ["LIBRARY"]

CORE = "src/nkilib_src/nkilib/core/"
EXPERIMENTAL = "src/nkilib_src/nkilib/experimental/"


def projected(x, weights, bias=0) -> np.ndarray:
    return np.einsum("bnds,ndh->bsh", x, weights.reshape(*x.shape[1:3], -1)) + bias


def convolved(x, filters, bias, stride, padding) -> np.ndarray:
    x = np.pad(x, ((0, 0), (0, 0), padding))
    views = np.lib.stride_tricks.sliding_window_view(x, len(filters), 2)[:, :, ::stride]
    return np.einsum("nclk,kco->nol", views, filters) + bias[:, None]


def losses(logits, targets, *sizes) -> tuple[np.ndarray, np.ndarray]:
    most = logits.max(1, keepdims=True)
    sums = most[:, 0] + np.log(np.exp(logits - most).sum(1))
    return sums - logits[np.arange(len(logits)), targets], sums


def places(x) -> np.ndarray:
    (found,) = np.nonzero(x[0])
    return np.concatenate([found, np.full(x.shape[1] - len(found), -1), [len(found)]])[None]


def added(a, b, tiles) -> np.ndarray:
    return np.where(np.arange(len(a))[:, None] < 128 * tiles, a + b, 0)


HEADS = tuple(bf16(2, *shape, scale=0.5) for shape in ((512, 64), (64, 512), (512, 64)))
SPARSE = (RNG.random((1, 256)) < 0.3).astype(np.float32)

LIBRARY = (
    Published(CORE + "cumsum/cumsum.py", "cumsum", (bf16(200, 3000),), lambda x: np.cumsum(x, 1)),
    Published(CORE + "embeddings/rope.py", "RoPE", (bf16(128, 2, 4, 64), bf16(64, 2, 64), bf16(64, 2, 64)),
              lambda x, cos, sin: turned_pairs(x, cos[:, :, None], sin[:, :, None])),
    Published(CORE + "max/cascaded_max.py", "cascaded_max", (normal(4, 3000),), lambda x: (x.max(1), x.argmax(1))),
    Published(CORE + "attention/attention_cte.py", "attention_cte", (*HEADS, 0.125, True),
              lambda q, k, v, *how: attention(q, k.swapaxes(1, 2), v, *how)),
    Published(CORE + "output_projection/output_projection_cte/output_projection_cte.py", "output_projection_cte",
              (bf16(1, 4, 128, 256), bf16(512, 512, scale=0.1), bf16(1, 512)), projected),
    Published(CORE + "qkv/qkv.py", "qkv", (bf16(1, 512, 512), bf16(512, 768, scale=0.1)), lambda x, w: x @ w),
    Published(EXPERIMENTAL + "conv/conv1d.py", "conv1d",
              (bf16(1, 256, 200), bf16(5, 256, 128, scale=0.1), bf16(128), 2, (2, 2)), convolved),
    Published(EXPERIMENTAL + "loss/cross_entropy.py", "cross_entropy_forward",
              (bf16(64, 4096), RNG.integers(0, 4096, 64).astype(np.int32), 32, 2048), losses),
    Published(EXPERIMENTAL + "benchmark/find_nonzero_indices_with_count.py", "find_nonzero_indices_with_count",
              (SPARSE,), places, error=0),
    Published(EXPERIMENTAL + "dynamic_shapes/dynamic_elementwise_add.py", "dynamic_elementwise_add",
              (bf16(256, 512), bf16(256, 512), np.array([[1]], np.int32)), added),
)  # fmt: skip
"""All kernels of the library that are tested."""

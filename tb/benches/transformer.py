"""Attention, and what a transformer makes of it, a TEST each: from HBM to HBM on the core, and in float64."""

import numpy as np

from neuroncore_rtl.kernels.library.attention import Head, attention
from neuroncore_rtl.kernels.library.transfer import load, store
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.tb.benches.layers import layer_bench
from neuroncore_rtl.tb.benches.workbench import CoreWorkbench, References
from neuroncore_rtl.tb.sim.settings import Settings, integer, switch

__all__ = ["BENCHES", "attended"]


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool = False) -> np.ndarray:
    """Return softmax(q k.T / sqrt(width)) v in float64; if causal, the last query sees all keys, others fewer."""
    scores = q @ k.T / np.sqrt(q.shape[1])
    if causal:
        scores[~np.tri(*scores.shape, len(k) - len(q), dtype=bool)] = -np.inf
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True) @ v


def _attention(bench: CoreWorkbench, settings: Settings, rng: np.random.Generator) -> References:
    queries, keys, width, program = settings.seq, settings.keys or settings.seq, settings.dim, bench.program
    y, heads, exact = bench.room("y", (queries, settings.heads * width), BF16), [], []
    for number in range(settings.heads):
        q_t, q = bench.place(f"q_t{number}", rng.normal(size=(width, queries)), BF16)
        k_t, k = bench.place(f"k_t{number}", rng.normal(size=(width, keys)), BF16)
        v, values = bench.place(f"v{number}", rng.normal(size=(keys, width)), BF16)
        heads.append(Head(*(load(program, matrix) for matrix in (q_t, k_t, v))))
        exact.append(attended(q.T, k.T, values, bool(settings.causal)))
    store(program, y, attention(program, heads, causal=bool(settings.causal)).out)
    return {"y": (y, np.concatenate(exact, axis=1))}


BENCHES = (
    layer_bench(
        "attention",
        _attention,
        "scaled dot-product attention of any number of queries, keys and heads",
        integer("SEQ", 64, "queries", 1, 65536),
        integer("KEYS", None, "keys, as many as queries unless told", 1, 65536),
        integer("DIM", 32, "features of a head", 1, 65536),
        integer("HEADS", 2, "heads", 1, 1024),
        switch("CAUSAL", 0, "1 hides keys after a query's own, the last query's being the last key"),
    ),
)
"""The TESTs."""

"""Kernels whose tiles exceed PSUM and SBUF as written."""

import numpy as np
import pytest

from neuroncore_rtl.frontends.nki import run_nki
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Storage
from tests.frontends.nki.kernels import FIRST, write_kernel

CONFIG = Config(rows=4, columns=4, sbuf_bytes=1024, psum_words=32)
TOKENS = 48

TILES = "(N // P, N // F, nl.par_dim(P), F)"
WHOLE = "(nl.par_dim(P), N // P, N)"

SCORES = """
(P, N), F = q_t.shape, 16
q, k = nl.load(q_t), nl.load(k_t)
scores = nl.ndarray({shape}, dtype=nl.float32, buffer=nl.psum)
most = nl.full((P, 1), -1e9, dtype=nl.float32)
for i in nl.affine_range(N // P):
    for j in nl.affine_range(N // F):
        {place} = nisa.nc_matmul(q[:, nl.ds(i * P, P)], k[:, nl.ds(j * F, F)])
        most[...] = nl.maximum(most, nl.max({place}, axis=1, keepdims=True))
for i in nl.affine_range(N // P):
    for j in nl.affine_range(N // F):
        nl.store(out[nl.ds(i * P, P), nl.ds(j * F, F)], nl.subtract({place}, {less}))
"""
KEPT = "most"
"""The second loop needs the result of all rounds of the first, so no order avoids the spills."""
FREE = "1.0"


@pytest.mark.parametrize("less", [KEPT, FREE])
@pytest.mark.parametrize("shape, place", [(TILES, "scores[i, j]"), (WHOLE, "scores[:, i, nl.ds(j * F, F)]")])
@pytest.mark.parametrize("on", ["golden", pytest.param("rtl", marks=pytest.mark.slow)])
def test_scores_of_all_tokens_in_one_tensor_of_psum(tmp_path, rng, shape, place, less, on):
    body = SCORES.format(shape=shape, place=place, less=less)
    kernel = write_kernel(tmp_path, body, True, "q_t, k_t", out="(q_t.shape[1], q_t.shape[1]), nl.float32")
    q_t, k_t = (rng.integers(-8, 8, (4, TOKENS)).astype(np.float32) for _ in "qk")
    done = run_nki(kernel, q_t, k_t, preset=CONFIG, on=on)
    scores = q_t.T @ k_t
    lanes = scores.reshape(TOKENS // 4, 4, TOKENS).max((0, 2))
    expected = scores - (np.tile(lanes, TOKENS // 4)[:, np.newaxis] if less == KEPT else 1)
    assert np.array_equal(done.outputs[0], expected)
    spills = done.run.image.spills
    if less == FREE:
        assert not spills
    else:
        assert {one.to for one in spills} == {Storage.PSUM, Storage.SBUF, Storage.HBM}
        assert {one.source.user.number for one in spills} == {FIRST + 7}
        assert "spilled" in str(done.run)

"""Partially written tiles: zeros only in the remainder."""

import numpy as np
import pytest

from tests.frontends.nki.kernels import run_kernel, write_kernel

X = np.random.default_rng(3).normal(size=(3, 20)).astype(np.float32)


@pytest.mark.parametrize("part", ("0:3, 0:20", "1:4, 0:20", "0:3, 4:24", "0:3, 0:40:2"))
def test_the_rest_of_a_tile_is_zero(tmp_path, part):
    kernel = write_kernel(tmp_path, f"""
tile = nl.ndarray((4, 40), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile[{part}], src=x)
nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
""", out="(4, 40), x.dtype", stores="tile")  # fmt: skip
    run = run_kernel(kernel, X)
    expected = np.ones((4, 40), np.float32)
    expected[eval(f"np.s_[{part}]")] += X
    assert np.array_equal(run.outputs[0], expected)
    assert run.inserted["zeros where nothing was written"] == 1


def test_a_tile_that_is_read_where_it_was_written_stays_alone(tmp_path):
    kernel = write_kernel(tmp_path, """
tile = nl.ndarray((4, 40), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile[0:3, 0:10], src=x[:, 0:10])
nisa.dma_copy(dst=tile[0:3, 10:20], src=x[:, 10:20])
nisa.tensor_scalar(dst=tile[0:3, 20:40], data=tile[0:3, 0:20], op0=nl.add, operand0=1.0)
""", out="(3, 20), x.dtype", stores="tile[0:3, 20:40]")  # fmt: skip
    run = run_kernel(kernel, X)
    assert np.array_equal(run.outputs[0], X + 1) and not run.inserted


def test_sums_begin_with_a_tile_of_psum_that_is_read_whole(tmp_path):
    kernel = write_kernel(tmp_path, """
sums = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.psum)
tile = nl.load(x)
for _ in range(2):
    nisa.nc_matmul(dst=sums[0:4, 0:4], stationary=tile[:, 0:4], moving=tile[:, 4:8])
result = nl.ndarray((4, 8), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_copy(dst=result, src=sums)
""", out="(4, 8), x.dtype", stores="result")  # fmt: skip
    run = run_kernel(kernel, X)
    product = 2 * X[:, :4].T.astype(np.float64) @ X[:, 4:8]
    assert np.allclose(run.outputs[0], np.pad(product, ((0, 0), (0, 4))), atol=1e-5)
    assert run.inserted["zeros where nothing was written"] == 1


def test_what_a_predicated_copy_leaves_is_zero(tmp_path):
    kernel = write_kernel(tmp_path, """
mask = nl.ndarray((3, 20), dtype=nl.uint8, buffer=nl.sbuf)
kept = nl.ndarray((3, 20), dtype=x.dtype, buffer=nl.sbuf)
tile = nl.load(x)
nisa.tensor_scalar(dst=mask, data=tile, op0=nl.greater, operand0=0.0)
nisa.tensor_copy(dst=kept[:, 0:10], src=tile[:, 0:10])
nisa.tensor_copy_predicated(dst=kept, src=tile, predicate=mask)
""", out="(3, 20), x.dtype", stores="kept")  # fmt: skip
    run = run_kernel(kernel, X)
    assert np.array_equal(run.outputs[0], np.where((X > 0) | (np.arange(20) < 10), X, 0))


def test_a_tile_that_nothing_was_written_to_is_refused(tmp_path):
    kernel = write_kernel(tmp_path, """
tile = nl.ndarray((4, 40), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
""", out="(4, 40), x.dtype", stores="tile")  # fmt: skip
    with pytest.raises(ValueError, match="must be written before TENSOR_SCALAR reads it .*kernel.py:10"):
        run_kernel(kernel, X)


UNUSED = """
tile = nl.ndarray((3, 20), dtype=x.dtype, buffer=nl.sbuf)
unused = nl.ndarray((3, 20), dtype=x.dtype, buffer=nl.sbuf)
result = nl.load(x)
nisa.tensor_scalar(dst=unused, data=tile, op0=nl.add, operand0=1.0)
"""
"""AWS's kernel `allocated_fused_rms_norm_qkv` copies sums that it has not computed, and masks the store."""


WEIGHTS = "nisa.nc_matmul(dst=nl.zeros((3, 20), nl.float32, nl.psum), stationary=tile[:, 0:3], moving=result)"
REFUSED = {
    "stored": (UNUSED, "unused"),
    "stored tile": (UNUSED, "tile"),
    "nothing loaded": (UNUSED.replace("result = nl.load(x)\n", ""), "tile"),
    "weights": (UNUSED + WEIGHTS, "result"),
    "sums": (UNUSED + "nisa.activation(dst=unused, op=nl.exp, data=tile)", "result"),
}
"""Kernels, and the tile that each stores. Weights and sums of activations stay in an engine."""


def test_what_nothing_reads_may_come_from_a_tile_without_a_write(tmp_path):
    later = "nisa.tensor_copy(dst=tile, src=result)\nnisa.tensor_copy(dst=result, src=tile)"
    for lines in (UNUSED, UNUSED + later):
        run = run_kernel(write_kernel(tmp_path, lines, out="(3, 20), x.dtype", stores="result"), X)
        assert np.array_equal(run.outputs[0], X)
        assert run.inserted["zeros where nothing was written"] == 1


@pytest.mark.parametrize("case", REFUSED)
def test_other_results_may_not(tmp_path, case):
    lines, stored = REFUSED[case]
    kernel = write_kernel(tmp_path, lines, out="(3, 20), x.dtype", stores=stored)
    with pytest.raises(ValueError, match="must be written before [A-Z_]+ reads it"):
        run_kernel(kernel, X)

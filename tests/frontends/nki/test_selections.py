"""`nl.where` with masks of index expressions; results assigned to HBM, or written in part; against numpy."""

import numpy as np
import pytest

from tests.frontends.nki.kernels import result, run_kernel, write_kernel

RNG = np.random.default_rng(53)
X, Y = RNG.normal(size=(2, 4, 12)).astype(np.float32)
P, F = np.mgrid[0:4, 0:12]


@pytest.mark.parametrize(
    "condition",
    ["p * 3 <= f", "(p < 3) & (f > 2)", "(f != 5) & (p * 2 < f) & (f < 11)", "f >= 0", "f > 11", "p == 2", "p * 5 > f"],
)
@pytest.mark.parametrize(("x", "y"), [("a", "b"), ("a", "0.5"), ("-2.0", "b"), ("b[:, 0:1]", "a")])
def test_a_mask_of_any_shape_chooses(tmp_path, condition, x, y):
    kernel = write_kernel(tmp_path, f"""
a, b = nl.load(x), nl.load(y)
p, f = nl.mgrid[0:4, 0:12]
c = nl.where({condition}, {x}, {y})
""", older=True, parameters="x, y", out="x.shape, x.dtype", stores="c")  # fmt: skip
    names = {"a": X, "b": Y}
    expected = np.where(eval(condition, {"p": P, "f": F}), eval(x, names), eval(y, names))
    assert np.array_equal(result(kernel, X, Y), expected.astype(np.float32))


def test_a_result_is_stored_in_hbm_by_an_assignment(tmp_path):
    kernel = write_kernel(tmp_path, """
a, b = nl.load(x), nl.load(y)
out[:, 0:12] = nl.multiply(a, b)
kept = nl.exp(a[:, 0:4])
out[:, 12:16] = kept
out[:, 16:20] = nl.add(kept, 1.0)
""", parameters="x, y", out="(4, 20), x.dtype")  # fmt: skip
    powers = np.exp(X[:, :4])
    assert np.allclose(result(kernel, X, Y), np.concatenate([X * Y, powers, powers + 1], 1), rtol=1e-6)


def test_results_that_are_written_in_part_are_counted(tmp_path):
    body = """
for p in nl.affine_range(2):
    nl.store(out[p * 2 : p * 2 + 2, 0:12], nl.load(x[p * 2 : p * 2 + 2, 0:12]))
    nl.store(out[p * 2 : p * 2 + 2, 12:24], nl.load(x[p * 2 : p * 2 + 2, 12:24]))
"""
    told, x = "zeros in a result, where nothing was written", np.ones((4, 24), np.float32)
    whole = run_kernel(write_kernel(tmp_path, body, older=True, out="x.shape, x.dtype"), x)
    assert np.array_equal(whole.outputs[0], x) and told not in whole.inserted
    part = run_kernel(write_kernel(tmp_path, f"{body}    return out\n", older=True, out="x.shape, x.dtype"), x)
    assert part.inserted[told] == 1 and part.outputs[0].sum() == 48

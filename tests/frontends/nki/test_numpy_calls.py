"""numpy's functions of tiles: element-wise ones are those of `nl`, others are refused with a replacement."""

import numpy as np
import pytest

from tests.frontends.nki.kernels import FIRST, results_of

RNG = np.random.default_rng(17)
X = (RNG.integers(1, 40, (3, 3)) / 8).astype(np.float32)


def computed(tmp_path, *expressions: str) -> list[np.ndarray]:
    return results_of(tmp_path, "a = nl.load(x)", expressions, X)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("a - np.max(a)", "np.max cannot compute with tensor .*: use nl.max"),
        ("a - np.amin(a, axis=1)", "np.(amin|min) .* use nl.min"),
        ("np.sum(a) * 1", "np.sum .* use nl.sum"),
        ("np.prod(a)", "np.prod .* use nl.prod"),
        ("np.add.reduce(a)", "np.add.reduce .* use nl.sum"),
        ("np.mean(a)", "np.mean .* use nl.mean"),
        ("np.ptp(a)", "np.ptp .* use nl.max and nl.min"),
        ("np.dot(a, a)", "np.dot .* use nl.matmul"),
        ("np.matmul(a, a)", "np.matmul .* use nl.matmul"),
        ("np.einsum('ij,jk', a, a)", "np.einsum .* use nl.matmul"),
        ("np.eye(3) @ a", "np.matmul .* use nl.matmul"),
        ("a @ a", "has no __matmul__ while a kernel is recorded: use nl.matmul"),
        ("a // 2", "has no __floordiv__ .*: use nl.floor of nl.divide"),
        ("divmod(a, 2)", "has no __divmod__ .*: use nl.floor of nl.divide"),
        ("np.stack([a, a])", "np.stack .* use assignments"),
        ("np.where(a > 1, a, 0)", "np.where .* use nl.where"),
        ("np.linalg.norm(a)", "np.linalg.norm .* use the functions of nl"),
        ("np.cumsum(a)", "np.cumsum .* use the functions of nl"),
        ("np.hypot(a, a)", "np.hypot .* use the functions of nl"),
        ("np.add(a, a, where=True)", "np.add with where= cannot compute"),
        ("float(a)", "a number of Python must be known while the kernel is recorded"),
        ("round(a)", "a number of Python must be known while the kernel is recorded"),
        ("a if a > 1 else 1", "a condition must be known .* use nl.where, nl.minimum, nl.maximum"),
        ("max(a, 1)", "a condition must be known .* use nl.where, nl.minimum, nl.maximum"),
        ("np.asarray(a).max()", "numpy cannot read the values"),
        ("np.array([a, a])[0]", "numpy cannot read the values"),
        ("a * np.ones((3, 3))", r"an array of numpy must be an argument .* of shape \(3, 3\)"),
        ("np.ones((3, 3)) * a", r"an array of numpy must be an argument .* of shape \(3, 3\)"),
        ("nl.load(np.ones((3, 3)))", r"an array of numpy must be an argument .* of shape \(3, 3\)"),
        ("nl.load([1, 2])", r"src must be a tensor, not \[1, 2\]"),
        ("nl.sum([1, 2], axis=1)", r"x must be a tensor, not \[1, 2\]"),
        ("len(a)", r"has no __len__ .*: use tile.shape\[0\]"),
        ("round(a, 1)", "a number of Python must be known while the kernel is recorded"),
        ("np.ones(2)[a]", "a number of Python must be known|numpy cannot read"),
    ],
)
def test_a_function_of_numpy_that_is_not_elementwise_is_refused(tmp_path, expression, message):
    with pytest.raises(ValueError, match=message) as refused:
        computed(tmp_path, expression)
    assert str(refused.value).endswith(f"(kernel.py:{FIRST + 2})")


ELEMENTWISE = (
    "np.add(a, a)", "np.subtract(a, 1)", "np.multiply(2.0, a)", "np.true_divide(a, 2)", "np.maximum(a, 2)",
    "np.minimum(a, a * a)", "np.mod(a, 2)", "np.remainder(a, 2)", "np.fmod(a, 2)", "np.abs(1 - a)", "abs(1 - a)",
    "np.float32(2) * a", "a * np.float32(2)", "np.float32(2) - a", "np.int64(2) - a", "a * np.ones(1)",
    "np.greater(a, 2)", "np.float32(2) > a", "np.logical_not(a > 2)", "np.floor(a)", "np.ceil(a)", "np.negative(a)",
    "a + np.ndim(a) + np.size(a) + np.shape(a)[0]", "np.array([a, 2 * a], dtype=object)[1]",
)  # fmt: skip


def test_elementwise_functions_of_numpy_are_those_of_nl(tmp_path):
    for expression, found in zip(ELEMENTWISE, computed(tmp_path, *ELEMENTWISE), strict=True):
        expected = eval(expression, {"a": X, "np": np})
        assert np.array_equal(found, np.float32(expected)), expression

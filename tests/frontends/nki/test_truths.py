"""Truth of index expressions and masks: one value at every index is a truth of Python, any other is refused."""

import numpy as np
import pytest

from tests.frontends.nki.kernels import FIRST, result, results_of, run_kernel, write_kernel

X = np.arange(1, 33, dtype=np.float32).reshape(4, 8)
ROWS, COLUMNS = np.arange(4)[:, np.newaxis], np.arange(8)[np.newaxis]


def masked(tmp_path, *masks: str) -> list[np.ndarray]:
    """Return what each of the masks selects."""
    head = "y = nl.load(x, dtype=nl.int32)\ni, j = nl.arange(4)[:, None], nl.arange(8)[None, :]"
    return results_of(tmp_path, head, [f"nl.load(x, mask={mask})" for mask in masks], X)


def selected(mask: str) -> np.ndarray:
    """Return what numpy selects by the same expression of arrays."""
    return np.where(eval(mask, {"i": ROWS, "j": COLUMNS, "np": np}), X, 0)


@pytest.mark.parametrize(
    "mask",
    [
        *("(2 <= j) and (j < 5)", "(j < 3) or (j < 5)", "not (j < 5)", "2 <= j < 5", "j < 5 if j < 3 else j > 3"),
        *("min(j, 3) < 2", "max(j, 3) < 5", "sorted([j, 7 - j])[0] < 2", "j in [3]", "any([j < 5])", "j and j < 5"),
        *("(i < 2) and (j < 5)", "i < j < 5", "bool(j < 3)"),
    ],
)
def test_a_condition_that_depends_on_the_index_is_refused(tmp_path, mask):
    with pytest.raises(ValueError, match="cannot be a condition of Python.*mask") as refused:
        masked(tmp_path, mask)
    assert str(refused.value).endswith(f"(kernel.py:{FIRST + 3})")
    with pytest.raises(ValueError, match="truth value of an array"):
        selected(mask)


TRUTHS = {
    "0 <= j < 5": "j < 5", "(j < 8) and (j < 5)": "j < 5", "(j > 7) or (j < 5)": "j < 5", "max(j, 0) < 3": "j < 3",
    "min(j, 9) < 3": "j < 3", "not (j > 7)": "j < 8", "sorted([j + 1, j])[0] < 2": "j < 2",
    "j < 5 if i >= 0 else j < 3": "j < 5", "abs(j - 8) < 3": "abs(j - 8) < 3", "abs(j + 1) < 3": "abs(j + 1) < 3",
    "j < 5 if j != None and not (j == None) and (j < 2) != None else j < 3": "j < 5",
}  # fmt: skip
"""Conditions that are the same at every index, and masks that they equal."""

MASKS = (
    "~(j < 5)", "~(j <= 5)", "~(5 > j)", "~(5 <= j)", "~~(j < 5)", "~(j >= 0)", "~(j < 0)", "(j < 5) ^ True",
    "j < 4.5", "j <= 4.5", "j > 4.5", "j >= 4.5", "4.5 > j", "4.0 >= j", "j < 5.0", "j > -0.5", "j == 2.5",
    "j != 2.5", "np.int64(5) > j", "np.float32(4.5) > j", "np.less(j, 5)", "np.logical_and(j < 5, i < 2)",
    "j == 3", "2 * j == 3", "(i == 2) & (j != 8)", "j == 9", "~(j != 3)", "3 == j", "(j == 0) & (j < 0)",
    "(j < 5) & np.True_", "np.False_ | (j < 5)", "~(j < 5) & ~(i < 2)", "j < np.float64(2.5)", "-2 * j + 3 <= -6.5",
)  # fmt: skip


def drawn_mask(rng) -> str:
    parts = []
    for axis, count in (("i", 4), ("j", 8)):
        bound = rng.choice([rng.integers(-1, count + 2), np.round(rng.uniform(-1, count + 1), 2)])
        sides = [f"{rng.choice([-2, -1, 1, 2])} * {axis} + {rng.integers(-4, 5)}", f"{bound}"]
        rng.shuffle(sides)
        parts.append(f"{rng.choice(['', '~'])}({sides[0]} {rng.choice(['<', '<=', '>', '>='])} {sides[1]})")
    return " & ".join(parts)


def test_masks_and_conditions_that_are_truths_are_those_of_numpy(tmp_path):
    rng = np.random.default_rng(11)
    pairs = {**TRUTHS, **{mask: mask for mask in (*MASKS, *(drawn_mask(rng) for _ in range(24)))}}
    for (mask, same), found in zip(pairs.items(), masked(tmp_path, *pairs), strict=True):
        assert np.array_equal(found, selected(same)), mask


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ("[j < 5]", r"mask must be a comparison of index expressions, not \[a mask"),
        ("3", "mask must be a comparison of index expressions, not 3"),
        ("~((j < 5) & (i < 2))", "a mask must be a rectangle: conditions joined by &, not by |"),
        ("(j < 5) ^ (j < 3)", "a mask must be a rectangle: conditions joined by &, not by |"),
        ("(j < 5) == (j < 3)", r"masks must be joined by &, \| and \^, not compared with a mask"),
        ("(j < 5) & 3", "a mask must be joined with a mask or a bool, not with 3"),
        ("j < 5 & i", "an index must be affine.*comparisons joined by & need parentheses"),
        ("j < float('inf')", "must be compared with a finite number or another index expression, not inf"),
        ("j < 'a'", "must be compared with a finite number or another index expression, not 'a'"),
        ("y[0:1, 0:1] + j < 5", "an index in memory is known only when the kernel runs"),
        ("(j + y[0:1, 0:1]) == 5", "an index in memory is known only when the kernel runs"),
        ("j < 5 if j + y[0:1, 0:1] else True", "an index in memory is known only when the kernel runs"),
        ("j != 3", "a mask must be a rectangle: one dimension in each condition"),
        ("nl.arange(5)[None, :] < 3", r"a mask must broadcast to the shape \(4, 8\), not have the shape \(1, 5\)"),
        ("nl.arange(9)[:, None, None] < 3", r"a mask must broadcast to the shape \(4, 8\)"),
        ("j == i", "a mask must be a rectangle: one dimension in each condition"),
        ("j + np.arange(8) < 5", r"an array of numpy must be an argument .* of shape \(8,\)"),
        ("np.arange(8) < j", r"an array of numpy must be an argument .* of shape \(8,\)"),
        ("(j < 5) & np.ones(8, bool)", "a mask must be joined with a mask or a bool, not with array"),
        ("np.ones(8, bool) & (j < 5)", r"an array of numpy must be an argument .* of shape \(8,\)"),
        ("j < x", "must be compared with a finite number or another index expression, not tensor x"),
        ("np.maximum(j, 3) < 5", "np.maximum cannot compute with an index expression from 0 to 7"),
        ("abs(j - 3) < 2", "cannot be a condition of Python"),
        ("np.max(j) < 5", "np.max cannot compute with an index expression from 0 to 7"),
    ],
)
def test_other_masks_are_refused(tmp_path, mask, message):
    with pytest.raises(ValueError, match=message) as refused:
        masked(tmp_path, mask)
    assert str(refused.value).endswith(f"(kernel.py:{FIRST + 3})")


@pytest.mark.parametrize("target", ["golden", "rtl"])
@pytest.mark.parametrize("function", ["mean", "var"])
def test_a_mean_counts_the_elements_of_its_mask(tmp_path, function, target):
    body = f"""
i, j = nl.arange(4)[:, None], nl.arange(8)[None, :]
tile = nl.load(x)
masked = nl.{function}(tile, axis=1, mask=(j < 5) & (i < 3))
part = nl.{function}(tile[:, 0:5], axis=1)
row = nl.{function}(tile, axis=1, keepdims=True, mask=(j > 2.5) & ~(j > 6))
none = nl.{function}(tile, axis=1, mask=j < 0)
"""
    kernel = write_kernel(tmp_path, body, older=True, stores="masked, part, row, none")
    x = np.array([[1, 2, 3, 4, 5, 100, 100, 100]], np.float32).repeat(4, 0)
    masked, part, row, none = run_kernel(kernel, x, on=target).outputs
    assert masked.ravel().tolist() == [*[{"mean": 3.0, "var": 2.0}[function]] * 3, 0]
    assert np.array_equal(part[:3], masked[:3]) and not none.any()
    assert np.allclose(row.ravel(), getattr(np, function)(x[:, 3:7], axis=1), rtol=1e-6)


def test_means_of_random_masks_are_those_of_numpy(tmp_path):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(4, 3, 6)).astype(np.float32)
    for _ in range(6):
        (first, rows), (start, end) = (sorted(rng.choice(n + 1, 2, replace=False)) for n in (3, 6))
        axes = rng.choice(["1", "2", "(1, 2)"])
        mask = f"(i >= {first}) & (i < {rows}) & (j >= {start}) & (j < {end})"
        part = x[:, first:rows, start:end]
        for function in ("mean", "var"):
            kernel = write_kernel(tmp_path, f"""
i, j = nl.arange(3)[None, :, None], nl.arange(6)[None, None, :]
found = nl.{function}(nl.load(x), axis={axes}, keepdims=True, mask={mask})
""", older=True, stores="found")  # fmt: skip
            found, expected = result(kernel, x), getattr(np, function)(part, axis=eval(axes), keepdims=True)
            own = slice(first, rows), slice(start, end)
            kept = [slice(0, 1) if n == 1 else part for n, part in zip(found.shape[1:], own, strict=True)]
            assert np.allclose(found[:, *kept], expected, rtol=1e-5, atol=1e-6), (function, axes, mask)
            assert np.count_nonzero(found) <= expected.size


def test_softmax_and_norms_are_over_what_a_mask_selects(tmp_path):
    kernel = write_kernel(tmp_path, """
i, j = nl.arange(4)[:, None], nl.arange(8)[None, :]
tile, mask = nl.load(x), (j >= 2) & (j < 7) & (i < 3)
soft = nl.softmax(tile, axis=1, mask=mask)
normed = nl.rms_norm(tile, nl.ones((4, 8), nl.float32), axis=1, n=5, mask=mask)
least, most, total, product = (
    function(tile, axis=1, keepdims=True, mask=mask) for function in (nl.min, nl.max, nl.sum, nl.prod)
)
""", older=True, stores="soft, normed, least, most, total, product")  # fmt: skip
    x = np.random.default_rng(8).normal(size=(4, 8)).astype(np.float32)
    part, powers = x[:3, 2:7], np.exp(x[:3, 2:7])
    wanted = powers / powers.sum(1, keepdims=True), part / np.sqrt((part**2).mean(1, keepdims=True) + 1e-6)
    found = run_kernel(kernel, x).outputs
    for one, expected in zip(found, wanted, strict=False):
        whole = np.zeros((4, 8))
        whole[:3, 2:7] = expected
        assert np.allclose(one, whole, rtol=1e-4, atol=1e-6)
    for one, function in zip(found[2:], (np.min, np.max, np.sum, np.prod), strict=True):
        assert np.allclose(one[:3], function(part, axis=1, keepdims=True), rtol=1e-5) and not one[3]


def test_missing_dimensions_of_a_mask_are_the_first_or_the_last_ones(tmp_path):
    kernel = write_kernel(tmp_path, """
i, j = nl.arange(4)[:, None], nl.arange(8)[None, :]
tile = nl.load(x)
last = nl.exp(tile, mask=(i < 3) & (nl.arange(2)[None, :, None] < 1))
first = nl.exp(tile, mask=j < 5)
""", older=True, stores="last, first")  # fmt: skip
    x = np.zeros((4, 2, 8), np.float32)
    last, first = (one.reshape(x.shape) for one in run_kernel(kernel, x).outputs)
    assert np.array_equal(last, (np.indices(x.shape)[0] < 3) & (np.indices(x.shape)[1] < 1))
    assert np.array_equal(first, np.indices(x.shape)[2] < 5)

"""Rules of integers, truth values, signed zeros, NaN, ties and numbers beyond a type, drawn at random."""

from pathlib import Path

import numpy as np
import pytest

from tests.frontends.nki.kernels import result, run_kernel, store_kernel, write_kernel
from tests.frontends.nki.semantics import PAGE, ROWS, Example, Row, updated_page

AT_ONCE = 20
"""Examples in one kernel."""


def outputs_of(folder: Path, examples: list[Example], on: str) -> list[np.ndarray]:
    lines, arrays = [], []
    for number, example in enumerate(examples):
        text = example.expression.replace("x0", f"x{len(arrays)}")
        for name, array in zip("ab", example.arrays, strict=False):
            lines.append(f"{name} = nl.load(x{len(arrays)})")
            arrays.append(array)
        lines += [
            f"found = {text}",
            f"assert found.dtype == nl.{example.dtype}, found.dtype",
            f"out{number} = nl.ndarray(found.shape, dtype=found.dtype, buffer=nl.shared_hbm)",
            f"nl.store(out{number}, found)",
        ]
    lines.append(f"return {', '.join(f'out{number}' for number in range(len(examples)))}")
    kernel = write_kernel(folder, "\n".join(lines), True, ", ".join(f"x{n}" for n in range(len(arrays))))
    done = run_kernel(kernel, *arrays, preset="small", on=on)
    assert done.run.bit_exact is not False
    return done.outputs


def check(folder: Path, examples: list[Example], on: str = "golden") -> None:
    for example, found in zip(examples, outputs_of(folder, examples, on), strict=True):
        expected = example.expected
        if expected.dtype == object:
            right = found.astype(object) == expected
        else:
            found = found.astype(np.float64)
            right = (found == expected) & (np.signbit(found) == np.signbit(expected))
            right |= np.isnan(found) & np.isnan(expected)
        if not right.all():
            at = tuple(np.argwhere(~right)[0])
            near = [array[at] if array.shape == found.shape else array for array in example.arrays]
            raise AssertionError(f"{example.expression} of {near!r} gives {found[at]}, not {expected[at]}")


def draws(row: Row, seed: int) -> list[Example]:
    rng = np.random.default_rng((seed, *row.about.encode()))
    return [row.draw(rng) for _ in range(AT_ONCE)]


CASES = [pytest.param(row, id=row.draw.__name__.strip("_")) for row in ROWS]


@pytest.mark.parametrize("row", CASES)
def test_random_examples_have_the_result_of_the_table(tmp_path, row):
    check(tmp_path, draws(row, 0))


@pytest.mark.slow
@pytest.mark.parametrize("row", CASES)
def test_more_examples_have_the_result_of_the_table(tmp_path, row):
    for seed in range(1, 12):
        check(tmp_path, draws(row, seed))


@pytest.mark.slow
def test_the_rtl_has_the_results_of_the_table(tmp_path):
    check(tmp_path, [draws(row, 0)[0] for row in ROWS], on="rtl")


def test_the_page_has_the_table():
    text = PAGE.read_text()
    assert text == updated_page(text), "run python -m tests.frontends.nki.semantics"


X = np.array([[-(2**31), -5, -1, 0, 1, 5, 2**31 - 1, 7]], np.int32)
U = np.array([[0, 1, 5, 2**31, 2**31 + 5, 2**32 - 1, 7, 6]], np.uint32)


@pytest.mark.parametrize(
    ("expression", "rule"),
    [
        ("nl.full(x.shape, 2**31, nl.int32)", "from -2147483648 to 2147483647 .*, not 2147483648"),
        ("nl.full(x.shape, -1, nl.uint32)", "from 0 to 4294967295 .*, not -1"),
        ("nl.full(x.shape, 300, nl.uint8)", "from 0 to 255 .*, not 300"),
        ("nl.where(nl.load(x), nl.load(x), 2**31)", "from -2147483648 to 2147483647 .*, not 2147483648"),
        ("nl.add(nl.load(x), 2**33)", "must be from -2147483648 to 4294967295 beside integers, not 8589934592"),
        ("nl.add(nl.load(x), 2**31, dtype=nl.int8)", "must be from -2147483648 to 2147483647 .*, not 2147483648"),
        (
            "nisa.tensor_tensor_scan(nl.load(x), nl.copy(nl.load(x), dtype=nl.uint32), 0, nl.add, nl.maximum)",
            "integers of a scan must be of one sign",
        ),
    ],
)
def test_numbers_that_a_type_does_not_hold_are_refused(tmp_path, expression, rule):
    with pytest.raises(ValueError, match=rf"{rule}.*kernel.py:\d+"):
        result(store_kernel(tmp_path, expression), X)


def test_selections_of_both_signs_have_the_values_of_their_operands(tmp_path):
    column = np.array([[-5]], np.int32)
    kernel = write_kernel(tmp_path, """
a, b, c = nl.load(x), nl.load(y), nl.load(z)
one = nl.where(nl.less(b, 8), b, c, dtype=nl.int32)
two = nl.negative(nl.copy(b), dtype=nl.int32)
three = nisa.tensor_reduce(nl.maximum, b, axis=1, negate=True, dtype=nl.int32)
""", True, "x, y, z", stores="one, two, three")  # fmt: skip
    kernel_outputs = run_kernel(kernel, X, U, column, preset="small").outputs
    small = U.astype(np.int64)
    assert np.array_equal(kernel_outputs[0], np.where(small < 8, small, -5))
    assert np.array_equal(kernel_outputs[1], (-small).astype(np.int32))
    assert kernel_outputs[2] == (-(2**32 - 1) + 2**32) % 2**32


def test_a_part_and_a_stored_tensor_of_bool_get_truth_values(tmp_path):
    kernel = write_kernel(tmp_path, """
a = nl.load(x)
part = nl.full(x.shape, True, nl.bool_)
nisa.tensor_copy_predicated(dst=part, src=nl.copy(a, dtype=nl.uint8), predicate=nl.less(a, 6))
out = nl.ndarray(x.shape, dtype=nl.bool_, buffer=nl.shared_hbm)
other = nl.ndarray(x.shape, dtype=nl.bool_, buffer=nl.shared_hbm)
nl.store(out, a)
nl.store(other, part)
return out, other
""", True)  # fmt: skip
    whole, part = run_kernel(kernel, X, preset="small").outputs
    assert np.array_equal(whole, X != 0)
    assert np.array_equal(part, np.where(X < 6, X > 0, 1))


def test_a_part_of_bool_refuses_other_values(tmp_path):
    kernel = write_kernel(tmp_path, """
part = nl.full(x.shape, True, nl.bool_)
nisa.tensor_copy_predicated(dst=part, src=nl.load(x), predicate=nl.load(x))
return x
""", True)  # fmt: skip
    with pytest.raises(ValueError, match="a part of a bool_ tensor must get bool_ values or 0 and 1, not int32"):
        result(kernel, X)


def test_a_fraction_after_a_product_compares_fractions(tmp_path):
    kernel = store_kernel(
        tmp_path, "nisa.tensor_scalar(nl.load(x), op0=nl.multiply, operand0=0.1, op1=nl.greater, operand1=0.6)"
    )
    assert np.array_equal(result(kernel, X), X * 0.1 > 0.6)


def test_a_number_may_be_subtracted_from_a_position(tmp_path):
    kernel = write_kernel(tmp_path, """
tile = nl.load(x)
positions = nisa.nc_find_index8(data=tile, vals=nisa.max8(src=tile))
nl.store(out, nl.subtract(positions, 1, dtype=nl.int32))
""", True, out="(1, 8), nl.int32")  # fmt: skip
    assert np.array_equal(result(kernel, np.arange(8, 0, -1, dtype=np.float32)[None]), np.arange(-1, 7)[None])


def test_a_maximum_of_selected_integers_leaves_them_exact(tmp_path):
    kernel = write_kernel(tmp_path, """
tile, most = nl.load(x), nl.ndarray((1, 1), nl.float32, buffer=nl.sbuf)
chosen = nl.ndarray(x.shape, nl.int32, buffer=nl.sbuf)
nisa.select_reduce(dst=chosen, predicate=nl.less(tile, 6), on_true=tile, on_false=16777217, reduce_res=most,
                   reduce_cmd=nisa.reduce_cmd.reset_reduce)
""", True, stores="chosen, most")  # fmt: skip
    chosen, most = run_kernel(kernel, X, preset="small").outputs
    assert np.array_equal(chosen, np.where(X < 6, X, 16777217)) and most == 16777216

"""Activation functions against numpy, scipy and mpmath."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from neuroncore_rtl.bench import activation as bench
from neuroncore_rtl.golden.arith import round_fp32
from neuroncore_rtl.golden.scalar import activate
from neuroncore_rtl.spec.formats import BF16
from neuroncore_rtl.spec.functions import FUNCTIONS, function_named, generate, layout, load_tables
from neuroncore_rtl.tb.check.oracles import accuracy, compare
from neuroncore_rtl.tb.check.oracles.accuracy import CROSSINGS, bf16_values, borders, dense, last_place
from neuroncore_rtl.tb.check.oracles.functions import ALPHA, exact, reference
from tests.oracles.datapath import datapath
from tests.oracles.words import words

SEED = 7

FINE = ("exp", "ln", "sqrt", "rsqrt", "reciprocal")
POSITIVE = ("ln", "sqrt", "rsqrt")
ODD = ("identity", "sign", "tanh", "erf", "sin", "reciprocal", "arctan")
EVEN = ("square", "abs", "cos", "dtanh", "dsigmoid", "derf")
INCREASING = (
    "identity", "relu", "exp", "ln", "sqrt", "tanh", "sigmoid", "erf", "softplus", "dsoftplus", "drelu", "arctan",
)  # fmt: skip

every_function = pytest.mark.parametrize("name", FUNCTIONS)


def in_domain(name: str, z: np.ndarray) -> np.ndarray:
    return z[z > 0] if name in POSITIVE else z[z != 0]


def bar(name: str) -> float:
    return 0.6 if name in FINE else 1.7


@every_function
@pytest.mark.parametrize("alpha", [ALPHA, -3e-42])
def test_results_are_those_of_the_definition_bit_for_bit(name, alpha, rng):
    z = np.concatenate([dense(name, rng, 300), rng.choice(borders(name), 100)])
    word = int(np.float32(alpha).view(np.uint32))
    theirs = np.array([datapath(FUNCTIONS[name], int(x), word) for x in words(z)], np.uint32)
    compare.assert_same_bits(words(activate(name, z, alpha)), theirs, words(z))


@every_function
def test_float64_forms_agree_with_mpmath(name, rng):
    z = rng.permutation(dense(name, rng, 300))[:60]
    theirs = np.array([float(exact(name, x)) for x in z])
    ours = reference(name, z)
    with np.errstate(invalid="ignore"):
        distance = np.abs(ours - theirs)
    agree = (distance <= 2.0**-16 * last_place(theirs)) | (ours == theirs) | (np.minimum(ours, theirs) > 1e39)
    if name in CROSSINGS:
        low, high = CROSSINGS[name]
        agree |= (z > low) & (z < high) & (distance < 2.0**-45)
    assert np.all(agree)


@every_function
def test_errors_stay_below_the_bar_on_random_values_and_borders(name):
    z = bench.sample(name)
    assert len(z) > 100_000
    actual = bench.measure_accuracy(name, z)
    assert actual.ulp <= bar(name)
    assert name in FINE or actual.relative <= 2.0**-22
    assert actual.subnormal_ulp is None or actual.subnormal_ulp <= 1
    assert (actual.absolute is not None) == (name in CROSSINGS)
    assert actual.absolute is None or actual.absolute <= 2.0**-26


@every_function
def test_every_bf16_value_is_within_the_bar_and_one_bf16_last_place(name):
    z = in_domain(name, bf16_values())
    assert len(z) > 32_000
    assert bench.measure_accuracy(name, z).ulp <= bar(name)
    y = round_fp32(words(activate(name, z, ALPHA)), BF16).astype(np.uint16).view(ml_dtypes.bfloat16).astype(np.float64)
    exactly = reference(name, z)
    with np.errstate(all="ignore"):
        overflow = np.isinf(y) & (np.abs(exactly) >= float(ml_dtypes.finfo(ml_dtypes.bfloat16).max))
        place = last_place(exactly) * 2.0**16
        assert np.all((np.abs(y - exactly) <= place) | overflow & (np.sign(y) == np.sign(exactly)))


@pytest.mark.slow
@every_function
def test_every_bf16_value_against_mpmath(name):
    z = in_domain(name, bf16_values())
    z = z[np.abs(z) < 2.0**40] if name not in ("sin", "cos") else z
    y = activate(name, z, ALPHA)
    low, high = CROSSINGS.get(name, (0, 0))
    for x, ours in zip(z, y, strict=True):
        theirs = exact(name, x)
        if low < x < high:
            assert abs(float(ours) - theirs) < 2.0**-26
        elif np.isinf(ours):
            assert abs(theirs) > float(np.finfo(np.float32).max)
        else:
            assert abs(float(ours) - theirs) <= 1.7 * float(last_place(float(theirs))), x


@pytest.mark.parametrize(
    ("name", "z", "y"),
    [
        ("exp", 0.0, 1.0), ("exp", 2.0**-30, 1.0), ("exp", -(2.0**-149), 1.0), ("tanh", 20.0, 1.0),
        ("tanh", -20.0, -1.0), ("erf", 5.0, 1.0), ("sigmoid", 20.0, 1.0), ("sigmoid", 2.0**-30, 0.5),
        ("ln", 1.0, 0.0), ("cos", 2.0**-20, 1.0),
        ("softplus", 50.0, 50.0), ("gelu", 10.0, 10.0), ("silu", 100.0, 100.0), ("gelu_tanh", 20.0, 20.0),
        ("dtanh", 2.0**-20, 1.0), ("dsigmoid", 2.0**-20, 0.25), ("dgelu", 20.0, 1.0), ("sign", 2.0**-149, 1.0),
        ("exp", 89.0, np.inf), ("exp", -104.0, 0.0), ("exp", 3e38, np.inf), ("exp", -3e38, 0.0),
        ("drelu", 2.0**-149, 1.0),
        ("gelu_sigmoid", 20.0, 20.0), ("mish", 20.0, 20.0), ("arctan", 2.0**-20, 2.0**-20), ("arctan", 3e38, np.pi / 2),
        ("arctan", -1.0, -np.pi / 4), ("arctan", 2.0**25, 1.5707963), ("arctan", 1e6, np.arctan(1e6)),
    ],
)  # fmt: skip
def test_exact_points(name, z, y):
    compare.assert_same_bits(activate(name, np.float32([z])), np.float32([y]), np.float32([z]))


def test_roots_of_squares_are_exact(rng):
    roots = rng.integers(1, 1 << 12, 10_000).astype(np.float32)
    compare.assert_same_bits(activate("sqrt", roots * roots), roots, roots)


@pytest.mark.parametrize("name", ["reciprocal", "rsqrt", "sqrt", "identity", "square"])
def test_powers_of_two_are_exact(name):
    exponents = np.arange(-149, 128) if name in ("reciprocal", "identity", "square") else np.arange(-148, 128, 2)
    z = np.ldexp(1.0, exponents).astype(np.float32)
    with np.errstate(all="ignore"):
        compare.assert_same_bits(activate(name, z), reference(name, z).astype(np.float32), z)


@pytest.mark.parametrize("name", ["identity", "square", "abs", "sign", "relu", "leaky_relu", "drelu", "dleaky_relu"])
@pytest.mark.parametrize("alpha", [ALPHA, 0.0, -0.0, -2.5, 1e-42, 3e38, np.inf, -np.inf, np.nan])
def test_functions_of_one_product_round_once(name, alpha, rng):
    special = np.float32([np.inf, -np.inf, np.nan])
    z = np.concatenate([dense(name, rng, 30_000), bf16_values(), special])
    slope, wide = np.float64(np.float32(alpha)), z.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        forms = {
            "leaky_relu": np.where(np.signbit(z), slope * wide, wide),
            "drelu": np.where(np.isnan(z), z, z > 0),
            "dleaky_relu": np.where(np.isnan(z), z, np.where(z > 0, 1.0, slope)),
        }
        theirs = forms.get(name, reference(name, z)).astype(np.float32)
    # numpy may choose either sign for maximum(-0, 0) and sign(0).
    kept = (z != 0) | (name not in ("relu", "sign"))
    compare.assert_same_bits(activate(name, z, alpha)[kept], theirs[kept], z[kept])


@pytest.mark.parametrize(("name", "sign"), [(name, -1) for name in ODD] + [(name, 1) for name in EVEN])
def test_odd_and_even_functions_are(name, sign, rng):
    z = np.abs(dense(name, rng, 50_000))
    compare.assert_same_bits(activate(name, -z), sign * activate(name, z), z)


@every_function
def test_nan_gives_the_canonical_nan(name):
    z = np.uint32([0x7F800001, 0x7FC00000, 0xFFC00000, 0xFFFFFFFF]).view(np.float32)
    assert words(activate(name, z, ALPHA)).tolist() == [0x7FC00000] * 4


@pytest.mark.parametrize("name", POSITIVE)
def test_negative_arguments_outside_the_domain_give_nan(name):
    assert words(activate(name, np.float32([-(2.0**-149), -1, -2, -3e38, -np.inf]))).tolist() == [0x7FC00000] * 5


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("identity", (0, -0.0, np.inf, -np.inf)), ("square", (0, 0, np.inf, np.inf)), ("abs", (0, 0, np.inf, np.inf)),
        ("sign", (0, -0.0, 1, -1)), ("relu", (0, 0, np.inf, 0)), ("leaky_relu", (0, -0.0, np.inf, -np.inf)),
        ("exp", (1, 1, np.inf, 0)), ("ln", (-np.inf, -np.inf, np.inf, np.nan)), ("sqrt", (0, -0.0, np.inf, np.nan)),
        ("rsqrt", (np.inf, -np.inf, 0, np.nan)), ("reciprocal", (np.inf, -np.inf, 0, -0.0)),
        ("tanh", (0, -0.0, 1, -1)), ("sigmoid", (0.5, 0.5, 1, 0)), ("erf", (0, -0.0, 1, -1)),
        ("gelu", (0, -0.0, np.inf, -0.0)), ("gelu_tanh", (0, -0.0, np.inf, -0.0)), ("silu", (0, -0.0, np.inf, -0.0)),
        ("softplus", (np.log(2), np.log(2), np.inf, 0)), ("sin", (0, -0.0, np.nan, np.nan)),
        ("cos", (1, 1, np.nan, np.nan)), ("dtanh", (1, 1, 0, 0)), ("dsigmoid", (0.25, 0.25, 0, 0)),
        ("derf", (2 / np.sqrt(np.pi), 2 / np.sqrt(np.pi), 0, 0)), ("dgelu", (0.5, 0.5, 1, -0.0)),
        ("dgelu_tanh", (0.5, 0.5, 1, -0.0)), ("dsilu", (0.5, 0.5, 1, -0.0)), ("dsoftplus", (0.5, 0.5, 1, 0)),
        ("drelu", (0, 0, 1, 0)), ("dleaky_relu", (ALPHA, ALPHA, 1, ALPHA)), ("gelu_sigmoid", (0, -0.0, np.inf, -0.0)),
        ("dgelu_sigmoid", (0.5, 0.5, 1, -0.0)), ("mish", (0, -0.0, np.inf, -0.0)),
        ("arctan", (0, -0.0, np.pi / 2, -np.pi / 2)),
    ],
)  # fmt: skip
def test_zeros_and_infinities(name, theirs):
    z = np.float32([0.0, -0.0, np.inf, -np.inf])
    compare.assert_same_bits(activate(name, z, ALPHA), np.float32(theirs), z)


@every_function
def test_results_next_to_zero_and_infinity_continue_to_the_special_ones(name):
    tiny, huge = np.float32(2.0**-149), np.finfo(np.float32).max
    z = np.float32([tiny, -tiny, huge, -huge])
    at_limit = activate(name, np.float32([0.0, -0.0, np.inf, -np.inf]), ALPHA)
    y = activate(name, z, ALPHA)
    kept = np.ones(4, bool)
    if name in ("sin", "cos"):
        kept[2:] = False
    if name in ("sign", "drelu", "dleaky_relu", "ln", "sqrt", "rsqrt"):
        kept[:2] = False
    if name in ("ln", "sqrt", "rsqrt", "reciprocal", "identity", "relu", "leaky_relu"):
        kept[2:] = False
    with np.errstate(all="ignore"):
        # Where f increases with z the largest finite z gives the largest finite y.
        close = np.isclose(y, at_limit, rtol=1e-6, atol=2.0**-148) | (np.abs(y) >= huge) & np.isinf(at_limit)
    assert np.all(close[kept])


@every_function
def test_no_sampled_step_goes_against_the_function(name):
    z = np.concatenate([bench.sample(name), borders(name, 4)])
    if name == "gelu_tanh":
        # Next to the minimum a step of one ulp in the opposite direction is allowed.
        z = z[(z < -0.7524) | (z > -0.7523)]
    wrong, steps = accuracy.wrong_way(name, z, lambda z: activate(name, z, ALPHA))
    assert wrong == 0
    assert steps > 10_000


@pytest.mark.parametrize("name", INCREASING)
def test_increasing_functions_increase(name):
    y = activate(name, bench.sample(name), ALPHA)
    assert np.all(y[1:] >= y[:-1])


@pytest.mark.slow
def test_tables_are_what_the_script_makes(capsys):
    assert generate.main(["--check"]) == 0
    assert "is up to date" in capsys.readouterr().out


def rows(first: int = 0, end: int | None = None):
    for row in load_tables().control[first:end]:
        field = dict(zip(layout.CONTROL_FIELDS, row, strict=True))
        yield field, range(field["base"], field["base"] + (1 << field["bits"])) if any(row) else ()


def used_segments(name: str) -> list[int]:
    code = FUNCTIONS[name].code
    ends = (layout.control_address(code + more, 0, 0) for more in (0, 1))
    return sorted({segment for _, segments in rows(*ends) for segment in segments})


def test_every_segment_is_used():
    assert {segment for name in FUNCTIONS for segment in used_segments(name)} == set(range(len(load_tables().segments)))


def test_segments_stay_within_the_polynomial_s_width():
    t = np.linspace(0, (1 << layout.LOCAL_BITS) - 1, 129).astype(np.int64)
    c0, c1, c2, c3, _ = np.array(load_tables().segments, np.int64).T[..., np.newaxis]
    q2 = c2 + (t * c3 >> 24)
    q1 = c1 + (t * q2 >> 24)
    p = c0 + (t * q1 >> 26)
    assert np.abs(q2).max() < 1 << 29
    assert np.abs(q1).max() < 1 << 34
    assert np.abs(p).max() < 1 << 34


def test_segments_have_the_exponents_that_the_alignment_of_logarithms_needs():
    most = layout.SUM_POINT - layout.EXP2_INDEX_BITS - layout.LOCAL_BITS - layout.HIGH_EXPONENT
    for field, segments in rows():
        exponents = {load_tables().segments[segment][-1] for segment in segments}
        assert not field["exp2"] or max(exponents) <= most, "of a logarithm of a result"
        assert field["factor"] != layout.Factor.LOG or exponents == {0}, "of what the exponent is added to"


@pytest.mark.parametrize("field", ["c0", "c1", "c2"])
@pytest.mark.parametrize("name", ["tanh", "sigmoid", "reciprocal", "ln", "sin", "gelu"])
def test_one_flipped_coefficient_bit_is_seen(name, field):
    z = bench.sample(name)
    used = used_segments(name)
    segments = [list(segment) for segment in load_tables().segments]
    column = list(layout.COEFFICIENT_FIELDS).index(field)
    segments[used[len(used) // 2]][column] ^= 1 << layout.COEFFICIENT_FIELDS[field] - 8
    broken = replace(load_tables(), segments=tuple(map(tuple, segments)))
    with np.errstate(all="ignore"):
        assert accuracy.errors(name, z, activate(name, z, ALPHA, broken)).max() > 2


def test_shapes_and_names():
    z = np.zeros((2, 3, 4), np.float32)
    assert activate("exp", z).shape == z.shape
    assert activate(function_named("exp"), 0.0).shape == ()
    assert activate("exp", z[:, ::2]).shape == (2, 2, 4)
    with pytest.raises(ValueError, match="function must be one of identity.*not 'swish'"):
        activate("swish", z)


def test_the_table_in_the_documentation_is_what_is_measured():
    assert bench.PATH.read_text().partition(bench.BEGIN)[2].partition(bench.END)[0] == bench.accuracy_table()

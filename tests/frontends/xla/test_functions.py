"""Functions of elements: every function of every type on special and on random values.

Integers and booleans are compared with JAX's CPU bit for bit. Floats are compared with float64: arithmetic bit for bit
with the one rounding of the exact FP32 result, others within a number of units of the last place.
"""

import math
from itertools import product

import jax
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

from tests.frontends.xla.bounds import run_golden
from tests.frontends.xla.draws import BOOLEAN, FLOATS, INTEGERS, TYPES
from tests.frontends.xla.results import differences, run_text


def _specials(of: np.dtype) -> np.ndarray:
    """Return the values of a type at which functions change."""
    if of == BOOLEAN:
        return np.array([False, True])
    if of in INTEGERS:
        most = np.iinfo(of)
        around = [most.min, most.min + 1, most.max // 2 + 1, most.max - 1, most.max]
        around += [-2, -1, 0, 1, 2, 3, 7, 8, 31, 32, 33]
        return np.array([one for one in around if most.min <= one <= most.max], of)
    most = ml_dtypes.finfo(of)
    near = [0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 127.5, 128.0, 255.5, 1e5, 2.0**31, 2.0**32, np.inf, np.nan]
    near += [float(most.max), float(most.tiny), float(most.smallest_subnormal)]
    found = np.array([sign * one for one in near for sign in (1, -1)], np.float32)
    with np.errstate(all="ignore"):
        return found.astype(of)


def _draw(of: np.dtype, seed: int = 1) -> np.ndarray:
    """Return random values of a type of all magnitudes."""
    codes = np.random.default_rng(seed).integers(0, 256, (256, of.itemsize), dtype=np.uint8)
    return codes[:, 0] > 127 if of == BOOLEAN else codes.view(of).reshape(-1)


def _pairs(of: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of special values, then random ones, some of small and some of equal numbers."""
    first, second = (np.array(side) for side in zip(*product(_specials(of), repeat=2), strict=True))
    a, b = _draw(of), _draw(of, seed=2)
    small = b % 16 if of in INTEGERS else b
    return np.concatenate([first, a, a, a]).astype(of), np.concatenate([second, b, a, small]).astype(of)


def _check(names, found, expected, *args) -> None:
    """Compare results of functions bit for bit."""
    for name, one, other in zip(names, found, expected, strict=True):
        other = np.asarray(other)
        assert (one.dtype, one.shape) == (other.dtype, other.shape), name
        wrong = np.flatnonzero(differences(one, other))
        values = [(*(arg[at] for arg in args), one[at], other[at]) for at in wrong[:4]]
        assert not wrong.size, f"{name}: {wrong.size} of {one.size} differ, such as (operands, here, expected) {values}"


BINARY = (
    "add", "sub", "mul", "div", "rem", "max", "min", "shift_left", "shift_right_logical", "shift_right_arithmetic",
    "mulhi", "bitwise_and", "bitwise_or", "bitwise_xor", "eq", "ne", "lt", "le", "gt", "ge",
)  # fmt: skip
UNARY = "neg", "bitwise_not", "sign", "population_count", "clz", "abs"


@pytest.mark.parametrize("of", INTEGERS)
def test_integers_equal_jax(of):
    unary = UNARY if of.kind == "i" else UNARY[:-1]

    def function(a, b):
        others = [lax.clamp(jnp.minimum(a, b), b, jnp.maximum(a, b)), lax.select(a < b, a, b), lax.div(b, of.type(7))]
        others += [lax.shift_left(a, of.type(3)), lax.shift_right_arithmetic(a, of.type(3))]
        others += [lax.max(of.type(100), a), of.type(1) - b]
        return [getattr(lax, name)(a, b) for name in BINARY] + [getattr(lax, name)(a) for name in unary] + others

    a, b = _pairs(of)
    names = [*BINARY, *unary, "clamp", "select", "div 7", "shl 3", "sra 3", "max 100", "1 -"]
    _check(names, run_golden(function, a, b), jax.jit(function)(a, b), a, b)


@pytest.mark.parametrize("of", INTEGERS)
def test_integer_powers_are_products(of):
    """Against Python's integers; a negative exponent as in XLA."""
    a, b = _pairs(of)
    b = np.where(np.arange(b.size) % 2 == 0, b, b % of.type(40)).astype(of)
    bits = 8 * of.itemsize

    def power(base: int, exponent: int) -> int:
        if exponent < 0:
            return {1: 1, -1: -1 if exponent % 2 else 1}.get(base, 0)
        return pow(base, exponent, 1 << bits)

    expected = [power(int(x), int(y)) % (1 << bits) for x, y in zip(a, b, strict=True)]
    expected = np.array(expected, np.uint64).astype(f"u{bits // 8}").view(of)
    text = _text(of, a.size, ['stablehlo.power"(%a, %b)'])
    _check(["power"], run_text(text, a, b), [expected], a, b)


_TEXTS = {
    **{one: one.name.replace("uint", "ui").replace("int", "i") for one in INTEGERS},
    **dict(zip(FLOATS, ("f32", "bf16", "f16", "f8E4M3", "f8E5M2", "f8E3M4"), strict=True)),
}


def _text(of: np.dtype, size: int, calls: list[str], result: str | None = None) -> str:
    """Return StableHLO's text of a function that returns calls of %a and %b, without the first quotation mark."""
    kind = f"tensor<{size}x{_TEXTS[of]}>"
    to = kind if result is None else f"tensor<{size}x{result}>"
    lines = [f'%{at} = "{call} : ({", ".join([kind] * call.count("%"))}) -> {to}' for at, call in enumerate(calls)]
    results, kinds = ", ".join(f"%{at}" for at in range(len(calls))), ", ".join([to] * len(calls))
    start = f"func.func @main(%a: {kind}, %b: {kind}) -> ({kinds}) {{"
    return "\n".join([start, *lines, f"return {results} : {kinds}", "}"])


@pytest.mark.parametrize("of", TYPES)
def test_conversions_equal_jax(of):
    """From a type to every other one; floats to narrower ones with one rounding of the number."""
    value = np.concatenate([_specials(of), _draw(of)])

    def function(a):
        return [lax.convert_element_type(a, to) for to in TYPES]

    expected = [_converted(value, *pair) for pair in zip(TYPES, jax.jit(function)(value), strict=True)]
    _check([to.name for to in TYPES], run_golden(function, value), expected, value)


@pytest.mark.parametrize("of", INTEGERS[1:4] + INTEGERS[5:])
def test_constants_are_converted_as_values_are(of):
    """Integers of more than 24 bits are rounded once to a narrow float, also at compilation."""
    value = np.concatenate([_specials(of), _draw(of), np.array([2**30 + 2**22 + 1, 2**24 + 1], np.int64).astype(of)])
    zero = np.zeros(1, np.float32)

    def function(zero):
        return [jnp.append(jnp.asarray(value).astype(to), zero.astype(to)) for to in FLOATS]

    with np.errstate(over="ignore"):
        expected = [np.append(_narrow(value, to), np.zeros(1, to)) for to in FLOATS]
    _check([to.name for to in FLOATS], run_golden(function, zero), expected)


@pytest.mark.parametrize("of", INTEGERS[:2] + INTEGERS[3:5])
def test_indices_wrap(of):
    """Indices beyond the range of a type are modulo 2^n, as a value in HBM and in a pass."""
    count, x = np.iinfo(of).max + 10, of.type(3)

    def function(x):
        return [lax.iota(of, count), lax.iota(of, count) + x, lax.broadcasted_iota(of, (2, count), 1) - x]

    _check(["alone", "sum", "rows"], run_golden(function, x), jax.jit(function)(x))


def _converted(value: np.ndarray, to: np.dtype, jax_result) -> np.ndarray:
    if to in INTEGERS:
        return np.asarray(jax_result)
    with np.errstate(all="ignore"):
        return value != 0 if to == BOOLEAN else _narrow(value, to)  # JAX's CPU takes subnormal numbers for zeros


def _narrow(value: np.ndarray, to: np.dtype) -> np.ndarray:
    """Return numbers rounded once to a narrow type, to nearest even; through FP32 rounded to odd."""
    exact = value.astype(np.float64)
    near = exact.astype(np.float32)
    codes = near.view(np.uint32)
    beyond = np.abs(near.astype(np.float64)) > np.abs(exact)
    odd = np.where(near != exact, (codes - beyond) | 1, codes).astype(np.uint32)
    return near if to == np.float32 else np.where(np.isfinite(near), odd.view(np.float32), near).astype(to)


ROUNDED = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "rem": np.fmod,
    "max": lambda a, b: np.where((a == 0) & (b == 0), a + b, np.maximum(a, b)),
    "min": lambda a, b: np.where((a == 0) & (b == 0), -(-a - b), np.minimum(a, b)),
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
WHOLE = {
    "neg": np.negative, "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "is_finite": np.isfinite,
    "sign": lambda x: np.where(x == 0, x, np.sign(x)),
}  # fmt: skip
"""Functions whose results are exact in FP32, or rounded once there; JAX's CPU takes subnormal numbers for zeros."""


@pytest.mark.parametrize("of", FLOATS)
def test_float_arithmetic_rounds_once(of):
    a, b = _pairs(of)

    def function(a, b):
        rounded = [lax.round(a, lax.RoundingMethod.TO_NEAREST_EVEN), lax.round(a, lax.RoundingMethod.AWAY_FROM_ZERO)]
        others = [lax.clamp(lax.full_like(a, -1.5), a, lax.full_like(a, 2)), lax.select(a < b, b, a)]
        arithmetic = [getattr(lax, name)(a, b) for name in ROUNDED] + [getattr(lax, name)(a) for name in WHOLE]
        return arithmetic + rounded + others

    x, y = a.astype(np.float32), b.astype(np.float32)
    with np.errstate(all="ignore"):
        expected = [one(x, y) for one in ROUNDED.values()]
        expected += [one(x) for one in WHOLE.values()]
        away = np.copysign(np.floor(np.abs(x)) + (np.abs(x) - np.floor(np.abs(x)) >= 0.5), x)
        expected += [np.rint(x), away, np.clip(x, -1.5, 2), np.where(x < y, y, x)]
        expected = [one if one.dtype == np.bool_ else one.astype(of) for one in expected]
    names = [*ROUNDED, *WHOLE, "round", "round away", "clamp", "select"]
    _check(names, run_golden(function, a, b), expected, a, b)


@pytest.mark.parametrize("of", FLOATS[:3])
def test_total_order_compares_codes(of):
    a, b = _pairs(of)
    how = "#stablehlo<comparison_direction LT>", "#stablehlo<comparison_type TOTALORDER>"
    call = f'stablehlo.compare"(%a, %b) <{{comparison_direction = {how[0]}, compare_type = {how[1]}}}>'
    codes = [one.view(f"i{one.itemsize}").astype(np.int64) for one in (a, b)]
    keys = [np.where(one < 0, -(one & (1 << (8 * a.itemsize - 1)) - 1) - 1, one) for one in codes]
    found = run_text(_text(of, a.size, [call], "i1"), a, b)
    _check(["less"], found, [keys[0] < keys[1]], a, b)


ERRORS = {
    "exponential": (0.6, np.exp), "log": (0.51, np.log), "sqrt": (0.51, np.sqrt),
    "rsqrt": (0.51, lambda x: 1 / np.sqrt(x)), "tanh": (0.7, np.tanh), "logistic": (1, lambda x: 1 / (1 + np.exp(-x))),
    "sine": (0.7, np.sin), "cosine": (0.7, np.cos), "tan": (2, np.tan),
    "chlo.erf": (0.7, np.vectorize(math.erf)), "chlo.erfc": (150, np.vectorize(math.erfc)),
    "exponential_minus_one": (2.5, np.expm1), "log_plus_one": (2.5, np.log1p), "cbrt": (1, np.cbrt),
    "power": (0.55, np.power), "atan2": (2, np.arctan2),
}  # fmt: skip
"""Functions with their errors in units of FP32's last place, and in float64."""


@pytest.mark.parametrize("of", FLOATS)
def test_other_functions_are_within_their_errors(of):
    """Errors of docs/activation.md and docs/numbers.md, others measured; narrower types add one rounding."""
    a, b = _pairs(of)
    rng = np.random.default_rng(3)
    near = (rng.normal(size=1024) * 10.0 ** rng.integers(-3, 3, 1024)).astype(of)
    a, b = np.concatenate([a, near, near]), np.concatenate([b, near[::-1], np.abs(near) + of.type(0.25)])
    two = "power", "atan2"
    names = [name if "." in name else f"stablehlo.{name}" for name in ERRORS]
    calls = [f'{full}"({"%a, %b" if name in two else "%a"})' for full, name in zip(names, ERRORS, strict=True)]
    found = run_text(_text(of, a.size, calls), a, b)
    with np.errstate(all="ignore"):
        x, y = a.astype(np.float64), b.astype(np.float64)
        exact = [reference(x, y) if name in two else reference(x) for name, (_, reference) in ERRORS.items()]
    spread = 2.0 ** (ml_dtypes.finfo(of).nmant - 23)
    for (name, (bound, _)), one, other in zip(ERRORS.items(), found, exact, strict=True):
        worst, at = _error(one, other, of)
        assert worst <= (bound if spread == 1 else 0.5 + bound * spread), (name, a[at], b[at], one[at], other[at])


def _error(found: np.ndarray, exact: np.ndarray, of) -> tuple[float, int]:
    """Return the largest error in units of the last place of a type, and where; infinite for a wrong special value."""
    most = ml_dtypes.finfo(of)
    with np.errstate(all="ignore"):
        expected = _narrow(exact, of)
        _, exponent = np.frexp(np.abs(exact))
        place = np.maximum(exponent - 1, most.minexp).astype(np.float64) - most.nmant
        error = np.abs(found.astype(np.float64) - exact) / 2.0**place
        special = ~np.isfinite(found.astype(np.float64)) | ~np.isfinite(exact) | ((exact == 0) & (found == 0))
    error[special] = np.inf
    error[~differences(found, expected)] = 0
    at = int(np.argmax(error))
    return float(error[at]), at

"""Results of `nki.language` and `nki.isa` that numbers' types decide: rules, sources, and random examples of each.

`python -m tests.frontends.nki.semantics` writes the rules to docs/nki.md. Expected values are exact Python integers,
or numpy's and ml_dtypes' numbers; none of the package's own arithmetic is used.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import ml_dtypes
import numpy as np

from neuroncore_rtl import ROOT
from neuroncore_rtl.kernels.text.markdown import markdown_table, replace_between

__all__ = ["ROWS", "Example", "Row", "updated_page"]

PAGE = ROOT / "docs" / "nki.md"
BEGIN, END = "<!-- semantics: python -m tests.frontends.nki.semantics -->\n", "<!-- /semantics -->"

INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
SHAPE = (4, 9)
SPECIAL = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 4, -4, 1e30, -1e30, np.inf, -np.inf, np.nan], "f4")
NUMBERS = (0, 1, -1, 3, -7, 127, 128, 255, 300, -(2**31), 2**31 - 1, 2**31, 2**32 - 1)
BEYOND = (*NUMBERS, -(2**31) - 1, 2**32, 2**40, -(2**40))

NUMPY, IEEE, OURS = "numpy", "IEEE 754-2019", "our choice"
AWS_FP32 = "AWS: arithmetic operators compute in float32"
AWS_BITS = "AWS: operands are bit patterns"


@dataclass(frozen=True)
class Example:
    """An expression of tiles a, b, ... with these arrays, and its exact result in a type.

    `expected` holds Python integers for integer types, else numbers; zeros have signs.
    """

    expression: str
    arrays: tuple[np.ndarray, ...]
    dtype: str
    expected: np.ndarray


T = TypeVar("T")
Draw = Callable[[np.random.Generator], Example]


@dataclass(frozen=True)
class Row:
    """One rule: its subject, the result, its source, and a function that draws an example."""

    about: str
    result: str
    source: str
    draw: Draw


ROWS: list[Row] = []


def row(about: str, result: str, source: str) -> Callable[[Draw], Draw]:
    def entered(draw: Draw) -> Draw:
        ROWS.append(Row(about, result, source, draw))
        return draw

    return entered


def _any(rng: np.random.Generator, choices: Iterable[T]) -> T:
    some = list(choices)
    return some[rng.integers(len(some))]


def _type(rng: np.random.Generator, *without: str) -> str:
    return _any(rng, [name for name in INTEGERS if name not in without])


def _integers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    """Return integers of a type: its limits, small ones, and any others."""
    limits = np.iinfo(dtype)
    ends = np.array([limits.min, limits.min + 1, max(limits.min, -1), 0, 1, limits.max - 1, limits.max], np.int64)
    small = rng.integers(max(limits.min, -9), 10, shape)
    kinds = [rng.choice(ends, shape), small, rng.integers(limits.min, limits.max, shape, np.int64, endpoint=True)]
    return np.choose(rng.integers(0, 3, shape), kinds).astype(dtype)


def _floats(rng: np.random.Generator, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    return np.where(rng.random(shape) < 0.6, rng.choice(SPECIAL, shape), rng.normal(size=shape) * 8).astype(np.float32)


def _wrap(value: int, dtype: str) -> int:
    limits = np.iinfo(dtype)
    return (value - int(limits.min)) % (1 << limits.bits) + int(limits.min)


def _saturate(value: int, dtype: str) -> int:
    limits = np.iinfo(dtype)
    return max(int(limits.min), min(int(limits.max), value))


def _exact(function: Callable[..., int], *operands: object) -> np.ndarray:
    """Apply a function of Python integers to arrays and numbers that broadcast."""
    whole = [np.asarray(value).astype(object) for value in operands]
    return np.asarray(np.frompyfunc(function, len(whole), 1)(*whole), object)


def _stored(function: Callable[..., int], dst: str, *tiles: np.ndarray, signed: bool = False) -> np.ndarray:
    """Apply a function of Python integers to tiles, modulo 2^32 in the sign of their types, and saturate to dst."""
    signs = signed or any(a.dtype.kind == "i" for a in tiles)
    unsigned = any(a.dtype == np.uint32 for a in tiles) and not signs
    words = dst if dst in ("int32", "uint32") else "uint32" if unsigned else "int32"
    return _exact(lambda *numbers: _saturate(_wrap(function(*numbers), words), dst), *tiles)


def _two(rng: np.random.Generator, name: str, dst: str) -> tuple[str, np.ndarray, np.ndarray]:
    """Return an expression of an operation on two tiles, or a tile and a column, with its operands."""
    types = rng.permutation(["uint32", "int32"]) if rng.random() < 0.4 else [_type(rng), _type(rng)]
    a = _integers(rng, str(types[0]))
    b = _integers(rng, str(types[1]), SHAPE if rng.random() < 0.6 else (SHAPE[0], 1))
    return f"nl.{name}(a, b, dtype=nl.{dst})", a, b


def _of_two_tiles(rng: np.random.Generator, functions: Mapping[str, Callable[[int, int], int]]) -> Example:
    name, dst = _any(rng, functions), _type(rng)
    expression, a, b = _two(rng, name, dst)
    return Example(expression, (a, b), dst, _stored(functions[name], dst, a, b))


SUMS = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}


@row(
    "`add`, `subtract`, `multiply` of integers",
    "exact modulo 2^32, in dst's type if that has 32 bits; saturated to a narrower type, from `uint32` if one operand "
    "has that type and none a sign, else from `int32`",
    f"{NUMPY} for 32 bits (AWS: exact for `int32` and `uint32`); saturation: {OURS}",
)
def _sums(rng: np.random.Generator) -> Example:
    return _of_two_tiles(rng, SUMS)


@row(
    "`add`, `subtract`, `multiply` of integers with a Python integer",
    "as with a tile; a negative number has a sign; refused beyond 32 bits, and from 2^31 on for a narrower dst",
    f"{OURS}; numpy refuses numbers beyond the tile's type",
)
def _sums_with_a_number(rng: np.random.Generator) -> Example:
    name, dst, a = _any(rng, SUMS), _type(rng), _integers(rng, _type(rng))
    number = _any(rng, [one for one in NUMBERS if one < 2**31 or dst in ("int32", "uint32")])
    expected = _stored(lambda x: SUMS[name](x, number), dst, a, signed=number < 0)
    return Example(f"nl.{name}(a, {number}, dtype=nl.{dst})", (a,), dst, expected)


COMPARISONS = {
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "equal": operator.eq, "not_equal": operator.ne,
}  # fmt: skip


@row("comparisons of integers of any types", "those of the mathematical values", NUMPY)
def _comparisons(rng: np.random.Generator) -> Example:
    return _of_two_tiles(rng, COMPARISONS)


@row(
    "comparisons of integers with a Python integer",
    "those of the mathematical values, also beyond the tile's type",
    NUMPY,
)
def _comparisons_with_a_number(rng: np.random.Generator) -> Example:
    name, a, number = _any(rng, COMPARISONS), _integers(rng, _type(rng)), _any(rng, BEYOND)
    texts, sides = ("a", number), (a, number)
    if rng.random() >= 0.5:
        texts, sides = texts[::-1], sides[::-1]
    expected = _exact(lambda x, y: int(COMPARISONS[name](x, y)), *sides)
    return Example(f"nl.{name}({texts[0]}, {texts[1]}, dtype=nl.uint8)", (a,), "uint8", expected)


@row(
    "comparisons, `maximum`, `minimum` of 32-bit integers with a floating-point number",
    "those of the mathematical values, also with infinities; `maximum` and `minimum` round the number to an integer",
    f"{NUMPY}; {OURS} for the rounding",
)
def _fractions(rng: np.random.Generator) -> Example:
    a = _integers(rng, _any(rng, ["int32", "uint32"]))
    name = _any(rng, [*COMPARISONS, "maximum", "minimum"])
    text = _any(rng, ["0.5", "-1.5", "16777216.5", "2147483647.5", "float('inf')", "-float('inf')"])
    number = float(text.replace("float('inf')", "inf"))
    if name in COMPARISONS:
        expected = _exact(lambda x: int(COMPARISONS[name](x, number)), a)
        return Example(f"nl.{name}(a, {text}, dtype=nl.uint8)", (a,), "uint8", expected)
    whole = int(np.sign(number)) * 2**40 if np.isinf(number) else round(number)
    expected = _exact(lambda x: _saturate(EXTREMES[name](x, whole), str(a.dtype)), a)
    return Example(f"nl.{name}(a, {text})", (a,), str(a.dtype), expected)


EXTREMES = {"maximum": max, "minimum": min}


@row(
    "`maximum`, `minimum` of integers, also with Python integers beyond the tile's type",
    "that of the mathematical values, saturated to the result's type",
    f"{NUMPY}; saturation: {OURS}",
)
def _extremes(rng: np.random.Generator) -> Example:
    name, dst = _any(rng, EXTREMES), _type(rng)
    if rng.random() < 0.5:
        expression, a, b = _two(rng, name, dst)
        return Example(expression, (a, b), dst, _exact(lambda x, y: _saturate(EXTREMES[name](x, y), dst), a, b))
    a, number = _integers(rng, _type(rng)), _any(rng, BEYOND)
    expected = _exact(lambda x: _saturate(EXTREMES[name](x, number), dst), a)
    return Example(f"nl.{name}(a, {number}, dtype=nl.{dst})", (a,), dst, expected)


BITS = {"bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor}


@row(
    "`bitwise_and`, `bitwise_or`, `bitwise_xor` of tiles",
    "those of two's complement, narrow signed types extended by their sign",
    f"{NUMPY}; {AWS_BITS}",
)
def _bits(rng: np.random.Generator) -> Example:
    return _of_two_tiles(rng, BITS)


@row(
    "`bitwise_and`, `bitwise_or`, `bitwise_xor` with a Python integer",
    "the number is a pattern of the tile's bits, so that `bitwise_or` of `int8` and 0x80 sets the sign",
    f"{AWS_BITS}; numpy refuses 0x80 beside `int8`",
)
def _bits_of_a_number(rng: np.random.Generator) -> Example:
    name, dtype = _any(rng, BITS), _type(rng)
    a, number = _integers(rng, dtype), _any(rng, NUMBERS)
    expected = _exact(lambda x: _wrap(BITS[name](x, number), dtype), a)
    return Example(f"nl.{name}(a, {number})", (a,), dtype, expected)


@row(
    "`invert` of integers",
    "every bit of the tile's type inverted; modulo 2^32 or saturated in another type, as other bit operations",
    f"{NUMPY}; saturation: {OURS}",
)
def _inverts(rng: np.random.Generator) -> Example:
    a, dst = _integers(rng, _type(rng)), _type(rng)
    return Example(f"nl.invert(a, dtype=nl.{dst})", (a,), dst, _stored(int, dst, np.invert(a)))


def _shifts(rng: np.random.Generator, name: str, sign: str) -> Example:
    dtype, n = _type(rng), int(rng.integers(0, 40))
    a, shift = _integers(rng, dtype), {"<<": operator.lshift, ">>": operator.rshift}[sign]
    if rng.random() < 0.5:
        return Example(f"a {sign} {n}", (a,), dtype, _exact(lambda x: _wrap(shift(x, n), dtype), a))
    b = rng.integers(0, 40, SHAPE if rng.random() < 0.5 else (SHAPE[0], 1)).astype(_type(rng))
    expected = _exact(lambda x, y: _wrap(shift(x, y), dtype), a, b)
    return Example(f"nl.{name}(a, b, dtype=nl.{dtype})", (a, b), dtype, expected)


@row("`left_shift`", "the low bits, as many as the result's type has; 0 from its width on", f"{NUMPY}; {AWS_BITS}")
def _left_shifts(rng: np.random.Generator) -> Example:
    return _shifts(rng, "left_shift", "<<")


@row(
    "`right_shift`",
    "of signed types the sign repeated, of unsigned types zeros; -1 or 0 from the width on",
    f"{NUMPY}, C and Python; AWS's table of operators says logical: {OURS}",
)
def _right_shifts(rng: np.random.Generator) -> Example:
    return _shifts(rng, "right_shift", ">>")


@row(
    "a maximum, minimum or bit operation, and then another operation, in one `tensor_scalar`",
    "each step is exact: the minimum of `uint32` and -1 is -1, and `int8` with 0x80 set is negative",
    f"{NUMPY}; {AWS_BITS}",
)
def _two_steps(rng: np.random.Generator) -> Example:
    dtype, name = _type(rng), _any(rng, EXTREMES | BITS)
    a, first, n = _integers(rng, dtype), _any(rng, NUMBERS), int(rng.integers(0, 8))
    step = EXTREMES.get(name) or (lambda x, y: _wrap(BITS[name](x, y), dtype))
    then = _any(rng, ["less", "greater_equal"] if name in EXTREMES else ["right_shift"])
    second = {"less": operator.lt, "greater_equal": operator.ge, "right_shift": operator.rshift}[then]
    dst = dtype if then == "right_shift" else "uint8"
    text = f"nisa.tensor_scalar(a, op0=nl.{name}, operand0={first}, op1=nl.{then}, operand1={n}, dtype=nl.{dst})"
    return Example(text, (a,), dst, _exact(lambda x: int(second(step(x, first), n)), a))


@row(
    "a left shift and another bit operation in one `tensor_scalar`",
    "each step has the type's bits: `(a << 4) >> 4` of `int8` is the low nibble with its sign",
    NUMPY,
)
def _nibbles(rng: np.random.Generator) -> Example:
    dtype, n = _type(rng), int(rng.integers(0, 8))
    a, name = _integers(rng, dtype), _any(rng, ["right_shift", *BITS])
    text = f"nisa.tensor_scalar(a, op0=nl.left_shift, operand0={n}, op1=nl.{name}, operand1={n})"
    then = BITS.get(name, operator.rshift)
    return Example(text, (a,), dtype, _exact(lambda x: then(_wrap(x << n, dtype), n), a))


UNARY = {"abs": abs, "relu": lambda x: max(x, 0), "square": lambda x: x * x}


@row(
    "`abs`, `relu`, `square` of integers, also as operations",
    "exact; modulo 2^32 (`abs` of -2^31 is -2^31, or 2^31 as `uint32`), then saturated to a narrower type",
    f"{NUMPY}; saturation: {OURS}; `nisa.activation` computes in FP32, as AWS says",
)
def _functions(rng: np.random.Generator) -> Example:
    name, dtype = _any(rng, UNARY), _type(rng)
    a = _integers(rng, dtype)
    call = f"nl.{name}(a)" if rng.random() < 0.5 else f"nisa.tensor_scalar(a, op0=nl.{name}, operand0=None)"
    if name == "abs" and rng.random() < 0.3:
        return Example("nl.abs(a, dtype=nl.uint32)", (a,), "uint32", _exact(abs, a))
    return Example(call, (a,), dtype, _stored(UNARY[name], dtype, a))


@row("`negative` of integers", "exact modulo 2^32, then saturated to a narrower type", f"{NUMPY}; saturation: {OURS}")
def _negatives(rng: np.random.Generator) -> Example:
    a, dst = _integers(rng, _type(rng)), _type(rng)
    return Example(f"nl.negative(a, dtype=nl.{dst})", (a,), dst, _stored(operator.neg, dst, a, signed=True))


@row(
    "`sum` of integers along free dimensions",
    "as `add`, element after element: exact modulo 2^32 in a dst of 32 bits, else saturated at the end",
    OURS,
)
def _row_sums(rng: np.random.Generator) -> Example:
    a, dst = _integers(rng, _type(rng)), _type(rng, "int8", "int16", "uint8", "uint16")
    if rng.random() < 0.5:
        a, dst = rng.integers(0, 100, SHAPE).astype(a.dtype), str(a.dtype)
    expected = _stored(lambda *numbers: sum(numbers), dst, *np.hsplit(a, SHAPE[1]))
    return Example(f"nl.sum(a, axis=1, keepdims=True, dtype=nl.{dst})", (a,), dst, expected)


@row("cast of integers to integers", "saturates", f"{OURS}; numpy wraps")
def _casts(rng: np.random.Generator) -> Example:
    a, dst = _integers(rng, _type(rng)), _type(rng)
    return Example(f"nl.copy(a, dtype=nl.{dst})", (a,), dst, _exact(lambda x: _saturate(x, dst), a))


def _rounded(x: float, dst: str) -> int:
    if np.isnan(x):
        return 0
    return _saturate(int(np.rint(x)), dst) if np.isfinite(x) else _saturate(2**40 if x > 0 else -(2**40), dst)


@row(
    "cast of floating-point numbers to integers",
    "to nearest, ties to even; saturates; NaN becomes 0",
    f"ties: {IEEE} and numpy's `rint`; beyond the type: {OURS}",
)
def _integers_of_floats(rng: np.random.Generator) -> Example:
    a, dst = _floats(rng), _type(rng)
    expected = np.array([_rounded(float(x), dst) for x in a.reshape(-1)], object).reshape(SHAPE)
    return Example(f"nl.copy(a, dtype=nl.{dst})", (a,), dst, expected)


NARROW = {
    "bfloat16": ml_dtypes.bfloat16, "float16": np.float16, "float8_e4m3": ml_dtypes.float8_e4m3,
    "float8_e5m2": ml_dtypes.float8_e5m2, "float8_e3m4": ml_dtypes.float8_e3m4,
}  # fmt: skip


@row(
    "cast of `float32` to narrower floating-point types",
    "to nearest, ties to even; infinity beyond the largest number; -0, infinities and NaN kept",
    f"{IEEE}; ml_dtypes",
)
def _narrow_floats(rng: np.random.Generator) -> Example:
    dst = _any(rng, NARROW)
    halves = (rng.integers(0, 64, SHAPE) / 32 + 1).astype(np.float32) * np.float32(rng.choice([1, -1]))
    a = np.where(rng.random(SHAPE) < 0.5, _floats(rng), halves).astype(np.float32)
    with np.errstate(over="ignore"):
        expected = a.astype(NARROW[dst]).astype(np.float32)
    return Example(f"nl.copy(a, dtype=nl.{dst})", (a,), dst, expected)


@row("value as `bool_`", "1 if the value is not 0, NaN included, else 0", NUMPY)
def _truths(rng: np.random.Generator) -> Example:
    a = _integers(rng, _type(rng)) if rng.random() < 0.5 else _floats(rng)
    way = _any(rng, ["nl.copy(a, dtype=nl.bool_)", "nl.add(a, 0, dtype=nl.bool_)", "nl.load(x0, dtype=nl.bool_)"])
    return Example(way, (a,), "bool_", _exact(int, a.astype(bool)))


TRUTHS = {
    "nl.invert({t})": np.logical_not, "{t} & {u}": np.logical_and, "{t} | {u}": np.logical_or,
    "{t} ^ {u}": np.logical_xor, "{t} + {u}": np.logical_or, "{t} * {u}": np.logical_and,
}  # fmt: skip


@row(
    "`invert`, `bitwise_and`, `bitwise_or`, `bitwise_xor`, `add`, `multiply` of `bool_`",
    "not, and, or, exclusive or, or, and",
    NUMPY,
)
def _logic(rng: np.random.Generator) -> Example:
    text, a, b = _any(rng, TRUTHS), _floats(rng), _floats(rng)
    one, other = a > 0, b > 1
    expected = TRUTHS[text](one, other) if "{u}" in text else np.logical_not(one)
    expression = text.format(t="nl.greater(a, 0, dtype=nl.bool_)", u="nl.greater(b, 1, dtype=nl.bool_)")
    return Example(expression, (a, b), "bool_", _exact(int, expected))


@row(
    "`bool_` with a Python number; other operations and functions of `bool_`; sums and products of it along an axis",
    "`int32`, also with integers; `float32` with floating-point numbers and of functions; beside a type that type",
    f"{NUMPY}, with 32 bits; AWS: `bool_` is stored as `uint8`",
)
def _counts_of_truths(rng: np.random.Generator) -> Example:
    a = _floats(rng)
    t, truths = "nl.greater(a, 0, dtype=nl.bool_)", (a > 0).astype(int)
    cases = [
        (f"nl.sum({t}, axis=1, keepdims=True)", truths.sum(1, keepdims=True), "int32"),
        (f"{t} * 300", truths * 300, "int32"),
        (f"{t} - 1", truths - 1, "int32"),
        (f"{t} * 2.5", truths * 2.5, "float32"),
        (f"{t} - nl.less(a, 2, dtype=nl.bool_)", truths - (a < 2), "int32"),
        (f"{t} << {t}", truths << truths, "int32"),
        (f"nl.reciprocal({t})", np.where(truths, 1, np.inf), "float32"),
        (f"nl.where(a, {t}, 7)", np.where(a != 0, truths, 7), "int32"),
        (f"nisa.tensor_partition_reduce(nl.add, {t})", truths.sum(0, keepdims=True), "int32"),
        (f"nisa.tensor_reduce(nl.maximum, {t}, axis=1, negate=True)", -truths.max(1, keepdims=True), "int32"),
    ]
    text, values, dtype = _any(rng, cases)
    return Example(text, (a,), dtype, _exact(int, values) if dtype == "int32" else values)


@row(
    "`where` of two Python numbers",
    "`float32` with a floating-point number, `int32` of integers, `bool_` of truth values",
    f"{NUMPY}, with 32 bits",
)
def _two_numbers(rng: np.random.Generator) -> Example:
    a = _integers(rng, _type(rng))
    pairs = [(0.0, -9984.0, "float32"), (1, -300, "int32"), (True, False, "bool_"), (2, 0.5, "float32")]
    one, other, dtype = _any(rng, pairs)
    values = np.where(a != 0, one, other)
    expected = values.astype(np.float32) if dtype == "float32" else _exact(int, values)
    return Example(f"nl.where(a, {one}, {other})", (a,), dtype, expected)


@row(
    "comparisons of floating-point numbers",
    "-0 equals +0; with NaN only `not_equal` holds",
    f"{IEEE}; {NUMPY}",
)
def _comparisons_of_floats(rng: np.random.Generator) -> Example:
    name, a, b = _any(rng, COMPARISONS), _floats(rng), _floats(rng)
    return Example(f"nl.{name}(a, b, dtype=nl.uint8)", (a, b), "uint8", _exact(int, COMPARISONS[name](a, b)))


@row(
    "`maximum`, `minimum` of floating-point numbers",
    "NaN if either is NaN; +0 above -0",
    f"{IEEE} maximum and minimum; numpy, which leaves the sign of zero open",
)
def _extremes_of_floats(rng: np.random.Generator) -> Example:
    name, a, b = _any(rng, EXTREMES), _floats(rng), _floats(rng)
    expected = (np.maximum if name == "maximum" else np.minimum)(a, b)
    signs = np.logical_and if name == "maximum" else np.logical_or
    zeros = (a == 0) & (b == 0)
    expected = np.where(zeros, np.where(signs(np.signbit(a), np.signbit(b)), -0.0, 0.0), expected)
    return Example(f"nl.{name}(a, b)", (a, b), "float32", expected)


FLOATS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}


@row(
    "`add`, `subtract`, `multiply`, `divide` of floating-point numbers",
    "one rounding, ties to even; -0 + -0 is -0, x - x is +0; inf - inf, 0 * inf, 0 / 0 are NaN",
    f"{IEEE}; {AWS_FP32}",
)
def _sums_of_floats(rng: np.random.Generator) -> Example:
    name, a, b = _any(rng, FLOATS), _floats(rng), _floats(rng)
    with np.errstate(all="ignore"):
        return Example(f"nl.{name}(a, b)", (a, b), "float32", FLOATS[name](a, b))


ROUNDINGS = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}


@row("`floor`, `ceil`, `trunc`", "exact; -0 keeps its sign, and `ceil(-0.5)` is -0", f"{IEEE}; {NUMPY}")
def _whole(rng: np.random.Generator) -> Example:
    name, a = _any(rng, ROUNDINGS), _floats(rng)
    return Example(f"nl.{name}(a)", (a,), "float32", ROUNDINGS[name](a))


@row(
    "`rsqrt` as an operation",
    "that of the function: NaN of negative numbers and -inf, -inf of -0, inf of +0, +0 of inf",
    f"{IEEE} rSqrt",
)
def _roots(rng: np.random.Generator) -> Example:
    values = np.array([0.0, -0.0, 4, 0.25, 16, -1, np.inf, -np.inf, np.nan], np.float32)
    a = rng.choice(values, SHAPE)
    scale = float(rng.choice([1, 4]))
    steps = f"op0=nl.multiply, operand0={scale}, op1=nl.rsqrt" if scale != 1 else "op0=nl.rsqrt, operand0=0.0"
    summed = "nisa.scalar_tensor_tensor(a, op0=nl.rsqrt, operand0=0.0, op1=nl.add, operand1=a)"
    with np.errstate(all="ignore"):
        if rng.random() < 0.4:
            return Example(summed, (a,), "float32", 1 / np.sqrt(a) + a)
        return Example(f"nisa.tensor_scalar(a, {steps})", (a,), "float32", 1 / np.sqrt(scale * a))


SIGNED_ZEROS = {
    "sqrt": -0.0, "rsqrt": -np.inf, "reciprocal": -np.inf, "tanh": -0.0, "sin": -0.0, "arctan": -0.0, "erf": -0.0,
    "square": 0.0, "abs": 0.0, "cos": 1.0, "exp": 1.0,
}  # fmt: skip


@row(
    "functions of -0",
    "-0 for `sqrt`, `tanh`, `sin`, `arctan`, `erf`; -inf for `rsqrt`, `reciprocal`; +0 for `abs`, `square`; 1 for "
    "`exp`, `cos`",
    IEEE,
)
def _functions_of_zeros(rng: np.random.Generator) -> Example:
    name = _any(rng, SIGNED_ZEROS)
    a = rng.choice(np.array([0.0, -0.0], np.float32), SHAPE)
    value = SIGNED_ZEROS[name]
    expected = np.copysign(value, a) if np.signbit(value) else np.full(SHAPE, value)
    return Example(f"nl.{name}(a)", (a,), "float32", expected.astype(np.float32))


@row(
    "`divide`, `mod`, `fmod`, `power` of integers, functions such as `exp`; integers beside floating-point numbers",
    "in FP32, to which integers are rounded; `power` with 2 is `square`; `divide` gives `float32`",
    AWS_FP32,
)
def _quotients(rng: np.random.Generator) -> Example:
    a, b = _integers(rng, _type(rng)), np.maximum(_integers(rng, _type(rng)), 1)
    expected = (a.astype(np.float64).astype(np.float32)) / (b.astype(np.float64).astype(np.float32))
    return Example("nl.divide(a, b)", (a, b), "float32", expected)


def updated_page(text: str) -> str:
    """Return the text of a documentation page with its table of semantics replaced by the current one."""
    rows = ((one.about, one.result, one.source) for one in ROWS)
    return replace_between(text, BEGIN, END, markdown_table(("operation", "result", "source"), rows) + "\n")


if __name__ == "__main__":
    PAGE.write_text(updated_page(PAGE.read_text()))

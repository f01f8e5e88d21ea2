"""Calls of nki.isa with random operands, and the expected results."""

from math import prod

import numpy as np

from neuroncore_rtl.tb.check.oracles.functions import reference
from tests.frontends.nki.random_operations import BITS, OPERATIONS, PLAIN, ROUNDINGS, compute, words_of
from tests.frontends.nki.sketch import FLOATS, INTEGERS, TYPES, Operand, Sketch, cases, round_fp32

CALLS, case = cases()


def kind(s: Sketch) -> tuple[str, ...]:
    return s.any(TYPES, TYPES, INTEGERS)


@case
def nc_matmul(s: Sketch) -> None:
    inner, columns, count = (s.count(1, most) for most in (16, 16, 40))
    narrow = *FLOATS[1:], "uint8"  # the array has no unsigned multiplier: bytes are converted
    dtype = s.any("float32", "int8", *narrow)
    other = dtype if dtype in ("float32", "int8") else s.any(*narrow)
    (_, *free), (_, *rest) = random_factors(s, columns), random_factors(s, count)
    low = 0 if s.chance(0.2) else -4
    whole = "int32" if dtype == "int8" else s.any("float32", "float32", "bfloat16")
    sums = s.target((columns, *rest), whole, memory="psum")
    accumulates = s.any("None", "True", "False")
    total = 0 if accumulates == "False" else sums.values.reshape(columns, -1)
    for again in range(s.count(1, 3)):
        a = s.source((inner, *free), dtype, low=low, repeats=s.chance(0.2))
        b = s.source((inner, *rest), other, low=low)
        place = ""
        if s.chance(0.3):
            rows, most = (next(n for n in (4, 8, 16) if n >= size) for size in (inner, columns))
            place = f", tile_position=({s.any(*range(0, 16, rows))}, {s.any(*range(0, 16, most))}), "
            place += f"tile_size=({rows}, {most})"
        adds = accumulates if not again else s.any("None", "True")
        s.call(f"nisa.nc_matmul(dst={sums.name}, stationary={a.name}, moving={b.name}, accumulate={adds}{place})")
        total = total + a.flat.T @ b.flat
    s.expect(sums, total.reshape(sums.shape))


def random_factors(s: Sketch, count: int) -> tuple[int, ...]:
    """Return a random reshape, with 0 for the open first dimension."""
    parts = [n for n in range(1, count + 1) if count % n == 0]
    first = s.any(*parts)
    return s.any((0, count), (0, first, count // first), (0, 1, first, count // first))


@case
def nc_transpose(s: Sketch) -> None:
    rows, columns, dtype = s.count(1, 16), s.count(1, 16), s.any(*TYPES)
    (_, *free), (_, *rest) = random_factors(s, columns), random_factors(s, rows)
    a, y = s.source((rows, *free), dtype), s.target((columns, *rest), dtype)
    s.gives(f"nisa.nc_transpose(dst={y.name}, data={a.name})", y, a.flat.T.reshape(y.shape))


@case
def tensor_copy(s: Sketch) -> None:
    a, y = s.pair(6, TYPES, TYPES, low=-9, high=9)
    engine = s.any("", ", engine=nisa.engine.vector", ", engine=nisa.engine.scalar", ", engine=nisa.engine.gpsimd")
    s.gives(f"nisa.tensor_copy(dst={y.name}, src={a.name}{engine})", y, a.values)


@case
def memset(s: Sketch) -> None:
    y = s.target(s.shape(6), s.any(*TYPES))
    value = s.any(0, 1, 0.0, 7.0, *((-3, 2.5) if y.is_float else () if y.dtype.startswith("u") else (-3,)))
    s.gives(f"nisa.memset(dst={y.name}, value={value})", y, np.array(value))


def operation(s: Sketch, operands: tuple[Operand, ...], target: str, *, first: bool = False) -> str:
    integers = words_of(*operands, target=target) is not None
    expected = s.any(*PLAIN, *(BITS if integers else ()), *(ROUNDINGS if first and not integers else ()))
    # A negative number has no bit pattern in an unsigned type.
    negative = target.startswith("u") and any((operand.values < 0).any() for operand in operands)
    # Magnitudes of UINT32 and of a type that is, or that PSUM holds as, INT32 are refused.
    dtypes = {operand.dtype for operand in operands}
    mixed = "uint32" in dtypes and len(dtypes) > 1
    refused = (negative and expected == "left_shift") or (mixed and expected in ("abs_max", "abs_min"))
    return "add" if refused else expected


@case
def tensor_tensor(s: Sketch) -> None:
    shape, types = s.shape(6), kind(s)
    y = s.target(shape, s.any(*types))
    divides = s.chance(0.2)
    a = s.source(shape, s.any(*types))
    b = s.source(shape, s.any(*types), low=1 if divides else 0 if types is INTEGERS else -4)
    op = s.any("divide", "mod", "fmod") if divides else operation(s, (a, b), y.dtype)
    s.call(f"nisa.tensor_tensor(dst={y.name}, data1={a.name}, data2={b.name}, op=nl.{op})")
    words = None if divides else words_of(a, b, target=y.dtype)
    s.expect(y, shifted_off(op, compute(op, a.values, b.values, words=words), y.dtype))


def shifted_off(op: str, values: np.ndarray, dtype: str) -> np.ndarray:
    return values.astype(dtype).astype(np.int64) if op == "left_shift" and dtype in INTEGERS else values


def broadcast(column: np.ndarray, values: np.ndarray) -> np.ndarray:
    return column if column.ndim == 0 else column.reshape(-1, *(1,) * (values.ndim - 1))


def scalar_operation(s: Sketch, a: Operand, y: Operand, values: np.ndarray, number: int) -> tuple[str, np.ndarray]:
    words = words_of(a, target=y.dtype)
    integer = words is not None
    op = operation(s, (a,), y.dtype, first=True)
    text, scalar = s.scalar(len(values), integer, low=0 if op in BITS or words == "uint32" else -4)
    if op in ROUNDINGS:
        text, scalar = "0.0", np.array(0.0)
    back = s.chance(0.4) and op not in (*BITS, *ROUNDINGS)
    column = broadcast(scalar, values)
    if not integer and s.chance(0.15):
        return f"op{number}=nl.abs, operand{number}=None", np.abs(values)
    pair = (column, values) if back else (values, column)
    reverse = f", reverse{number}=True" if back else ""
    expected = compute(op, *pair, words=words)
    return f"op{number}=nl.{op}, operand{number}={text}{reverse}", np.broadcast_to(expected, values.shape)


def without_uint32(types: tuple[str, ...]) -> tuple[str, ...]:
    """Omit uint32, because chains of its operations would need more than 32 bits."""
    return tuple(name for name in types if name != "uint32")


@case
def tensor_scalar(s: Sketch) -> None:
    shape, types = s.shape(6), without_uint32(kind(s))
    a, y = s.source(shape, s.any(*types)), s.target(shape, s.any(*types))
    first, expected = scalar_operation(s, a, y, a.values, 0)
    if s.chance():
        second, expected = scalar_operation(s, a, y, expected, 1)
        first = f"{first}, {second}"
    elif "left_shift" in first:
        expected = shifted_off("left_shift", expected, y.dtype)
    s.gives(f"nisa.tensor_scalar(dst={y.name}, data={a.name}, {first})", y, expected)


@case
def scalar_tensor_tensor(s: Sketch) -> None:
    shape, types = s.shape(6), without_uint32(kind(s))
    a, y = s.source(shape, s.any(*types)), s.target(shape, s.any(*types))
    b = s.source(shape, s.any(*types), low=0)
    words = words_of(a, b, target=y.dtype)
    meeting = a if words is None and a.is_float else b if words is None else a
    first, expected = scalar_operation(s, Operand(a.name, a.values, meeting.dtype), y, a.values, 0)
    op, back = operation(s, (a, b), y.dtype), s.chance(0.4)
    back = back and op not in BITS
    expected = compute(op, *((b.values, expected) if back else (expected, b.values)), words=words)
    s.gives(f"nisa.scalar_tensor_tensor(dst={y.name}, data={a.name}, {first}, op1=nl.{op}, operand1={b.name}, "
            f"reverse1={back})", y, expected)  # fmt: skip


@case
def tensor_tensor_scan(s: Sketch) -> None:
    shape, types = s.shape(3), s.any(FLOATS, without_uint32(INTEGERS), without_uint32(TYPES))
    a, y = s.source(shape, s.any(*types), low=-1, high=1), s.target(shape, s.any(*types))
    b = s.source(shape, s.any(*types))
    words = words_of(a, b, target=y.dtype)
    names = ["add", "subtract", "multiply", "maximum", "minimum"]
    ops, back = [s.any(*names) for _ in range(2)], [s.chance(0.3) for _ in range(2)]
    text, initial = s.scalar(shape[0], words is not None)
    last, expected = np.broadcast_to(initial.reshape(-1), shape[:1]).astype(np.float64), []
    for x0, x1 in zip(a.flat.T, b.flat.T, strict=True):
        for op, swap, operand, first in zip(ops, back, (x0, x1), (True, False), strict=True):
            # The first operand of op0 is the element, the second one the preceding result.
            one, other = (operand, last) if first else (last, operand)
            last = compute(op, *((other, one) if swap else (one, other)), words=words)
        expected.append(last)
    s.call(f"nisa.tensor_tensor_scan(dst={y.name}, data0={a.name}, data1={b.name}, initial={text}, op0=nl.{ops[0]}, "
           f"op1=nl.{ops[1]}, reverse0={back[0]}, reverse1={back[1]})")  # fmt: skip
    s.expect(y, np.stack(expected, 1).reshape(shape))


@case
def reciprocal(s: Sketch) -> None:
    a, y = s.pair(6, TYPES, TYPES, low=1)
    s.gives(f"nisa.reciprocal(dst={y.name}, data={a.name})", y, round_fp32(1 / a.values))


@case
def tensor_copy_predicated(s: Sketch) -> None:
    shape = s.shape(6)
    y = s.target(shape, s.any(*TYPES))
    keys = s.source(shape, s.any(*TYPES), low=-1, high=1)
    if s.chance(0.3):
        text, values = "3", np.array(3)
    else:
        a = s.source(shape, s.any(*TYPES))
        text, values = a.name, a.values
    reverse = s.chance(0.4)
    s.call(f"nisa.tensor_copy_predicated(dst={y.name}, src={text}, predicate={keys.name}, reverse_pred={reverse})")
    s.expect(y, np.where((keys.values != 0) != reverse, values, y.values))


def function_bounds(name: str, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a function of FP32 numbers, and the error bound of docs/activation.md."""
    exact = name in ("identity", "square", "abs", "sign", "relu")
    expected = np.asarray(reference(name, round_fp32(z)))
    near = np.zeros_like(expected) if exact else np.abs(expected) * 2.0**-21 + 2.0**-27
    return expected, near


FUNCTIONS = {
    "square": "square", "abs": "abs", "sign": "sign", "relu": "relu", "exp": "exp", "sqrt": "sqrt", "tanh": "tanh",
    "sigmoid": "sigmoid", "log": "ln", "gelu": "gelu", "copy": "identity",
}  # fmt: skip
"""Functions for calls of activations; each is also tested as a call of nki.language."""


def scaled_operand(s: Sketch, shape: tuple[int, ...], op: str) -> tuple[Operand, str, np.ndarray]:
    positive = op in ("sqrt", "log")
    a = s.source(shape, s.any(*TYPES), low=1 if positive else -4)
    z, text = a.values.astype(np.float64), ""
    if s.chance():
        name, scale = s.scalar(shape[0], False, low=1 if positive else -2, high=2)
        z, text = z * broadcast(scale, z), f", scale={name}"
    if s.chance():
        bias = s.column(shape[0], low=0 if positive else -4)
        z, text = z + broadcast(bias.values, z), f"{text}, bias={bias.name}"
    return a, text, z


@case
def activation(s: Sketch) -> None:
    shape, op = s.shape(6), s.any(*FUNCTIONS)
    sums = s.chance(0.3) and len(shape) < 5
    a, text, z = scaled_operand(s, shape, op)
    y = s.target(shape, s.any(*TYPES))
    expected, near = function_bounds(FUNCTIONS[op], z)
    if sums:
        total = s.target((shape[0], 1), s.any(*FLOATS))
        text += f", reduce_op=nl.add, reduce_res={total.name}, reduce_cmd=nisa.reduce_cmd.reset_reduce"
        expect_sums(s, total, expected, near)
    s.gives(f"nisa.activation(dst={y.name}, op=nl.{op}, data={a.name}{text})", y, expected, near)


def expect_sums(s: Sketch, total: Operand, values: np.ndarray, near: np.ndarray) -> None:
    flat = values.reshape(len(values), -1)
    whole = np.all(flat * 16 == np.rint(flat * 16)) and np.abs(flat).sum() < 2**19 and not near.any()
    error = 0.0 if whole else (near.reshape(flat.shape).sum(1) + np.abs(flat).sum(1) * flat.shape[1] * 2.0**-24)
    s.expect(total, flat.sum(1).reshape(total.shape), np.reshape(error, (-1, 1)) if not whole else 0.0)


@case
def activation_reduce(s: Sketch) -> None:
    shape, op = s.shape(3), s.any(*FUNCTIONS)
    a, text, z = scaled_operand(s, shape, op)
    y, total = s.target(shape, s.any(*TYPES)), s.target((shape[0], 1), s.any(*FLOATS))
    expected, near = function_bounds(FUNCTIONS[op], z)
    s.gives(f"nisa.activation_reduce(dst={y.name}, op=nl.{op}, data={a.name}{text}, reduce_op=nl.add, "
            f"reduce_res={total.name})", y, expected, near)  # fmt: skip
    expect_sums(s, total, expected, near)


@case
def tensor_reduce(s: Sketch) -> None:
    shape, types = s.shape(4), s.any(FLOATS, without_uint32(INTEGERS))
    op = s.any("add", "maximum", "minimum", "multiply", "abs_max", "abs_min", *(BITS if types is not FLOATS else ()))
    op = s.any("add", "bitwise_and", "bitwise_or") if "shift" in op else op
    axes = sorted({s.count(1, len(shape) - 1) for _ in range(s.count(1, 3))})
    a = s.source(shape, s.any(*types), low=-1 if op == "multiply" else -4, high=1 if op == "multiply" else 4)
    keeps, negates = s.chance(), s.chance(0.3)
    kept = tuple(1 if d in axes else n for d, n in enumerate(shape))
    left = tuple(n for d, n in enumerate(shape) if d not in axes)
    y = s.target(kept if keeps else (*left, 1) if len(left) == 1 else left, s.any(*types))
    words = words_of(a, target=y.dtype)
    order = [d for d in range(len(shape)) if d not in axes]
    terms = a.values.transpose((*order, *axes)).reshape(*(shape[d] for d in order), -1)
    expected = terms[..., 0]
    for n in range(1, terms.shape[-1]):
        expected = compute(op, expected, terms[..., n], words=words)
    axis = s.any(tuple(axes), tuple(d - len(shape) for d in axes)) if len(axes) > 1 else s.any(axes[0], tuple(axes))
    s.gives(f"nisa.tensor_reduce(dst={y.name}, op=nl.{op}, data={a.name}, axis={axis}, negate={negates}, "
            f"keepdims={keeps})", y, (-expected if negates else expected).reshape(y.shape))  # fmt: skip


@case
def bn_stats(s: Sketch) -> None:
    shape = s.shape(3, least=1)
    a, y = s.source(shape, s.any(*FLOATS)), s.target((shape[0], 6), s.any("float32", "bfloat16"))
    s.call(f"nisa.bn_stats(dst={y.name}, data={a.name})")
    expected = np.zeros((shape[0], 6))
    for n in range(2):
        part = a.flat[:, n::2]
        if part.size:
            expected[:, 3 * n : 3 * n + 3] = np.stack([np.full(shape[0], part.shape[1]), part.mean(1),
                                                    part.var(1) * part.shape[1]], 1)  # fmt: skip
    s.expect(y, expected, np.abs(expected) * 1e-6 + 1e-6)


@case
def bn_aggr(s: Sketch) -> None:
    rows, count = s.count(1, 16), s.count(1, 6)
    terms = [s.rng.integers(-8, 9, (rows, s.count(1, 9))) / 4 for _ in range(count)]
    triples = np.stack([np.stack([np.full(rows, t.shape[1]), t.mean(1), t.var(1) * t.shape[1]], 1) for t in terms], 1)
    a = s.source((rows, 3 * count), "float32", round_fp32(triples.reshape(rows, -1)))
    y = s.target((rows, 2), s.any("float32", "bfloat16", "float16"))
    whole = np.concatenate(terms, 1)
    expected = np.stack([whole.mean(1), whole.var(1)], 1)
    s.gives(f"nisa.bn_aggr(dst={y.name}, data={a.name})", y, expected, np.abs(expected) * 1e-6 + 1e-6)


def search_operand(s: Sketch) -> Operand:
    """Return an operand with at least 8 elements, many of them equal."""
    shape = s.shape(3)
    while prod(shape[1:]) < 8:
        shape = s.shape(3)
    return s.source(shape, s.any(*TYPES), low=-2, high=s.any(2, 9))


@case
def max8(s: Sketch) -> None:
    a = search_operand(s)
    y = s.target((len(a.flat), 8), s.any(*(FLOATS if a.is_float else TYPES)))
    s.gives(f"nisa.max8(dst={y.name}, src={a.name})", y, -np.sort(-a.flat, 1)[:, :8])


def places(row: np.ndarray, values: np.ndarray) -> list[int]:
    """Return the index in row of each of the values, -1 if absent; equal values get different indices."""
    left, expected = list(row), []
    for value in values:
        at = left.index(value) if value in left else -1
        expected.append(at)
        if at >= 0:
            left[at] = np.inf
    return expected


def search_values(s: Sketch, a: Operand) -> Operand:
    values = -np.sort(-a.flat, 1)[:, :8]
    if s.chance():
        values = values[:, s.rng.permutation(8)]
    if s.chance():
        values = values.copy()
        values[:, s.count(0, 7)] = 11
    return s.source((len(values), 8), a.dtype, values)


@case
def nc_find_index8(s: Sketch) -> None:
    a = search_operand(s)
    v, y = search_values(s, a), s.target((len(a.flat), 8), s.any("uint32", "uint16", "int32", "int16"))
    missing = np.iinfo(y.dtype).max if y.dtype.startswith("u") else -1
    expected = np.array([places(*pair) for pair in zip(a.flat, v.values, strict=True)])
    s.gives(
        f"nisa.nc_find_index8(dst={y.name}, data={a.name}, vals={v.name})", y, np.where(expected < 0, missing, expected)
    )


@case
def nc_match_replace8(s: Sketch) -> None:
    a = search_operand(s)
    v, y = search_values(s, a), s.target(a.shape, s.any(*(FLOATS if a.is_float else INTEGERS)))
    expected = np.array([places(*pair) for pair in zip(a.flat, v.values, strict=True)])
    left = a.flat.copy()
    for row, at in zip(left, expected, strict=True):
        row[at[at >= 0]] = 5
    more = ""
    if s.chance():
        at = s.target((len(left), 8), s.any("uint32", "int32", "uint16"))
        more = f", dst_idx={at.name}"
        backwards = np.array([places(*pair) for pair in zip(a.flat, v.values[:, ::-1], strict=True)])[:, ::-1]
        s.expect(at, np.where(backwards < 0, np.iinfo(at.dtype).max if at.dtype[0] == "u" else -1, backwards))
    s.call(f"nisa.nc_match_replace8(dst={y.name}, data={a.name}, vals={v.name}, imm=5{more})")
    s.expect(y, left.reshape(a.shape))


def pattern(s: Sketch, shape: tuple[int, ...]) -> tuple[str, np.ndarray]:
    steps, offset, across = [s.count(-9, 9) for _ in shape[1:]], s.count(-50, 50), s.count(-9, 9)
    index = np.indices(shape)
    expected = offset + across * index[0] + sum(step * at for step, at in zip(steps, index[1:], strict=True))
    pairs = [[step, n] for step, n in zip(steps, shape[1:], strict=True)]
    return f"pattern={pairs}, offset={offset}, channel_multiplier={across}", expected


@case
def iota(s: Sketch) -> None:
    shape = s.shape(4)
    y, (text, expected) = s.target(shape, s.any(*TYPES)), pattern(s, shape)
    s.gives(f"nisa.iota(dst={y.name}, {text})", y, expected % 2**32 if y.dtype == "uint32" else expected)


COMPARISONS = "equal", "not_equal", "greater", "greater_equal", "less", "less_equal"


@case
def affine_select(s: Sketch) -> None:
    shape = s.shape(4)
    a, y, (text, expected) = s.source(shape, s.any(*TYPES)), s.target(shape, s.any(*TYPES)), pattern(s, shape)
    op, (other, values) = s.any(*COMPARISONS), s.scalar(shape[0], True, low=0)
    s.call(f"nisa.affine_select(dst={y.name}, {text}, on_true_tile={a.name}, on_false_value={other}, cmp_op=nl.{op})")
    s.expect(y, np.where(OPERATIONS[op](expected, 0), a.values, broadcast(values, expected)))

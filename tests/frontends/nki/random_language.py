"""Functions of nki.language with random operands, and the expected results."""

import numpy as np

from tests.frontends.nki import random_isa, random_moves
from tests.frontends.nki.random_operations import BITS, FLOAT_RESULTS, PLAIN, ROUNDINGS, compute, words_of
from tests.frontends.nki.sketch import FLOATS, INTEGERS, TYPES, Operand, Sketch, cases, cast, round_fp32

CALLS, case = cases()


def assign(
    s: Sketch, y: Operand, expression: str, values: np.ndarray, error: np.ndarray | float = 0.0, together: bool = False,
    wraps: bool = False
) -> None:  # fmt: skip
    """Assign a function's result directly, with a mask (of whole rows if `together`), or through another tensor.

    `wraps`: the operation wraps below 0 in `uint32`, which is not drawn for the other tensor.
    """
    if s.chance(0.25):
        dtype, own = s.any(*(random_isa.without_uint32(TYPES) if wraps else TYPES)), s.name("v")
        s.call(f"{own} = {expression[:-1]}, dtype=nl.{dtype})")
        s.call(f"nisa.tensor_copy(dst={y.name}, src={own})")
        s.expect(y, values, error, through=dtype)
        return
    rows = len(y.values)
    if s.chance(0.25) and y.values.ndim == 2:
        columns = y.shape[1]
        left, few = s.count(0, rows), columns if together else s.any(columns, s.count(0, columns))
        mask = f"nl.arange({rows})[:, None] < {left}"
        mask = mask if few == columns else f"({mask}) & (nl.arange({columns})[None, :] < {few})"
        s.call(f"{y.name}[...] = {expression[:-1]}, mask={mask})")
        holds = np.zeros(y.shape, bool)
        holds[:left, :few] = True
        s.expect(y, np.where(holds, values, y.values), np.where(holds, error, 0))
        return
    s.gives(f"{y.name}[...] = {expression}", y, values, error)


@case(*PLAIN, *FLOAT_RESULTS, *BITS)
def binary(name: str, s: Sketch) -> None:
    shape = s.shape(4)
    # Unsigned words wrap below 0, floats do not: tensor_tensor covers them.
    types = INTEGERS if name in BITS else s.any(random_isa.without_uint32(TYPES), random_isa.without_uint32(INTEGERS))
    positive = name in ("divide", "mod", "fmod")
    y = s.target(shape, s.any(*(TYPES if name in BITS or positive else types)))
    # A negative number has no bit pattern in an unsigned type.
    a = s.source(shape, s.any(*types), low=0 if name == "left_shift" else -4)
    if s.chance(0.7):
        b = s.source(shape, s.any(*types), low=1 if positive else 0 if name in BITS else -4)
        other, values, operands = b.name, b.values, (a, b)
    else:
        integer = words_of(a, target=y.dtype) is not None and not positive
        other, values = s.scalar(shape[0], integer or name in BITS, low=1 if positive or name in BITS else -4)
        values, operands = random_isa.broadcast(values, a.values), (a,)
    words = None if positive else words_of(*operands, target="int32" if name in BITS and y.is_float else y.dtype)
    expected = compute(name, a.values, values, words=words)
    expression = f"nl.{name}({a.name}, {other})"
    if name in BITS:
        s.gives(f"{y.name}[...] = {expression}", y, random_isa.shifted_off(name, expected, y.dtype))
    else:
        assign(s, y, expression, np.broadcast_to(expected, shape), wraps=bool(words_of(*operands, target="uint32")))


@case
def power(s: Sketch) -> None:
    shape = s.shape(4)
    a, b, y = s.source(shape, s.any(*TYPES), low=1), s.source(shape, s.any(*TYPES)), s.target(shape, s.any(*TYPES))
    expected = a.values.astype(np.float64) ** b.values
    assign(s, y, f"nl.power({a.name}, {b.name})", expected, expected * 2.0**-21)


UNARY = {
    "abs": "abs", "arctan": "arctan", "cos": "cos", "erf": "erf", "erf_dx": "derf", "exp": "exp", "gelu": "gelu",
    "gelu_apprx_sigmoid": "gelu_sigmoid", "gelu_apprx_sigmoid_dx": "dgelu_sigmoid", "gelu_apprx_tanh": "gelu_tanh",
    "gelu_dx": "dgelu", "log": "ln", "mish": "mish", "relu": "relu", "rsqrt": "rsqrt", "sigmoid": "sigmoid",
    "sign": "sign", "silu": "silu", "silu_dx": "dsilu", "sin": "sin", "softplus": "softplus", "sqrt": "sqrt",
    "square": "square", "tanh": "tanh",
}  # fmt: skip


@case(*UNARY)
def unary(name: str, s: Sketch) -> None:
    a, y = s.pair(4, TYPES, TYPES, low=1 if name in ("log", "rsqrt", "sqrt") else -4)
    expected, near = random_isa.function_bounds(UNARY[name], a.values)
    assign(s, y, f"nl.{name}({a.name})", expected, near if near.any() else 0.0)


@case(*ROUNDINGS, "copy", "negative", "reciprocal", "logical_not", "invert")
def simple(name: str, s: Sketch) -> None:
    function, types, low = {
        **{rounding: (function, TYPES, -4) for rounding, function in ROUNDINGS.items()},
        "copy": (lambda a: a, TYPES, -4), "negative": (np.negative, ("float32", "bfloat16", "int8", "int32"), -4),
        "reciprocal": (lambda a: round_fp32(1 / a), TYPES, 1), "logical_not": (np.logical_not, TYPES, -1),
        "invert": (np.invert, ("int8", "int16", "int32"), -4),
    }[name]  # fmt: skip
    a, y = s.pair(4, types, types, low=low)
    assign(s, y, f"nl.{name}({a.name})", function(a.values), wraps=name in ("negative", "invert"))


@case
def static_cast(s: Sketch) -> None:
    shape, dtype = s.shape(4), s.any(*TYPES)
    a, y = s.source(shape, s.any(*TYPES), low=-9, high=9), s.target(shape, s.any(*TYPES))
    s.call(f"{s.name('v')} = nl.static_cast({a.name}, nl.{dtype})")
    s.call(f"nisa.tensor_copy(dst={y.name}, src=v{s.names})")
    s.expect(y, a.values, through=dtype)


@case
def tan(s: Sketch) -> None:
    a, y = s.pair(4, FLOATS, FLOATS, low=-1, high=1)
    expected = np.tan(a.values)
    assign(s, y, f"nl.tan({a.name})", expected, np.abs(expected) * 2.0**-20)


@case
def where(s: Sketch) -> None:
    shape = s.shape(4)
    keys, y = s.source(shape, s.any(*TYPES), low=-1, high=1), s.target(shape, s.any(*TYPES))
    names, values = [], []
    for _ in range(2):
        if s.chance(0.6):
            a = s.source(shape, s.any(*TYPES))
            names, values = [*names, a.name], [*values, a.values]
        else:
            name, value = s.scalar(shape[0], False)
            names, values = [*names, name], [*values, random_isa.broadcast(value, keys.values)]
    own, dtype = s.name("v"), s.any(*FLOATS)
    s.call(f"{own} = nl.where({keys.name}, {names[0]}, {names[1]}, dtype=nl.{dtype})")
    s.call(f"nisa.tensor_copy(dst={y.name}, src={own})")
    s.expect(y, np.where(keys.values != 0, *values), through=dtype)


@case
def dropout(s: Sketch) -> None:
    a, y = s.pair(4, FLOATS, FLOATS)
    s.call(f"{y.name}[...] = nl.dropout({a.name}, rate={s.any(0.0, 0.5, 1.0)})")
    s.expect_either(y, a.values, np.zeros(a.shape))


@case
def rand(s: Sketch) -> None:
    y, dtype = s.target(s.shape(3), s.any(*FLOATS)), s.any("float32", "bfloat16")
    s.gives(f"{y.name}[...] = nl.rand({y.shape}, dtype=nl.{dtype})", y, np.full(y.shape, 0.5), 0.5)


@case("sum", "prod", "max", "min", "mean", "var", "all")
def reduction(name: str, s: Sketch) -> None:
    shape = s.shape(4)
    axes = sorted({s.count(1, len(shape) - 1) for _ in range(s.count(1, 3))})
    order = [*(d for d in range(len(shape)) if d not in axes), *axes]
    keeps = s.chance() and name != "all"
    few = name == "prod"
    a = s.source(shape, s.any(*FLOATS), low=-1 if few or name == "all" else -4, high=1 if few else 4)
    left = tuple(n for d, n in enumerate(shape) if d not in axes)
    kept = tuple(1 if d in axes else n for d, n in enumerate(shape))
    y = s.target(kept if keeps else (*left, 1) if len(left) == 1 else left, s.any(*FLOATS))
    terms = a.values.transpose(order).reshape(*(shape[d] for d in order[: len(left)]), -1)
    function = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "mean": np.mean, "var": np.var,
                "all": np.all}[name]  # fmt: skip
    expected = function(terms, axis=-1).astype(np.float64).reshape(y.shape)
    if few:
        expected = terms[..., 0]
        for n in range(1, terms.shape[-1]):
            expected = round_fp32(expected * terms[..., n])
        expected = expected.reshape(y.shape)
    keeping = f", keepdims={keeps}" if name != "all" else ""
    s.call(f"{y.name}[...] = nl.{name}({a.name}, axis={tuple(axes)}{keeping})")
    s.expect(y, expected, np.abs(expected) * 2.0**-20 + 1e-6 if name in ("mean", "var") else 0.0)


@case
def softmax(s: Sketch) -> None:
    shape = s.shape(3)
    axis = s.any(tuple(range(1, len(shape))), -1, s.count(1, len(shape) - 1))
    a, y = s.source(shape, s.any(*FLOATS)), s.target(shape, s.any(*FLOATS))
    powers = np.exp(a.values)
    expected = powers / powers.sum(axis, keepdims=True)
    assign(s, y, f"nl.softmax({a.name}, axis={axis})", expected, expected * 2.0**-18, together=True)


@case
def rms_norm(s: Sketch) -> None:
    shape = s.count(1, 16), s.count(1, 40)
    a, w = (s.source(shape, s.any(*FLOATS)) for _ in range(2))
    y = s.target(shape, s.any(*FLOATS))
    expected = a.values / np.sqrt((a.values**2).mean(1, keepdims=True) + 1e-2) * w.values
    call = f"nl.rms_norm({a.name}, {w.name}, axis=1, n={shape[1]}, epsilon=1e-2)"
    assign(s, y, call, expected, np.abs(expected) * 2.0**-18, together=True)


@case
def transpose(s: Sketch) -> None:
    rows, columns = s.count(1, 16), s.count(1, 16)
    a, y = s.source((rows, columns), s.any(*TYPES)), s.target((columns, rows), s.any(*TYPES))
    s.gives(f"{y.name}[...] = nl.transpose({a.name})", y, a.values.T)


@case
def matmul(s: Sketch) -> None:
    inner, rows, columns, turned = s.count(1, 16), s.count(1, 16), s.count(1, 40), s.chance()
    dtype = s.any(*FLOATS, "int8")
    a = s.source((inner, rows) if turned else (rows, inner), dtype)
    b = s.source((inner, columns), dtype)
    y = s.target((rows, columns), s.any(*(TYPES if dtype != "int8" else random_isa.without_uint32(INTEGERS))))
    adds = s.chance(0.3)
    s.call(f"{y.name}[...] {'+' if adds else ''}= nl.matmul({a.name}, {b.name}, transpose_x={turned})")
    s.expect(y, (a.values.T if turned else a.values) @ b.values + (y.values if adds else 0))


@case
def broadcast_to(s: Sketch) -> None:
    shape = s.shape(3)
    few = tuple(1 if d and s.chance() else n for d, n in enumerate(shape))
    few = (1, *few[1:]) if s.chance(0.3) else few
    a, y = s.source(few, s.any(*TYPES)), s.target(shape, s.any(*TYPES))
    s.gives(f"{y.name}[...] = nl.broadcast_to({a.name}, {shape})", y, np.broadcast_to(a.values, shape))


@case
def expand_dims(s: Sketch) -> None:
    shape = s.shape(3)
    axis = s.count(1, len(shape))
    whole = (*shape[:axis], 1, *shape[axis:])
    a, y = s.source(shape, s.any(*TYPES)), s.target(whole, s.any(*TYPES))
    s.call(f"nisa.tensor_copy(dst={y.name}, src=nl.expand_dims({a.name}, {s.any(axis, axis - len(whole))}))")
    s.expect(y, a.values.reshape(whole))


@case
def load(s: Sketch) -> None:
    a, y = s.pair(4, TYPES, TYPES, memory="hbm")
    assign(s, y, f"nl.load({a.name})", a.values)


@case
def load_transpose2d(s: Sketch) -> None:
    rows, columns = s.count(1, 40), s.count(1, 16)
    a, y = s.source((rows, columns), s.any(*TYPES), memory="hbm"), s.target((columns, rows), s.any(*TYPES))
    s.gives(f"{y.name}[...] = nl.load_transpose2d({a.name})", y, a.values.T)


@case
def store(s: Sketch) -> None:
    shape = s.shape(4)
    y = s.target(shape, s.any(*TYPES), memory="hbm")
    if s.chance(0.2):
        s.gives(f"nl.store({y.name}, value=3)", y, np.array(3))
        return
    a, rest, rows = s.source(shape, s.any(*TYPES)), "", shape[0]
    expected = cast(a.values, y.dtype)
    if len(shape) == 2 and s.chance():
        left = s.count(0, rows)
        rest = f", mask=nl.arange({rows})[:, None] < {left}"
        expected = np.where(np.arange(rows)[:, None] < left, expected, y.values)
    s.gives(f"nl.store({y.name}, value={a.name}{rest})", y, expected)


@case
def atomic_rmw(s: Sketch) -> None:
    shape, types = s.shape(3), s.any(FLOATS, random_isa.without_uint32(INTEGERS))
    y, a = s.target(shape, s.any(*types), memory="hbm"), s.source(shape, s.any(*types))
    op = s.any("add", "maximum", "minimum")
    s.gives(f"nl.atomic_rmw({y.name}, {a.name}, op=nl.{op})", y, PLAIN[op](y.values, a.values))


@case
def gather_flattened(s: Sketch) -> None:
    shape = s.shape(3)
    a = s.source(shape, s.any(*TYPES))
    at = random_moves.numbers(s, (shape[0], *s.shape(2)[1:]), a.flat.shape[1])
    y = s.target(at.shape, s.any(*TYPES))
    s.call(f"{y.name}[...] = nl.gather_flattened({a.name}, {at.name})")
    s.expect(y, np.take_along_axis(a.flat, at.flat, 1).reshape(y.shape))


@case
def loop_reduce(s: Sketch) -> None:
    shape, rounds = s.shape(3), s.count(1, 4)
    terms = s.source((shape[0], rounds, *shape[1:]), s.any(*FLOATS), repeats=False)
    y, total = s.target(shape, s.any(*FLOATS)), s.name("v")
    s.call(f"{total} = nl.zeros({shape}, dtype=nl.float32, buffer=nl.sbuf)")
    s.call(f"for i in nl.affine_range({rounds}):")
    s.call(f"    {total}[...] = nl.loop_reduce({terms.name}[:, i], op=nl.add, loop_indices=[i])")
    s.gives(f"nisa.tensor_copy(dst={y.name}, src={total})", y, terms.values.sum(1))


@case("zeros", "ones", "full", "zeros_like")
def fill(name: str, s: Sketch) -> None:
    shape, dtype, memory = s.shape(3), s.any(*TYPES), s.any("sbuf", "psum")
    y, value = s.target(shape, s.any(*TYPES)), {"zeros": 0, "ones": 1}.get(name, 3)
    more = ", 3" if name == "full" else ""
    own = s.name("v")
    if name == "zeros_like":
        a, value = s.source(shape, dtype), 0
        s.call(f"{own} = nl.zeros_like({a.name})")
    else:
        s.call(f"{own} = nl.{name}({shape}{more}, dtype=nl.{dtype}, buffer=nl.{memory})")
    s.gives(f"nisa.tensor_copy(dst={y.name}, src={own})", y, np.array(value))


@case
def shared_constant(s: Sketch) -> None:
    shape, dtype = s.shape(3, elements=12), s.any(*TYPES)
    values = s.numbers(shape, dtype)
    y = s.target(shape, s.any(*TYPES), memory=s.any(*random_moves.PLACES))
    s.call(f"nisa.dma_copy(dst={y.name}, src=nl.shared_constant(np.array({values.tolist()}), dtype=nl.{dtype}))")
    s.expect(y, values)


@case
def shared_identity_matrix(s: Sketch) -> None:
    size, dtype = s.count(1, 16), s.any(*TYPES)
    y = s.target((size, size), dtype, memory=s.any(*random_moves.PLACES))
    if s.chance():
        s.call(f"nl.shared_identity_matrix({size}, dtype=nl.{dtype}, dst={y.name})")
    else:
        s.call(f"nisa.dma_copy(dst={y.name}, src=nl.shared_identity_matrix({size}, dtype=nl.{dtype}))")
    s.expect(y, np.eye(size))

"""Random functions of JAX: a step of each kind takes values of a pool, of any type and shape, and adds its results.

All draws depend on a seed, on shapes and on types only, so that every trace of a function is the same. Values that a
step may round in another order, or compute by another function, are *near*: only moves take them afterwards.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import jax
import ml_dtypes
import numpy as np
from jax import lax
from jax import numpy as jnp

from tests.frontends.xla.draws import BOOLEAN, INTEGERS, MOST, TYPES, Drawn, Pool, composed, draw_array, is_float

__all__ = ["KINDS", "RandomFunction"]

KINDS: dict[str, Callable[[Pool], list[Drawn]]] = {}
"""Steps by name."""


def _kind(step: Callable) -> None:
    """Add a step, which returns a value or a sequence of values."""
    KINDS[step.__name__.strip("_")] = lambda pool: _as_drawn(step(pool))


def _step(test: Callable[[Drawn], bool] = lambda _: True, *, moves: bool = False, near: bool = False) -> Callable:
    """Return a decorator that adds a step, which also gets a value for which the test holds, a near one if it moves."""

    def add(step: Callable) -> None:
        def take(pool: Pool) -> list[Drawn]:
            one = pool.take(test, near=moves)
            return _as_drawn(step(pool, one), near or one.near)

        KINDS[step.__name__.strip("_")] = take

    return add


def _as_drawn(found: Any, near: bool = False) -> list[Drawn]:
    return [Drawn(value, near) for value in (found if isinstance(found, list | tuple) else [found])]


def _summed(value: Any) -> Any:
    """Return a value with sums; the signs of zeros depend on where a sum starts."""
    return jnp.where(value == 0, jnp.zeros((), value.dtype), value)


# Moves: of any type, and of near values.


@_step(moves=True)
def _reshape(pool: Pool, one: Drawn) -> Any:
    size, shape = one.value.size, []
    while size > 1 and len(shape) < 4:
        factor = pool.one_of([n for n in range(1, size + 1) if size % n == 0])
        shape.append(factor)
        size //= factor
    return one.value.reshape(*shape, size)


@_step(lambda one: len(one.shape) > 1, moves=True)
def _transpose(pool: Pool, one: Drawn) -> Any:
    return jnp.transpose(one.value, pool.rng.permutation(len(one.shape)).tolist())


@_step(lambda one: len(one.shape) > 0, moves=True)
def _reverse(pool: Pool, one: Drawn) -> Any:
    axes = [d for d in range(len(one.shape)) if pool.rng.random() < 0.6]
    return lax.rev(one.value, axes)


@_step(lambda one: len(one.shape) < 4, moves=True)
def _broadcast(pool: Pool, one: Drawn) -> Any:
    rank = pool.number(len(one.shape), 4)
    axes = sorted(pool.rng.choice(rank, len(one.shape), replace=False).tolist())
    shape = [pool.number(1, 4) for _ in range(rank)]
    for d, axis in enumerate(axes):
        shape[axis] = one.shape[d] if one.shape[d] != 1 or pool.rng.random() < 0.5 else shape[axis]
    return lax.broadcast_in_dim(one.value, shape, axes)


@_step(lambda one: one.value.size > 1, moves=True)
def _slice(pool: Pool, one: Drawn) -> Any:
    starts = [pool.number(0, n - 1) for n in one.shape]
    ends = [pool.number(start + (pool.rng.random() < 0.95), n) for start, n in zip(starts, one.shape, strict=True)]
    return lax.slice(one.value, starts, ends, [pool.number(1, 3) for _ in starts])


@_step(lambda one: len(one.shape) > 0, moves=True)
def _pad(pool: Pool, one: Drawn) -> Any:
    sides = [(pool.number(-1, 2), pool.number(-1, 2), pool.number(0, 2)) for _ in one.shape]
    between = [n and (n - 1) * inner + n for (_, _, inner), n in zip(sides, one.shape, strict=True)]
    sides = [s if n + s[0] + s[1] >= 0 else (0, 0, s[2]) for s, n in zip(sides, between, strict=True)]
    return lax.pad(one.value, pool.like(one.of, ()), sides)


@_step(lambda one: len(one.shape) > 0, moves=True)
def _concatenate(pool: Pool, one: Drawn) -> Any:
    axis = pool.number(0, len(one.shape) - 1)
    others = []
    for _ in range(pool.number(1, 2)):
        shape = [pool.number(0, 3) if d == axis else n for d, n in enumerate(one.shape)]
        others.append(pool.like(one.of, shape))
    place = pool.number(0, len(others))
    return lax.concatenate([*others[:place], one.value, *others[place:]], axis)


def _index(pool: Pool, extent: int, shape: Sequence[int] = ()) -> Any:
    """Return indices, some out of range, that are values of the running program."""
    kind = pool.one_of([np.dtype(np.int32), np.dtype(np.int32), np.dtype(np.uint8), np.dtype(np.int16)])
    numbers = pool.like(kind, shape)
    return numbers % kind.type(extent + 2) - kind.type(1 if kind.kind == "i" else 0)


@_step(lambda one: len(one.shape) > 0 and one.value.size > 0, moves=True)
def _dynamic_slice(pool: Pool, one: Drawn) -> Any:
    size = [pool.number(1, n) for n in one.shape]
    return lax.dynamic_slice(one.value, [_index(pool, n).astype(np.int32) for n in one.shape], size)


@_step(lambda one: len(one.shape) > 0 and one.value.size > 0, moves=True)
def _dynamic_update(pool: Pool, one: Drawn) -> Any:
    size = [pool.number(1, n) for n in one.shape]
    starts = [_index(pool, n).astype(np.int32) for n in one.shape]
    return lax.dynamic_update_slice(one.value, pool.like(one.of, size), starts)


@_step(lambda one: len(one.shape) > 0 and one.value.size > 0, moves=True)
def _gather(pool: Pool, one: Drawn) -> Any:
    axis = pool.number(0, len(one.shape) - 1)
    mode = pool.one_of(["clip", "fill", "wrap"])
    if pool.rng.random() < 0.5:
        shape = [pool.number(1, 3) for _ in range(pool.number(0, 2))]
        indices = _index(pool, one.shape[axis], shape).astype(np.int32)
        return jnp.take(one.value, indices, axis, mode=mode)
    shape = [pool.number(1, 3) if d == axis else n for d, n in enumerate(one.shape)]
    indices = _index(pool, one.shape[axis], shape).astype(np.int32)
    return jnp.take_along_axis(one.value, indices, axis, mode=mode if mode != "wrap" else "fill")


@_step(moves=True)
def _select(pool: Pool, one: Drawn) -> Any:
    mask = pool.like(BOOLEAN, one.shape)
    others = pool.like(one.of, one.shape)
    return lax.select(mask, one.value, others) if pool.rng.random() < 0.5 else jnp.where(mask, others, one.value)


# Functions of elements.


@_step()
def _binary(pool: Pool, one: Drawn) -> Any:
    other = pool.like(one.of, one.shape)
    names = [lax.max, lax.min] + [lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor] * (not is_float(one.of))
    if one.of != BOOLEAN:
        names += [lax.add, lax.sub, lax.mul] * 2 + [lax.rem]
    if one.of in INTEGERS:
        names += [lax.div, lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic]
        names += [lax.mulhi] * (one.of.itemsize == 4)
    sides = (one.value, other) if pool.rng.random() < 0.5 else (other, one.value)
    # The barrier keeps XLA from a fused multiply-add.
    return lax.optimization_barrier(pool.one_of(names)(*sides))


@_step(lambda one: one.of != BOOLEAN and len(one.shape) == 1)
def _pairs(pool: Pool, one: Drawn) -> Any:
    """Append a function of an array and of itself along other dimensions."""
    row, column = one.value[None, :], one.value[:, None]
    table = pool.like(one.of, (one.value.size, one.value.size))
    first = pool.one_of([jnp.maximum, jnp.minimum])
    sides = (row, column) if pool.rng.random() < 0.5 else (column, row)
    return first(first(table, -sides[0] if pool.rng.random() < 0.5 else sides[0]), sides[1])


@_step(lambda one: one.of == np.float32 and one.value.ndim > 0, near=True)
def _quotient(pool: Pool, one: Drawn) -> Any:
    axis = pool.number(0, one.value.ndim - 1)
    divisor = jnp.abs(jnp.clip(pool.like(one.of, [1 if d == axis else n for d, n in enumerate(one.shape)]), -9, 9)) + 1
    return jnp.clip(one.value, -99, 99) / divisor


@_step()
def _unary(pool: Pool, one: Drawn) -> Any:
    if one.of == BOOLEAN:
        return lax.bitwise_not(one.value)
    names = [lax.neg, lax.sign]
    if is_float(one.of):
        names += [lax.floor, lax.ceil, lax.abs, lax.is_finite]
        names += [lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), lax.round] * (one.of.itemsize > 1)
    else:
        names += [lax.bitwise_not, lax.population_count, lax.clz, lambda x: lax.integer_pow(x, 3)]
        names += [lax.abs] * (one.of.kind == "i")
    return pool.one_of(names)(one.value)


@_step()
def _compare(pool: Pool, one: Drawn) -> Any:
    function = pool.one_of([lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge])
    return function(one.value, pool.like(one.of, one.shape))


@_step(lambda one: one.of != BOOLEAN)
def _clamp(pool: Pool, one: Drawn) -> Any:
    shape = () if pool.rng.random() < 0.5 else one.shape
    low, high = pool.like(one.of, shape), pool.like(one.of, shape)
    return lax.clamp(lax.min(low, high), one.value, lax.max(low, high))


@_step()
def _convert(pool: Pool, one: Drawn) -> Any:
    to = pool.one_of(TYPES)
    # Of integers of more bits than a float has, JAX's CPU rounds twice.
    value = one.value & one.of.type(127) if is_float(to) and one.of in INTEGERS else one.value
    if is_float(to) and is_float(one.of) and one.of != np.float32:
        value = value.astype(np.float32)
    return lax.convert_element_type(value, to)


@_step(lambda one: one.of != BOOLEAN)
def _bitcast(pool: Pool, one: Drawn) -> Any:
    bits = one.of.itemsize
    if is_float(one.of):
        # Functions leave the bits of NaN open.
        value = jnp.where(jnp.isnan(one.value), jnp.array(1, one.of), one.value)
        return lax.bitcast_convert_type(value, pool.one_of([np.dtype(f"i{bits}"), np.dtype(f"u{bits}")]))
    others = [to for to in TYPES if to.itemsize == bits and to not in (one.of, BOOLEAN)]
    to = pool.one_of(others)
    if not is_float(to):
        return lax.bitcast_convert_type(one.value, to)
    # Numbers from 1 to 2: none is subnormal.
    info = ml_dtypes.finfo(to)
    first = int(np.array(1, to).view(f"u{bits}"))
    mantissa, sign = (1 << info.nmant) - 1, 1 << (8 * bits - 1)
    codes = one.value.astype(f"u{bits}") & np.array(mantissa | sign, f"u{bits}") | np.array(first, f"u{bits}")
    return lax.bitcast_convert_type(codes, to)


@_step(lambda one: is_float(one.of) and one.of.itemsize > 1)
def _precision(pool: Pool, one: Drawn) -> Any:
    return lax.reduce_precision(one.value, *pool.one_of([(5, 2), (8, 7), (4, 3), (5, 10)]))


@_step(lambda one: one.of == np.float32, near=True)
def _function(pool: Pool, one: Drawn) -> Any:
    names = [jnp.exp, jnp.tanh, jax.nn.sigmoid, lax.erf, jnp.sin, jnp.cos, jax.nn.silu, jax.nn.gelu, jnp.expm1]
    return pool.one_of(names)(jnp.clip(one.value, -8, 8))


# Reductions, products, windows, sorts.


@_step(lambda one: len(one.shape) > 0)
def _reduce(pool: Pool, one: Drawn) -> Any:
    axes = [d for d in range(len(one.shape)) if pool.rng.random() < 0.6] or [0]
    keep = pool.rng.random() < 0.4
    if one.of == BOOLEAN:
        return pool.one_of([jnp.any, jnp.all, jnp.sum])(one.value, axis=tuple(axes), keepdims=keep)
    count = prod(one.shape[d] for d in axes)
    names = [jnp.max, jnp.min] if count else []
    if not is_float(one.of):
        names += [jnp.sum, jnp.prod, jnp.bitwise_and.reduce, jnp.bitwise_or.reduce, jnp.bitwise_xor.reduce]
    else:
        most, terms = (8, 16) if one.of.itemsize > 1 else (1, 4)
        names += [lambda x, **kw: jnp.sum(pool.small(x, most), **kw)] * (count <= terms)
    return pool.one_of(names)(one.value, axis=tuple(axes), keepdims=keep)


@_step(lambda one: len(one.shape) > 0 and one.value.size > 0)
def _extremum(pool: Pool, one: Drawn) -> Any:
    return pool.one_of([jnp.argmax, jnp.argmin])(one.value, axis=pool.number(0, len(one.shape) - 1))


@_step(lambda one: len(one.shape) > 0 and one.of in INTEGERS)
def _reduce_pairs(pool: Pool, one: Drawn) -> Any:
    other, start = pool.like(one.of, one.shape), (one.of.type(1), one.of.type(0))
    axis = pool.number(0, len(one.shape) - 1)
    return lax.reduce((one.value, other), start, composed, (axis,))


@_step(lambda one: len(one.shape) > 0 and one.of != BOOLEAN and one.value.size > 0)
def _cumulate(pool: Pool, one: Drawn) -> Any:
    axis, names = pool.number(0, len(one.shape) - 1), [lax.cummax, lax.cummin]
    names += [lax.cumsum, lax.cumprod] * (one.of in INTEGERS)
    return pool.one_of(names)(one.value, axis, reverse=bool(pool.number(0, 1)))


@_step(lambda one: 0 < len(one.shape) and one.of != BOOLEAN and one.value.size > 0)
def _windows(pool: Pool, one: Drawn) -> Any:
    rank, low, high = len(one.shape), *_limits(one.of)
    size = [pool.number(1, min(3, n)) for n in one.shape]
    stride, dilation, spread = ([pool.number(1, 2) for _ in range(rank)] for _ in range(3))
    padding = [(pool.number(0, 1), pool.number(0, 1)) for _ in range(rank)]
    extents = [(n - 1) * s + 1 + sum(p) for n, s, p in zip(one.shape, spread, padding, strict=True)]
    dilation = [d if (w - 1) * d < n else 1 for d, w, n in zip(dilation, size, extents, strict=True)]
    body, start = pool.one_of([(lax.max, low), (lax.min, high)])
    if one.of in INTEGERS and pool.rng.random() < 0.5:
        body, start = lax.add, one.of.type(0)
    return lax.reduce_window(
        one.value, start, body, size, stride, padding, base_dilation=spread, window_dilation=dilation
    )


def _limits(of: np.dtype) -> tuple[Any, Any]:
    if is_float(of):
        return of.type(-np.inf), of.type(np.inf)
    return of.type(np.iinfo(of).min), of.type(np.iinfo(of).max)


@_step(lambda one: one.of == np.float32 and 0 < len(one.shape) < 3 and one.value.size > 0)
def _select_and_scatter(pool: Pool, one: Drawn) -> Any:
    from jax._src.lax.windowed_reductions import _select_and_scatter_add

    size = [pool.number(1, min(3, n)) for n in one.shape]
    stride = [pool.number(1, 3) for _ in size]
    padding = [(pool.number(0, w - 1), pool.number(0, w - 1)) for w in size]
    sides = zip(one.shape, size, stride, padding, strict=True)
    counts = [(n + sum(p) - w) // s + 1 for n, w, s, p in sides]
    source = pool.small(pool.like(one.of, counts), 8)
    select = pool.one_of([lax.ge_p, lax.le_p])
    return _summed(_select_and_scatter_add(source, one.value, select, size, stride, padding))


@_step(lambda one: 0 < len(one.shape) < 4)
def _dot(pool: Pool, one: Drawn) -> Any:
    rank = len(one.shape)
    dims = pool.rng.permutation(rank).tolist()
    batch, contract = dims[: pool.number(0, min(1, rank - 1))], dims[1 : 1 + pool.number(0, 1)]
    shape = [*(one.shape[d] for d in batch), *(one.shape[d] for d in contract)]
    shape += [pool.number(1, 5) for _ in range(pool.number(0, 2))]
    order = pool.rng.permutation(len(shape)).tolist()
    other = pool.like(one.of, [shape[d] for d in order])
    places = [order.index(d) for d in range(len(batch) + len(contract))]
    numbers = (contract, places[len(batch) :]), (batch, places[: len(batch)])
    few = 3 if one.of.itemsize > 1 else 1
    return _summed(lax.dot_general(pool.small(one.value, few), pool.small(other, few), numbers))


@_step(lambda one: one.of == np.int8 and len(one.shape) == 2)
def _quantised(pool: Pool, one: Drawn) -> Any:
    other = pool.like(one.of, (one.shape[1], pool.number(1, 6)))
    return lax.dot(one.value, other, preferred_element_type=np.int32)


@_step(lambda one: len(one.shape) == 4 and one.value.size > 0)
def _convolution(pool: Pool, one: Drawn) -> Any:
    groups = pool.one_of([n for n in range(1, one.shape[1] + 1) if one.shape[1] % n == 0])
    size = [pool.number(1, 3) for _ in range(2)]
    filters = pool.like(one.of, (groups * pool.number(1, 2), one.shape[1] // groups, *size))
    # Products with padding, NaN there, are left out.
    filters = jnp.where(filters == filters, filters, jnp.ones((), one.of))
    few = 2 if one.of.itemsize > 1 else 1
    return _summed(lax.conv_general_dilated(
        pool.small(one.value, few), pool.small(filters, few), [pool.number(1, 2) for _ in size],
        [(pool.number(0, 2) + size[0], pool.number(0, 2)), (pool.number(0, 2) + size[1], pool.number(0, 1))],
        [pool.number(1, 2) for _ in size], [1, 1],
        feature_group_count=groups,
    ))  # fmt: skip


@_step(lambda one: len(one.shape) > 0 and one.value.size > 0)
def _sort(pool: Pool, one: Drawn) -> Any:
    others = [pool.like(pool.one_of(TYPES), one.shape) for _ in range(pool.number(0, 2))]
    axis, keys = pool.number(0, len(one.shape) - 1), pool.number(1, 1 + len(others))
    return lax.sort((one.value, *others), dimension=axis, num_keys=keys)


@_step(lambda one: len(one.shape) > 0 and one.value.size > 0 and one.of != BOOLEAN)
def _top(pool: Pool, one: Drawn) -> Any:
    return lax.top_k(one.value, pool.number(1, one.shape[-1]))


@_step(lambda one: len(one.shape) > 0 and one.value.size > 0)
def _scatter(pool: Pool, one: Drawn) -> Any:
    count = pool.number(1, 5)
    indices = _index(pool, one.shape[0], (count,)).astype(np.int32)
    updates = pool.like(one.of, (count, *one.shape[1:]))
    names = ["set", "min", "max"] + ["add", "multiply", "subtract"] * (one.of in INTEGERS)
    names = ["set"] if one.of == BOOLEAN else names
    place = one.value.at[indices]
    return getattr(place, pool.one_of(names))(updates, mode=pool.one_of(["drop", "clip"]))


@_step(lambda one: len(one.shape) > 0 and one.of != BOOLEAN and one.value.size > 0)
def _segments(pool: Pool, one: Drawn) -> Any:
    indices = _index(pool, 3, one.shape[:1]).astype(np.int32)
    value = pool.small(one.value, 8 if one.of.itemsize > 1 else 1)
    return _summed(jax.ops.segment_sum(value, indices, num_segments=pool.number(1, 4)))


@_step(lambda one: len(one.shape) > 0 and one.of in INTEGERS and one.value.size > 0)
def _scan(pool: Pool, one: Drawn) -> Any:
    other = pool.like(one.of, one.shape)
    return lax.associative_scan(composed, (one.value, other))


@_kind
def _iota(pool: Pool) -> Any:
    shape = [pool.number(1, 5) for _ in range(pool.number(1, 3))]
    return lax.broadcasted_iota(pool.one_of(TYPES[:-1]), shape, pool.number(0, len(shape) - 1))


@_kind
def _constant(pool: Pool) -> Any:
    shape = [pool.number(1, 5) for _ in range(pool.number(0, 3))]
    return jnp.asarray(draw_array(pool.rng, shape, pool.one_of(TYPES)))


# Control: the blocks inside are drawn like a function.


def _block(pool: Pool, carried: Sequence[Any], seed: int, also: Sequence[Any] = ()) -> list[Any]:
    """Return new values of the types and shapes of some values, by steps on them."""
    inner = Pool(np.random.default_rng(seed), [Drawn(one) for one in (*carried, *also)])
    for _ in range(3):
        _append(inner, [name for name in KINDS if name not in ("function", "loop", "while", "branches")])
    return [inner.like(np.dtype(one.dtype), one.shape) for one in carried]


@_kind
def _loop(pool: Pool) -> Any:
    carried = [pool.take(lambda one: one.of in (*INTEGERS, BOOLEAN) and one.value.size < 60).value for _ in range(2)]
    seed, outside = pool.number(0, 1 << 30), carried[0]
    rounds = pool.number(0, 4)
    if pool.rng.random() < 0.5:
        rounds = jnp.abs(pool.like(np.dtype(np.int32), ())) % 5
    return lax.fori_loop(0, rounds, lambda i, c: tuple(_block(pool, c, seed, (i, outside))), tuple(carried))


@_step(lambda one: one.of in INTEGERS and 0 < one.value.size < 60)
def _while(pool: Pool, one: Drawn) -> Any:
    seed, limit = pool.number(0, 1 << 30), pool.number(1, 6)

    def body(carry):
        number, value = carry
        return number + 1, _block(pool, (value,), seed, (number,))[0]

    def more(carry):
        return (carry[0] < limit) & (carry[1].reshape(-1)[0] % one.of.type(5) != one.of.type(0))

    return lax.while_loop(more, body, (jnp.int32(0), one.value))


@_kind
def _branches(pool: Pool) -> Any:
    carried = [pool.take(lambda one: one.of in (*INTEGERS, BOOLEAN) and one.value.size < 200).value for _ in range(2)]
    seeds = [pool.number(0, 1 << 30) for _ in range(pool.number(1, 3))]
    index = pool.like(np.dtype(np.int32), ()) % 4
    branches = [lambda *c, seed=seed: tuple(_block(pool, c, seed)) for seed in seeds]
    return lax.switch(index, branches, *carried)


def _append(pool: Pool, names: Sequence[str]) -> str | None:
    """Append the results of a step, if there are values for one."""
    for _ in range(20):
        name = pool.one_of(names)
        try:
            found = KINDS[name](pool)
        except ValueError as error:
            if str(error) != "there must be such a value":
                raise
            continue
        if all(one.value.size <= MOST and one.value.ndim <= 5 for one in found):
            pool.values += found
            return name
    return None


class RandomFunction:
    """A function of drawn steps; `args` are arrays for it, `steps` the names of its steps once it has been traced."""

    def __init__(self, seed: int, depth: int = 8, names: Sequence[str] = ()):
        self.seed, self.depth, self.names = seed, depth, names or [*KINDS]
        rng = np.random.default_rng([seed, 1])
        self.args = []
        for _ in range(4):
            shape = [int(rng.integers(1, 7)) for _ in range(int(rng.integers(0, 5)))]
            shape = shape if prod(shape) <= MOST else shape[:2]
            self.args.append(draw_array(rng, shape, TYPES[int(rng.integers(len(TYPES)))]))
        self.near: list[bool] = []
        self.steps: list[str | None] = []

    def __call__(self, *args):
        """Return the values of a random half of the steps, and of the last one."""
        pool = Pool(np.random.default_rng([self.seed, 2]), [Drawn(jnp.asarray(one)) for one in args])
        self.steps = [_append(pool, self.names) for _ in range(self.depth)]
        new = pool.values[len(args) :]
        chosen = [one for at, one in enumerate(new) if pool.rng.random() < 0.5 or at == len(new) - 1]
        self.near = [one.near for one in chosen]
        return [one.value for one in chosen]

"""Indexing: slices, gathers and scatters of drawn shapes, indices and modes have JAX's results."""

from functools import partial

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp
from ml_dtypes import bfloat16

from neuroncore_rtl.frontends.xla import jit
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.spec.isa import DmaCopy
from tests.frontends.xla.results import compare, compare_all, compare_calls, differences

SEED = 41
TYPES = ("float32", "bfloat16", "int32", "uint8", "int16", "bool")
SUM = 1e-6
"""Largest difference of sums of a few FP32 numbers, relative to the largest one."""


def draw(rng, shape, dtype="float32"):
    """Return numbers of all magnitudes of a type, and of a float its special values."""
    if dtype in ("float32", "bfloat16"):
        found = rng.normal(size=shape) * np.where(rng.random(shape) < 0.1, 1e30, 1)
        special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan], shape)
        return np.where(rng.random(shape) < 0.2, special, found).astype(jnp.dtype(dtype))
    if dtype == "bool":
        return rng.random(shape) < 0.5
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


def numbers(rng, extent, shape, outside=True):
    """Return indices of a dimension, some of them out of range."""
    return rng.integers(-extent - 2 if outside else 0, extent + 2 if outside else extent, shape).astype(np.int32)


@pytest.mark.parametrize("dtype", ["float32", "int16", "bool"])
def test_numpy_indexing(rng, dtype):
    x, i, j = draw(rng, (5, 6, 7), dtype), numbers(rng, 5, (4,)), numbers(rng, 6, (3, 1))
    n, mask = np.int32(3), rng.random((5, 6)) < 0.5

    def indexed(x, i, j, n):
        basic = x[2], x[n], x[-1, n], x[:, n, 1:6:2], jnp.where(mask[..., None], x, x[0, 0, 0])
        arrays = x[i], x[i, j], x[:, i], x[i, :, j], x[..., i, None], x[i, ::-1, 2]
        return basic, arrays, x.at[i].get(mode="fill", fill_value=1), x.at[j, i].get(mode="clip")

    compare(indexed, x, i, j, n)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_indices_of_all_types_are_clamped(rng, dtype):
    """Starts out of range move into it, or drop an update. JAX's CPU is no reference: it computes in narrow types."""
    limits = np.iinfo(dtype)
    x, u = np.arange(300, dtype=np.float32), -np.arange(1, 4, dtype=np.float32)
    take, put = lax.GatherDimensionNumbers((0,), (), (0,)), lax.ScatterDimensionNumbers((0,), (), (0,))

    def function(x, u, i):
        slices = lax.dynamic_slice(x, (i,), (20,)), lax.gather(x, i[None], take, (20,), mode="clip")
        return *slices, lax.dynamic_update_slice(x, u, (i,)), lax.scatter(x, i[None], u, put, mode="fill")

    machine = jit(function, preset="tiny", target="golden")
    for start in (limits.min, limits.max, 7, min(298, limits.max)):
        found = machine(x, u, np.array(start, dtype))
        at, to = min(max(start, 0), 280), min(max(start, 0), 297)
        updated = np.concatenate([x[:to], u, x[to + 3 :]])
        expected = [x[at : at + 20], x[at : at + 20], updated, updated if start == to else x]
        assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_drawn_dynamic_slices(seed):
    rng, cases = np.random.default_rng(seed), []
    for _ in range(8):
        shape = tuple(rng.integers(1, 7, rng.integers(1, 5)).tolist())
        size = tuple(int(rng.integers(1, extent + 1)) for extent in shape)
        dtype = TYPES[rng.integers(len(TYPES))]
        x, u = draw(rng, shape, dtype), draw(rng, size, dtype)
        starts = [numbers(rng, extent, ()) for extent in shape]
        cases.append((lambda x, *i, size=size: lax.dynamic_slice(x, i, size), x, *starts))
        cases.append((lambda x, u, *i: lax.dynamic_update_slice(x, u, i), x, u, *starts))
    compare_all(*cases)


def draw_numbers(rng):
    """Return the shape of an array, window, shape of index vectors, and dimensions of a gather or scatter."""
    rank = int(rng.integers(1, 5))
    shape = tuple(rng.integers(1, 6, rank).tolist())
    kinds = rng.choice(["window", "collapsed", "batching"], rank, p=[0.5, 0.35, 0.15])
    if rng.random() < 0.5:
        kinds[kinds == "batching"] = "collapsed"
    batching = tuple(np.flatnonzero(kinds == "batching").tolist())
    collapsed = tuple(np.flatnonzero(kinds == "collapsed").tolist())
    size = [
        1 if d in batching + collapsed else n if rng.random() < 0.4 else int(rng.integers(1, n + 1))
        for d, n in enumerate(shape)
    ]
    mapped = [d for d in range(rank) if d not in batching and (d in collapsed or rng.random() < 0.6)]
    mapped = tuple(rng.permutation(mapped).tolist())
    batch = [*(shape[d] for d in batching), *rng.integers(1, 5, int(rng.integers(0, 3))).tolist()]
    order = rng.permutation(len(batch)).tolist()
    indices_batch = tuple(order.index(k) for k in range(len(batching)))
    batch = [batch[k] for k in order]
    window = [size[d] for d in range(rank) if d not in batching + collapsed]
    total = len(batch) + len(window)
    offset = tuple(sorted(rng.choice(total, len(window), replace=False).tolist()))
    vectors = np.stack([numbers(rng, shape[d], batch) for d in mapped], -1) if mapped else np.zeros((*batch, 0), "i4")
    return shape, size, vectors, window, offset, collapsed, mapped, batching, indices_batch


@pytest.mark.parametrize("seed", range(5))
def test_drawn_gathers(seed):
    rng, cases = np.random.default_rng(seed), []
    for _ in range(8):
        shape, size, vectors, _, offset, collapsed, mapped, batching, places = draw_numbers(rng)
        dimensions = lax.GatherDimensionNumbers(offset, collapsed, mapped, batching, places)
        x = draw(rng, shape, TYPES[rng.integers(len(TYPES))])
        for mode in ("clip", "fill") if mapped else ("clip",):
            gather = partial(lax.gather, dimension_numbers=dimensions, slice_sizes=tuple(size), mode=mode)
            cases.append((gather, x, vectors))
    compare_all(*cases)


COMBINE = {
    "set": lax.scatter, "add": lax.scatter_add, "multiply": lax.scatter_mul, "min": lax.scatter_min,
    "max": lax.scatter_max,
}  # fmt: skip


@pytest.mark.parametrize("function", COMBINE)
@pytest.mark.parametrize("seed", range(2))
def test_drawn_scatters(seed, function):
    """Integers are exact, also where windows overlap; floats are small integers with exact sums and products."""
    rng, cases = np.random.default_rng([seed, len(function)]), []
    for _ in range(4):
        shape, _, vectors, window, inner, inserted, mapped, batching, places = draw_numbers(rng)
        dimensions = lax.ScatterDimensionNumbers(inner, inserted, mapped, batching, places)
        batch, sizes = iter(vectors.shape[:-1]), iter(window)
        update = [next(sizes) if d in inner else next(batch) for d in range(len(window) + vectors.ndim - 1)]
        dtype = ("float32", "int32", "uint8", "int16")[rng.integers(4)]
        x, u = (draw(rng, one, dtype) for one in (shape, update))
        if dtype == "float32" and function in ("add", "multiply"):
            x, u = rng.integers(1, 9, shape).astype(dtype), rng.integers(-2, 3, update).astype(dtype)
        for mode in ("clip", "fill"):
            cases.append((partial(COMBINE[function], dimension_numbers=dimensions, mode=mode), x, vectors, u))
    compare_all(*cases)


@pytest.mark.parametrize(("rows", "dtype"), [(4, "int32"), (4, "uint32"), (40, "int32"), (40, "int8")])
def test_updates_of_repeated_rows(rng, rows, dtype):
    """There are more or less updates than rows of the table."""
    x, u, i = draw(rng, (rows, 3), dtype), draw(rng, (9, 3), dtype), numbers(rng, rows, (9,))
    i[5:] = i[:4]

    def updated(x, i, u):
        names = "set", "add", "subtract", "multiply", "min", "max"
        whole = [getattr(x.at[i], name)(u) for name in names]
        return whole, [getattr(x.at[i, 1], name)(u[:, 0], mode="drop") for name in names]

    compare(updated, x, i, u)


@pytest.mark.parametrize("rows", [4, 40])
def test_sums_of_special_values(rows):
    """Infinity and NaN reach only their rows; -0 of rows without updates stays."""
    x = np.resize(np.array([-0.0, 1, np.inf, 2, 3], np.float32), rows)
    i = np.array([1, 1, 2, 3, 3, 1, 99], np.int32)
    u = np.array([np.inf, 3, -np.inf, np.nan, 1, 1e38, np.nan], np.float32)
    infinite = np.resize(np.array([np.inf, -np.inf], np.float32), 7)
    compare_calls(lambda x, i, u: x.at[i].add(u), (x, i, u), (x, i, infinite))


@pytest.mark.parametrize("rows", [5, 200])
def test_sums_of_floats_are_rounded_once_per_addition(rng, rows):
    x, u = (rng.normal(size=shape).astype(np.float32) for shape in ((rows, 6), (50, 6)))
    i = rng.integers(0, rows, 50).astype(np.int32)
    found = compare(lambda x, i, u: x.at[i].add(u), x, i, u, tolerance=SUM)
    (got,), _ = found.compiled.execute([x, i, u], "golden")
    expected = x.astype(np.float64)
    np.add.at(expected, i, u.astype(np.float64))
    size = np.abs(x).astype(np.float64)
    np.add.at(size, i, np.abs(u).astype(np.float64))
    assert (np.abs(got - expected) <= size * 50 * 2.0**-24).all()


def test_no_option_rounds_updates(rng):
    x, u, i = np.zeros(5, np.float32), rng.normal(size=3).astype(np.float32), np.array([1, 4, 2], np.int32)
    machine = jit(lambda x, u, i: x.at[i].add(u), preset="tiny", target="golden", auto_cast="matmult")
    assert np.array_equal(machine(x, u, i)[i], u)


def test_other_functions_of_repeated_rows_follow_in_order(rng):
    x, i = rng.integers(-9, 9, (5, 3)).astype(np.int32), numbers(rng, 5, (6,))
    i[4:] = i[:2]
    compare(lambda x, i: x.at[i].apply(lambda one: one * 3 + 1), x, i)
    with pytest.raises(Refused, match="repeated indices must be combined"):
        compare(lambda x, i: x.at[i].apply(lambda one: one * 3 + 1), x, np.zeros(300, np.int32))


def test_unique_indices_are_combined_without_products(rng):
    x, u, i = draw(rng, (6, 3)), draw(rng, (2, 3)), np.array([4, 1], np.int32)
    found = compare(lambda x, i, u: x.at[i].add(u, unique_indices=True), x, i, u)
    assert not [one for one in found.compiled.program.steps if one.instruction.engine.name == "TENSOR"]


def test_segments(rng):
    i, cases = rng.integers(-1, 6, 30).astype(np.int32), []
    for dtype in ("int32", "float32"):
        x = rng.integers(-50, 50, (30, 3)).astype(dtype)
        for name in ("sum", "max", "min", "prod"):
            function = partial(getattr(jax.ops, f"segment_{name}"), num_segments=5)
            cases.append((function, np.sign(x) if name == "prod" else x, i))
    compare_all(*cases, (lambda i: jnp.bincount(i, length=6), np.abs(i)))


def test_gradients_of_indexing(rng):
    x = rng.normal(size=(6, 7)).astype(np.float32)
    i, j = numbers(rng, 6, (9,), outside=False), numbers(rng, 7, (6, 3), outside=False)
    weight = rng.normal(size=(9, 7)).astype(np.float32)
    functions = [
        lambda x, i, j, w: (x[i] * w).sum(),
        lambda x, i, j, w: (jnp.take_along_axis(x, j, 1) ** 2).sum(),
        lambda x, i, j, w: (x[i, i] * w[:, 0]).sum(),
        lambda x, i, j, w: (lax.dynamic_slice(x, (i[0], i[1]), (2, 3)) ** 3).sum(),
        lambda x, i, j, w: (lax.dynamic_update_slice(x, w[:2, :3], (i[0], i[1])) ** 2).sum(),
        lambda x, i, j, w: (x.at[i].set(w) ** 2).sum(),
        lambda x, i, j, w: (x.at[i].add(w) ** 2).sum(),
    ]
    compare_all(*((jax.grad(function, (0, 3)), x, i, j, weight) for function in functions), tolerance=SUM)


def test_nothing_is_indexed(rng):
    x, none = draw(rng, (5, 3)), np.zeros((0,), np.int32)
    compare(lambda x, i: (x[i], x.at[i].set(1.0), lax.dynamic_slice(x, (1, 1), (0, 2))), x, none)


def test_a_window_of_a_large_array_is_copied_alone(rng):
    """A slice reads, and an update writes, the elements of the window; the array does not pass through SBUF."""
    x, u = draw(rng, (1024, 64)), draw(rng, (1, 64))
    found = compare(lambda x, u, i: (x[i], lax.dynamic_update_slice(x, u, (i, 0))), x, u, np.int32(1000))
    copies = [one.instruction for one in found.compiled.program.steps if isinstance(one.instruction, DmaCopy)]
    on_chip = [size for one in copies for _, storage, size in one.transfers if storage.name != "HBM"]
    assert sum(on_chip) < 256


def test_updates_in_place(rng):
    """An array that nothing else reads is updated in place; arguments, and values with other readers, are not."""
    x, u = draw(rng, (64, 64)), draw(rng, (1, 64))
    functions = {
        lambda x, u, i: lax.dynamic_update_slice(lax.dynamic_update_slice(x, u, (i, 0)), u, (i + 1, 0)): 1,
        lambda x, u, i: lax.dynamic_update_slice((x + 1).reshape(4096), u[0], (i,)): 1,
        lambda x, u, i: ((y := x + 1), lax.dynamic_update_slice(y, u, (i, 0))): 2,
        lambda x, u, i: ((y := lax.dynamic_update_slice(x, u, (i, 0))), lax.dynamic_update_slice(y, u, (3, 0))): 2,
        lambda x, u, i: ((y := x + 1).T, lax.dynamic_update_slice(y, u, (i, 0))): 2,
    }
    for function, arrays in functions.items():
        found = compare(function, x, u, np.int32(9))
        tensors = [one for one in found.compiled.program.space.hbm_tensors if one.size >= x.size]
        assert len(tensors) == 1 + arrays


def test_loops_update_in_place(rng, monkeypatch):
    """A round copies the window of an array that a loop carries; arrays from outside and swapped ones stay intact."""
    monkeypatch.setattr("neuroncore_rtl.frontends.xla.expand.control._COST", 0)
    x, u = draw(rng, (64, 32)), draw(rng, (6, 32))
    found = compare(lambda x, u: lax.fori_loop(0, 6, lambda i, c: c.at[3 * i].set(u[i]), x), x, u)
    sizes = [one.instruction.transfers[1][2] for one in found.compiled.program.steps
             if isinstance(one.instruction, DmaCopy)]  # fmt: skip
    assert sorted(sizes)[-2:] == [4 * 32, 4 * x.size]
    compare_all(
        (lambda x, u: lax.fori_loop(0, 5, lambda i, c: (c[0].at[i].set(u[i]), c[0]), (x, x)), x, u),
        (lambda x, u: lax.fori_loop(0, 5, lambda i, c: jnp.maximum(c, (x * 2).at[i].set(u[i])), x), x, u),
    )


@pytest.mark.parametrize("target", ["golden", "rtl"])
def test_rows_on_nano(rng, target):
    x, i, u = draw(rng, (5, 3)), np.array([3, 7, 3], np.int32), draw(rng, (3, 3))
    found = compare(lambda x, i, u: x.at[i].set(u, mode="drop")[i], x, i, u, preset="nano", target=target)
    assert found.result.memory is not None


def test_differences_are_of_bits():
    zeros = np.zeros(2, np.float32)
    assert differences(zeros, -zeros).all() and not differences(zeros, zeros).any()


def test_one_element_fills_a_tensor():
    def filled(x, number):
        return jnp.pad(x, ((1, 2), (300, 333)), constant_values=number)

    numbers = np.float32(-0.0), np.float32(1e-40), np.int8(-3), bfloat16(1.5), np.uint16(7)
    x = np.arange(20).reshape(5, 4)
    compare_all(*((partial(filled, number=number), x.astype(number.dtype)) for number in numbers))


def test_a_fill_takes_beats():
    """131,072 elements go to HBM in rows from SBUF, not one by one."""
    model = jit(lambda x: jnp.pad(x, ((0, 252), (0, 508))), preset="small", target="model", cache="")
    model(np.ones((4, 4), np.float32))
    assert model.result.cycles < 20_000

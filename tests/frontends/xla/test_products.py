"""Products of integers, of truths, of mixed floats, and of vectors."""

from itertools import product

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

from tests.frontends.xla.bounds import assert_linear, draw_floats
from tests.frontends.xla.draws import draw_array
from tests.frontends.xla.results import compare, compare_all, compare_calls, run_text

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_modulo(dtype):
    """Products wrap in their own type, and in 32 bits."""
    rng = np.random.default_rng(1)
    wide = np.int32 if np.iinfo(dtype).min else np.uint32

    def product(x, y):
        return x @ y, lax.dot(x, y, preferred_element_type=wide)

    sizes = (3, 7, 2), (1, 9, 5), (4, 1, 3)
    compare_all(*((product, draw_array(rng, (m, k), dtype), draw_array(rng, (k, n), dtype)) for m, k, n in sizes))


@pytest.mark.parametrize("preset", ["nano", "tiny"])
def test_batches(preset):
    rng = np.random.default_rng(2)
    x, y = draw_array(rng, (2, 5, 6), np.int8), draw_array(rng, (2, 6, 3), np.int8)

    def batched(x, y):
        return lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))), preferred_element_type=np.int32)

    pair = draw_array(rng, (2, 3, 4, 5), np.int32)
    compare_all((batched, x, y), (lambda x, y: jnp.einsum("bij,bij->b", x, y), *pair), preset=preset)


def test_truths():
    rng = np.random.default_rng(3)
    compare(lambda x, y: x @ y, rng.random((5, 7)) < 0.3, rng.random((7, 3)) < 0.3)


@pytest.mark.parametrize("preset", ["nano", "tiny"])
def test_vectors(preset):
    rng = np.random.default_rng(4)
    matrix, left, right = draw_floats(rng, 9, 13), draw_floats(rng, 9), draw_floats(rng, 13)
    assert_linear(lambda a, x: a @ x, matrix, right, preset=preset)
    assert_linear(lambda a, x: x @ a, matrix, left, preset=preset)
    assert_linear(lambda x, y: jnp.outer(x, y), left, right, preset=preset)
    assert_linear(lambda x, y: jnp.dot(x, y), left, left[::-1].copy(), preset=preset)
    assert_linear(lambda x, y: jnp.einsum("bi,bi->b", x, y), matrix, matrix + 1, preset=preset)
    assert_linear(lambda x, y: jnp.einsum("bi,bj->bij", x, y), matrix[:3], matrix[3:6], preset=preset)


@pytest.mark.parametrize("types", [("bfloat16", "float16"), ("bfloat16", "float32"), ("float8_e4m3", "float8_e5m2"),
                                   ("float8_e5m2", "float16"), ("float8_e3m4", "float8_e3m4")])  # fmt: skip
def test_mixed_floats(types):
    rng = np.random.default_rng(5)
    x, y = (draw_floats(rng, *shape, dtype=jnp.dtype(of)) for shape, of in zip([(6, 9), (9, 4)], types, strict=True))

    assert_linear(lambda x, y: lax.dot(x, y, preferred_element_type=float), x, y)


def test_nothing_to_add():
    compare(lambda x, y: (x @ y, x.T @ x), np.zeros((3, 0), np.float32), np.zeros((0, 2), np.float32))


def test_triangular_systems():
    rng, diagonal, choices = np.random.default_rng(3), range(5), ("false", "true")
    for left, lower, unit, transposed in product(choices, choices, choices, ("NO_TRANSPOSE", "TRANSPOSE")):
        a, x = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((2, 5, 5), (2, 5, 3)))
        a[:, diagonal, diagonal] = 2  # quotients are exact
        used = np.tril(a) if lower == "true" else np.triu(a)
        used[:, diagonal, diagonal] = 1 if unit == "true" else 2
        used = used if transposed == "NO_TRANSPOSE" else used.swapaxes(1, 2)
        b, x, of = (used @ x, x, "2x5x3") if left == "true" else (x.mT @ used, x.mT, "2x3x5")
        text = f"""func.func @main(%a: tensor<2x5x5xf32>, %b: tensor<{of}xf32>) -> tensor<{of}xf32> {{
          %x = "stablehlo.triangular_solve"(%a, %b) <{{left_side = {left}, lower = {lower}, unit_diagonal = {unit},
            transpose_a = #stablehlo<transpose {transposed}>}}>
            : (tensor<2x5x5xf32>, tensor<{of}xf32>) -> tensor<{of}xf32>
          return %x : tensor<{of}xf32>
        }}"""
        np.testing.assert_array_equal(run_text(text, a, b)[0], x)


def test_factors_of_positive_matrices():
    rng = np.random.default_rng(4)
    for lower in (True, False):
        factor = np.tril(rng.integers(-3, 4, (2, 6, 6))).astype(np.float32)
        factor[:, range(6), range(6)] = 2  # roots and quotients are exact
        noise = np.triu(np.full((6, 6), 7, np.float32), 1)  # the other half is not read
        a = np.tril(factor @ factor.mT) + noise
        a, factor = (a, factor) if lower else (a.mT, factor.mT)
        text = f"""func.func @main(%a: tensor<2x6x6xf32>) -> tensor<2x6x6xf32> {{
          %x = "stablehlo.cholesky"(%a) <{{lower = {str(lower).lower()}}}> : (tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
          return %x : tensor<2x6x6xf32>
        }}"""
        np.testing.assert_array_equal(run_text(text, np.ascontiguousarray(a))[0], factor)


def test_linear_algebra_that_jax_leaves_to_a_library_of_the_cpu():
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((7, 7), (7, 2)))
    a += 4 * np.eye(7, dtype=np.float32)

    def functions(a, b):
        factor = jnp.linalg.cholesky(a @ a.T)
        return factor, jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.slogdet(a)

    compare(functions, a, b, tolerance=1e-5)
    compare(jax.grad(lambda a, b: jnp.linalg.solve(a, b).sum(), argnums=(0, 1)), a, b, tolerance=1e-5)
    diagonals = [4, -1, 9], [4, 0, 9], [4, 9, 0]
    compare_calls(jnp.linalg.cholesky, *((np.diag(np.float32(one)),) for one in diagonals))

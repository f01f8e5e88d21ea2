"""Functions of `nki.language` on tiles, against float64."""

import numpy as np
import pytest

from neuroncore_rtl.frontends.nki.lowering.operators import ACTIVATIONS
from neuroncore_rtl.tb.check.oracles import accuracy, functions
from tests.frontends.nki.kernels import result, store_kernel

RNG = np.random.default_rng(8)

NEAR = 4e-7
"""Absolute error permitted where a function crosses zero away from the origin."""


@pytest.mark.parametrize("name", sorted(set(ACTIVATIONS) - {"identity"}))
def test_functions_are_those_of_float64(tmp_path, name):
    kernel = store_kernel(tmp_path, f"nl.{name}(nl.load(x))")
    x = (RNG.normal(size=(4, 500)) * np.exp2(RNG.uniform(-4, 12, (4, 500)))).astype(np.float32)
    x = np.abs(x) if name in ("log", "sqrt", "rsqrt") else x
    y, function = result(kernel, x), ACTIVATIONS[name]
    with np.errstate(invalid="ignore"):
        near = np.abs(y - functions.reference(function, x)) < NEAR
    assert np.all((accuracy.errors(function, x, y) <= 1.7) | near)


def test_the_tangent_is_the_sine_by_the_cosine(tmp_path):
    kernel = store_kernel(tmp_path, "nl.tan(nl.load(x))")
    x = RNG.uniform(-20, 20, (4, 500)).astype(np.float32)
    exact = np.tan(x.astype(np.float64))
    assert np.all(np.abs(result(kernel, x) - exact) <= 3 * accuracy.last_place(exact))

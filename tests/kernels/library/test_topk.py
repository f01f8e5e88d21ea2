"""Largest elements of rows and their indices."""

import numpy as np
import pytest

from neuroncore_rtl.kernels.library.topk import topk
from neuroncore_rtl.kernels.program import Program, Rows
from neuroncore_rtl.kernels.tiling.streamed import streamed
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.spec.config import preset_named
from neuroncore_rtl.spec.formats import BF16, FP32, INT32
from tests.kernels.running import hbm_after, read_values

TINY = preset_named("tiny")
INFINITE = float("inf")


def find_largest(x, k, fmt, rng):
    program = Program(TINY)
    source, values = program.space.hbm("x", fmt, x.shape), program.space.hbm("values", fmt, (len(x), k))
    places = program.space.hbm("places", INT32, (len(x), k))
    streamed(program, topk, [values, places], [source])
    hbm = hbm_after(program, [(source, encode(x, fmt))], rng)
    return read_values(values, hbm), places.elements(hbm).view(np.int32)


@pytest.mark.parametrize("k", (8, 16, 24))
@pytest.mark.parametrize("fmt", (FP32, BF16), ids=("fp32", "bf16"))
def test_no_place_is_named_twice(k, fmt, rng):
    x = np.round(rng.normal(0, 3, (9, 24)))
    for row, count in enumerate((0, 1, 7, 12, 20, 24)):
        x[row, rng.permutation(24)[:count]] = -INFINITE
    x[6], x[7, ::2], x[8, 3:20] = 2.0, INFINITE, INFINITE
    x[7, 1::4] = -INFINITE
    values, places = find_largest(x, k, fmt, rng)
    order = np.argsort(-x, axis=1, kind="stable")[:, :k]
    assert np.array_equal(places, order) and np.array_equal(values, np.take_along_axis(x, order, 1))


def test_of_eight_elements_nothing_is_copied():
    program = Program(TINY)
    x, values = (program.space.sbuf(name, FP32, (n,), kept=True) for name, n in (("x", 20), ("values", 8)))
    topk(program, Rows((values,)), Rows((program.space.sbuf("places", INT32, (8,), kept=True),)), Rows((x,)))
    assert [entry.instruction.name for entry in program.entries] == ["MAX8", "FIND_INDEX8"]

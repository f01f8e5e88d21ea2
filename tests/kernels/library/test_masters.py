"""AdamW: FP32 parameters (masters) streamed from HBM, with scalars in memory, against float64."""

import numpy as np
import pytest

from neuroncore_rtl.kernels.program import Program, build_image
from neuroncore_rtl.kernels.training.adamw import AdamW, first_powers, next_correction
from neuroncore_rtl.kernels.training.masters import Masters
from neuroncore_rtl.run.arrays import encode
from tests.kernels.running import CONFIGS, TINY, read_values, run_ordered

STEPS = 5
OPTIONS = AdamW(rate=0.02, beta1=0.8, beta2=0.99, decay=0.1)
SHAPES = {"few": {"a": (3,), "b": (2, 5)}, "many": {"a": (17, 70), "b": (9,), "c": (40, 61)}}


def run_steps(config, shapes, values, gradients, order):
    program = Program(config)
    masters = Masters(program.space, shapes, len(gradients))
    powers = first_powers(program, config.partitions)
    program.start_section()
    masters.descend(program, next_correction(program, powers, OPTIONS), OPTIONS)
    contents = [(masters.value(name), value) for name, value in values.items()]
    contents += [(masters.gradient(n, k), value) for k, own in enumerate(gradients) for n, value in own.items()]
    codes = [(tensor, encode(value, tensor.format)) for tensor, value in contents]
    return masters, run_ordered(build_image(program, codes, runs=[0, *STEPS * [1]]), order).hbm


@pytest.mark.parametrize("count", (1, 3))
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("config", [TINY, CONFIGS["odd"]], ids=["tiny", "odd"])
def test_masters_moments_and_copies_are_those_of_adamw(rng, config, shapes, count):
    values, *gradients = (
        {name: np.float32(rng.normal(size=shape)) for name, shape in shapes.items()} for _ in range(1 + count)
    )
    masters, hbm = run_steps(config, shapes, values, gradients, rng)
    o = OPTIONS
    for name in shapes:
        p, g = values[name].astype(float), sum(own[name].astype(float) for own in gradients)
        m = v = np.zeros_like(p)
        for step in range(1, STEPS + 1):
            m, v = o.beta1 * m + (1 - o.beta1) * g, o.beta2 * v + (1 - o.beta2) * g * g
            root = np.sqrt(v / (1 - o.beta2**step)) + o.epsilon
            p = p - o.rate * (o.decay * p + m / (1 - o.beta1**step) / root)
        found = read_values(masters.value(name), hbm)
        np.testing.assert_allclose(found, p, rtol=1e-5, atol=1e-6)
        assert np.array_equal(masters.copy(name).elements(hbm), encode(found, masters.copies.format))


def test_what_lies_between_parameters_stays_zero(rng):
    shapes = SHAPES["many"]
    values, gradients = ({name: np.ones(shape) for name, shape in shapes.items()} for _ in range(2))
    masters, hbm = run_steps(TINY, shapes, values, [gradients], rng)
    for matrix in (masters.values, masters.first, masters.second, masters.copies):
        found = read_values(matrix, hbm)
        assert np.count_nonzero(found) == sum(value.size for value in values.values()) < found.size

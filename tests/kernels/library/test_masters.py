"""AdamW: FP32 parameters (masters) streamed from HBM against float64, and scalars in memory against constant ones."""

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.kernels.program import Program, build_image, instructions
from neuroncore_rtl.kernels.tiling.rows import Rows
from neuroncore_rtl.kernels.tiling.transfer import load, store
from neuroncore_rtl.kernels.training.adamw import AdamW, adamw, descend, first_powers, next_correction, update
from neuroncore_rtl.kernels.training.masters import Masters
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FP32
from tests.kernels.running import CONFIGS, TINY, read_values, run_golden, run_ordered

STEPS = 3
OPTIONS = AdamW(rate=0.02, decay=0.1)
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


AGAIN, SHAPE = 5, (5, 9)


def run_resident(rng, values, gradient, again):
    program, options = Program(Config(rows=5, columns=6)), AdamW(rate=0.01, beta1=0.8, beta2=0.99)
    p, g = (program.space.hbm(name, FP32, SHAPE) for name in "pg")
    out = program.space.hbm("out", FP32, SHAPE)
    parameters, slopes = load(program, p), load(program, g)
    moments = [Rows((program.space.sbuf(name, FP32, SHAPE[1:], SHAPE[0]),)) for name in "mv"]
    for one in moments:
        program.append(instructions.memset(one.tiles[0], 0.0))
    powers = first_powers(program, SHAPE[0])
    program.start_section()
    tiles = [matrix.tiles[0] for matrix in (parameters, *moments, slopes)]
    if again:
        correction = next_correction(program, powers, options)
        descend(program, tiles[0], *update(program, *tiles, correction, options), correction, None)
    else:
        for step in range(1, AGAIN + 1):
            adamw(program, parameters, *moments, slopes, step, options)
    program.start_section()
    store(program, out, parameters)
    image = build_image(program, [(p, values), (g, gradient)], runs=[0, *(AGAIN if again else 1) * [1], 2])
    return read_values(out, run_golden(image, rng).hbm)


def test_a_step_that_is_run_again_is_the_next_step(rng):
    values, gradient = (encode(rng.normal(size=SHAPE), FP32) for _ in range(2))
    numbers, scalars = (run_resident(rng, values, gradient, again) for again in (False, True))
    np.testing.assert_allclose(scalars, numbers, rtol=1e-5, atol=1e-7)
    assert np.abs(numbers - decode(values, FP32)).min() > 4 * 0.01

"""AdamW with scalars in memory: parameters as with constant scalars, except for the last bits of powers."""

import numpy as np

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.kernels.program import Program, Rows, build_image, instructions
from neuroncore_rtl.kernels.tiling.transfer import load, store
from neuroncore_rtl.kernels.training.adamw import AdamW, adamw, descend, first_powers, next_correction, update
from neuroncore_rtl.run.arrays import encode
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FP32
from tests.kernels.running import read_values, run_golden

STEPS, SHAPE = 5, (5, 9)


def run_steps(rng, values, gradient, again):
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
        for step in range(1, STEPS + 1):
            adamw(program, parameters, *moments, slopes, step, options)
    program.start_section()
    store(program, out, parameters)
    image = build_image(program, [(p, values), (g, gradient)], runs=[0, *(STEPS if again else 1) * [1], 2])
    return read_values(out, run_golden(image, rng).hbm)


def test_a_step_that_is_run_again_is_the_next_step(rng):
    values, gradient = (encode(rng.normal(size=SHAPE), FP32) for _ in range(2))
    numbers, scalars = (run_steps(rng, values, gradient, again) for again in (False, True))
    np.testing.assert_allclose(scalars, numbers, rtol=1e-5, atol=1e-7)
    assert np.abs(numbers - decode(values, FP32)).min() > 4 * 0.01

"""Loops with dynamic bounds on the RTL: bytes equal golden's, cycles equal the model's."""

import numpy as np
import pytest

from neuroncore_rtl.kernels.control import ROUNDS_CODE
from neuroncore_rtl.kernels.program import Program, build_image, dma_copy, instructions
from neuroncore_rtl.run import ProgramFailed, run, targets
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.job import ImageJob
from neuroncore_rtl.spec import formats, isa
from tests.kernels.program.loops import TINY, triangle


def converging():
    program = Program(TINY)
    space, flow = program.space, program.flow
    x, rounds = space.hbm("x", formats.FP32, (1, 8)), space.hbm("rounds", formats.INT32, (1, 1))
    t, count = space.sbuf("t", formats.FP32, (8,), 1), space.sbuf("count", formats.INT32, (1,), 1)
    program.append(dma_copy(t, x))
    program.append(instructions.memset(count, 0))
    left = flow.register(1)
    with flow.loop_while(left):
        above, most = space.sbuf("above", formats.FP32, (8,), 1), space.sbuf("most", formats.FP32, (1,), 1)
        program.append(instructions.activation(t, t, "identity", 0.5))
        program.append(instructions.tensor_scalar(above, t, 1.0, isa.AluOp.IS_GT))
        program.append(instructions.tensor_scalar(most, above[:, 0:1], 0.0, isa.AluOp.ADD))
        for d in range(1, 8):
            program.append(instructions.tensor_tensor(most, most, above[:, d : d + 1], isa.AluOp.MAX))
        number = space.sbuf("number", formats.INT32, (1,), 1)
        program.append(instructions.tensor_scalar(number, most, 1.0, isa.AluOp.MULTIPLY))
        program.append(instructions.tensor_scalar(count, count, 1, isa.AluOp.ADD))
        flow.load(left, number)
    program.append(dma_copy(x, t))
    program.append(dma_copy(rounds, count))
    return program, x, rounds


def run_on_rtl(image):
    job = ImageJob(machine=TINY, images=[image], behaviour=Hbm(latency=64, size=1 << 20), limit=200_000)
    result = targets.execute(job, targets.Rtl())
    assert (result.failures, result.mismatches) == ((), 0)
    return result.memory, result.outcome.parts[0]


def predict(image):
    return targets.execute(ImageJob(machine=TINY, images=[image]), targets.ModelTarget()).prediction


@pytest.mark.parametrize("count", [0, 1, 4])
def test_loops_of_a_count_that_is_in_memory(count):
    program, given, log = triangle()
    image = build_image(program, [(given, np.array([count]))])
    hbm, done = run_on_rtl(image)
    pairs = [10 * outer + inner for outer in range(count) for inner in range(outer)]
    assert done.exit_code == 0 and list(log.elements(hbm)[: len(pairs) + 1, 0]) == [*pairs, 0]
    assert done.cycles == predict(image).cycles
    assert len(predict(image).records) == len(done.events)


@pytest.mark.parametrize("largest, rounds", [(0.5, 1), (5.0, 3), (1000.0, 10)])
def test_a_loop_until_the_device_has_converged(largest, rounds):
    program, x, counted = converging()
    values = np.linspace(0, largest, 8, dtype=np.float32)[np.newaxis]
    image = build_image(program, [(x, values.view(np.uint32))])
    hbm, done = run_on_rtl(image)
    assert counted.elements(hbm) == rounds and (x.elements(hbm).view(np.float32) == values / 2**rounds).all()
    assert done.cycles == predict(image).cycles


def test_a_loop_that_does_not_end_is_ended_and_named():
    program, x, _ = converging()
    program.flow.rounds = 5
    inputs = {"x": np.full((1, 8), 100.0)}
    image = build_image(program, [(x, np.full((1, 8), 100.0, np.float32).view(np.uint32))])
    _, done = run_on_rtl(image)
    assert done.exit_code & ROUNDS_CODE and image.flow[done.exit_code ^ ROUNDS_CODE].code.name == "AGAIN"
    for target in ("rtl", "golden", "model"):
        with pytest.raises(ProgramFailed, match=r"all loops must end within 5 rounds .* \(test_loops.py:\d+\)"):
            run(program, inputs, on=target)

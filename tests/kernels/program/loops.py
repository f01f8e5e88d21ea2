"""Programs for several tests: nested loops, and an instruction that waits for all other queues of a core."""

import numpy as np

from neuroncore_rtl.kernels.program import (
    HbmTensor,
    Image,
    Program,
    build_image,
    dma_copy,
    dma_scatter,
    instructions,
    load_stationary,
    multiply_moving,
)
from neuroncore_rtl.spec import formats, isa
from neuroncore_rtl.spec.config import Config, preset_named
from neuroncore_rtl.spec.formats import BF16, FP32

__all__ = ["TINY", "join_image", "triangle"]

TINY = preset_named("tiny")


def triangle(config: Config = TINY) -> tuple[Program, HbmTensor, HbmTensor]:
    """Return nested loops, the outer bound, and a list [16, 1] of 10 * outer + inner, for inner < outer."""
    program = Program(config)
    space, flow = program.space, program.flow
    given, log = space.hbm("given", formats.INT32, (1,)), space.hbm("log", formats.INT32, (16, 1))
    last, number = (space.sbuf(name, formats.INT32, (1,), 1) for name in ("last", "number"))
    program.append(instructions.memset(last, 0))
    count = flow.register()
    flow.load(count, given)
    with flow.loop(0, count) as outer, flow.loop(0, outer) as inner:
        program.append(instructions.tensor_scalar(number, outer.word, 10, isa.AluOp.MULTIPLY))
        program.append(instructions.tensor_tensor(number, number, inner.word, isa.AluOp.ADD))
        program.append(dma_scatter(log, number, last))
        program.append(instructions.tensor_scalar(last, last, 1, isa.AluOp.ADD))
    program.append(dma_copy(space.hbm("ended", formats.INT32, (1, 1)), last))
    return program, given, log


def join_image(config: Config) -> tuple[Image, list[tuple[HbmTensor, int]]]:
    """Return the image and HBM tensors with final codes; all queues read a tensor before it is overwritten."""
    columns = 8 + config.dma_engines
    program = Program(config)
    space = program.space
    x, y = (space.hbm(name, BF16, (config.rows, columns)) for name in "xy")
    t, u = (space.sbuf(name, BF16, (columns,), config.rows, kept=True) for name in "tu")
    sums = space.psum("sums", FP32, (4,), kept=True)
    program.append(dma_copy(t, x))
    program.append(load_stationary(t[:, :4]))
    program.append(multiply_moving(sums[:4], t[:, 4:8]))
    program.append(load_stationary(t[:, :4]))
    program.append(instructions.activation(u, t, "identity"))
    stored = [space.hbm(f"stored {n}", BF16, (config.rows, 1)) for n in range(config.dma_engines)]
    for n, queue in enumerate(program.dma_queues):
        program.append(dma_copy(stored[n], t[:, 8 + n : 9 + n]), queue=queue)
    program.append(instructions.memset(t, 0.0))
    program.append(dma_copy(y, t))
    one = int(np.float32(1).view(np.uint32)) >> 16
    return build_image(program, [(x, np.full(x.shape, one))]), [(y, 0), *((tensor, one) for tensor in stored)]

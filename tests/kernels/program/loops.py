"""Program with nested loops, for several tests."""

from neuroncore_rtl.kernels.program import HbmTensor, Program, dma_copy, dma_scatter, instructions
from neuroncore_rtl.spec import formats, isa
from neuroncore_rtl.spec.config import Config, preset_named

__all__ = ["TINY", "triangle"]

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

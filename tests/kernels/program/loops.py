"""Program with nested loops, for several tests."""

from neuroncore_rtl.kernels.program import HbmTensor, Program, dma_copy, dma_scatter
from neuroncore_rtl.kernels.program.instructions import memset, tensor_scalar, tensor_tensor
from neuroncore_rtl.spec.config import Config, preset_named
from neuroncore_rtl.spec.formats import INT32
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["TINY", "triangle"]

TINY = preset_named("tiny")


def triangle(config: Config = TINY) -> tuple[Program, HbmTensor, HbmTensor]:
    """Return nested loops, the outer bound, and a list [16, 1] of 10 * outer + inner, for inner < outer."""
    program = Program(config)
    space, flow = program.space, program.flow
    given, log = space.hbm("given", INT32, (1,)), space.hbm("log", INT32, (16, 1))
    last, number = (space.sbuf(name, INT32, (1,), 1) for name in ("last", "number"))
    program.append(memset(last, 0))
    count = flow.register()
    flow.load(count, given)
    with flow.loop(0, count) as outer, flow.loop(0, outer) as inner:
        program.append(tensor_scalar(number, outer.word, 10, AluOp.MULTIPLY))
        program.append(tensor_tensor(number, number, inner.word, AluOp.ADD))
        program.append(dma_scatter(log, number, last))
        program.append(tensor_scalar(last, last, 1, AluOp.ADD))
    program.append(dma_copy(space.hbm("ended", INT32, (1, 1)), last))
    return program, given, log

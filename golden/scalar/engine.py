"""Interpreter of the scalar engine's instruction: activations, and a running sum in every lane."""

import numpy as np

from neuroncore_rtl.golden.arith import multiply_add_fp32
from neuroncore_rtl.golden.elementwise.operands import Operands
from neuroncore_rtl.golden.scalar.functions import activate
from neuroncore_rtl.golden.vector.reduction import running_sum
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.functions import FUNCTIONS, Function
from neuroncore_rtl.spec.isa import SCALAR_OPCODES, Context, Elementwise

__all__ = ["ScalarEngine", "activation"]


def activation(function: Function | str, a, scale, bias, alpha: int = 0) -> np.ndarray:
    """Return function(fp32(a * scale + bias)) for FP32 words that broadcast; the argument is rounded once."""
    a, scale, bias, parameter = (np.asarray(x, np.uint32).view(np.float32) for x in (a, scale, bias, alpha))
    return activate(function, multiply_add_fp32(a, scale, bias), parameter).view(np.uint32)


class ScalarEngine:
    """Executes activations in order.

    An instruction reads all sources before it writes; of two writes to one address the later one remains.

    The FP32 running sums `sums`, uint32 [lanes], are initially zero. An instruction without `sum_continue` restarts
    those of its lanes from +0.
    """

    def __init__(self, config: Config):
        self.config = config
        self.sums = np.zeros(config.partitions, np.uint32)

    def execute(self, instruction: Elementwise, sbuf: np.ndarray, psum: np.ndarray) -> None:
        """Execute one ACTIVATE instruction; raise ValueError if it is illegal, or accesses bytes beyond a memory.

        The memories `sbuf` and `psum` are uint8 [partitions, bytes], elements little-endian.
        """
        if instruction.opcode not in SCALAR_OPCODES:
            raise ValueError(f"opcode must be one of the scalar engine's, not {instruction.opcode!r}")
        instruction.check(Context(self.config))
        self.perform(instruction, sbuf, psum)

    def perform(self, instruction: Elementwise, sbuf: np.ndarray, psum: np.ndarray) -> None:
        """Execute one legal instruction without checks, see `execute`."""
        on = Operands(instruction, self.config, sbuf, psum)
        function = list(FUNCTIONS.values())[instruction.function]
        results = activation(function, on.words("a"), on.scalar("s0"), on.scalar("s1"), instruction.alpha)
        sums = self.sums[: on.partitions]
        sums[:] = running_sum(on.flat(results), sums if instruction.sum_continue else np.uint32(0))
        on.write(results)
        if instruction.sum_store:
            on.write_result(sums)

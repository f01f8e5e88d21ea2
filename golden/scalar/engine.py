"""The scalar engine as an interpreter of its instruction: activations, and a running sum in every lane."""

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
    """Return function(fp32(a * scale + bias)), the argument rounded once; FP32 words that broadcast, in and out."""
    a, scale, bias, parameter = (np.asarray(x, np.uint32).view(np.float32) for x in (a, scale, bias, alpha))
    return activate(function, multiply_add_fp32(a, scale, bias), parameter).view(np.uint32)


class ScalarEngine:
    """Executes activations one after the other.

    An instruction reads all of its sources before it writes; where two of its writes meet, the later one stays.

    Arguments:
        config: the machine's parameters.

    Attributes:
        sums: uint32 [lanes], the lanes' running sums, FP32, zero at first. An instruction without `sum_continue`
            starts those of its lanes from +0; the others keep theirs.
    """

    def __init__(self, config: Config):
        self.config = config
        self.sums = np.zeros(config.partitions, np.uint32)

    def execute(self, instruction: Elementwise, sbuf: np.ndarray, psum: np.ndarray) -> None:
        """Execute one instruction.

        Arguments:
            instruction: an ACTIVATE.
            sbuf, psum: uint8 [partitions, bytes], the memories, which it reads and writes; elements are little-endian.

        Raises:
            ValueError: if it is not legal, or reaches beyond a memory.
        """
        if instruction.opcode not in SCALAR_OPCODES:
            raise ValueError(f"opcode must be one of the scalar engine's, not {instruction.opcode!r}")
        instruction.check(Context(self.config))
        self.perform(instruction, sbuf, psum)

    def perform(self, instruction: Elementwise, sbuf: np.ndarray, psum: np.ndarray) -> None:
        """Execute one legal instruction, as :meth:`execute` does."""
        on = Operands(instruction, self.config, sbuf, psum)
        function = list(FUNCTIONS.values())[instruction.function]
        results = activation(function, on.words("a"), on.scalar("s0"), on.scalar("s1"), instruction.alpha)
        sums = self.sums[: on.partitions]
        sums[:] = running_sum(on.flat(results), sums if instruction.sum_continue else np.uint32(0))
        on.write(results)
        if instruction.sum_store:
            on.write_result(sums)

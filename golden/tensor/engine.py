"""The tensor engine as an interpreter of its instructions, without time: what is in PSUM after each of them."""

from dataclasses import dataclass

import numpy as np

from neuroncore_rtl.golden.arith import storage_dtype
from neuroncore_rtl.golden.tensor.kernel import column_sums
from neuroncore_rtl.golden.tensor.operand import array_operand
from neuroncore_rtl.golden.tensor.product import accumulate
from neuroncore_rtl.spec.config import PSUM_BANKS, PSUM_WORDS, Config
from neuroncore_rtl.spec.isa import Context, LoadStationary, MultiplyMoving, TensorInstruction

__all__ = ["TensorEngine"]


@dataclass(frozen=True)
class _Weights:
    """A loaded stationary operand: instruction, values and presence [k, m]."""

    instruction: LoadStationary
    values: np.ndarray
    present: np.ndarray | None


class TensorEngine:
    """Executes tensor instructions one after the other.

    Arguments:
        config: the machine's parameters.

    Attributes:
        psum: uint32 [columns, PSUM_BANKS * PSUM_WORDS], zero at first; FP32 patterns, or INT32 where INT8 was
            multiplied. May be written.
    """

    def __init__(self, config: Config):
        self.config = config
        self.psum = np.zeros((config.columns, PSUM_BANKS * PSUM_WORDS), np.uint32)
        self._shadow: _Weights | None = None
        self._context = Context(config)

    def execute(self, instruction: TensorInstruction, stationary_memory, moving_memory) -> None:
        """Execute one instruction.

        A LoadStationary fills the shadow registers, replacing what an earlier one left there; a MultiplyMoving works
        with what was loaded last.

        Arguments:
            instruction: a LoadStationary or MultiplyMoving.
            stationary_memory, moving_memory: uint8 [rows, bytes], the bytes of each partition; elements are
                little-endian. Each instruction reads its own, so the other may be None.

        Raises:
            ValueError: if it is not legal after those before it; if it reads beyond the memory.
        """
        instruction.check(self._context)
        if isinstance(instruction, LoadStationary):
            self._load(instruction, stationary_memory)
        else:
            self._multiply(instruction, moving_memory)
        self._context = instruction.after(self._context)

    def _load(self, load: LoadStationary, memory) -> None:
        codes = _elements(load, memory, load.m, load.format.bits // 8)
        self._shadow = _Weights(load, *array_operand(codes, load.format, load.half))

    def _multiply(self, multiply: MultiplyMoving, memory) -> None:
        weights = self._shadow
        codes = _elements(multiply, memory, multiply.n, multiply.stride)
        moving, present = array_operand(codes, multiply.format, multiply.half, skip_zero=multiply.transpose)
        k, m = min(multiply.k, weights.instruction.k), multiply.m
        sums = column_sums(
            weights.values[:k, :m],
            moving[:k],
            stationary_present=None if weights.present is None else weights.present[:k, :m],
            moving_present=None if present is None else present[:k],
            init=-0.0 if multiply.transpose else 0.0,
        )
        words = self.psum[:m, multiply.psum : multiply.psum + multiply.n]
        words[:] = accumulate(words if multiply.accumulate else None, sums, multiply.integer)


def _elements(instruction: TensorInstruction, memory, count: int, stride: int) -> np.ndarray:
    """Return the codes [k, count] that an instruction reads, `stride` bytes from one to the next."""
    size = instruction.format.bits // 8
    rows, length = memory.shape
    end = instruction.address + (count - 1) * stride + size
    if instruction.k > rows or end > length:
        raise ValueError(f"memory must have {instruction.k} rows of {end} bytes or more, not {memory.shape!r}")
    words = memory[: instruction.k, : length - length % size].view(storage_dtype(instruction.format).newbyteorder("<"))
    first = words[:, instruction.address // size :]
    return np.lib.stride_tricks.as_strided(first, (len(words), count), (words.strides[0], stride))

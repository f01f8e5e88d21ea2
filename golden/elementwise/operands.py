"""The operands of one instruction: codes and words of what it reads, and the writing of its results."""

from dataclasses import replace
from functools import lru_cache
from typing import cast

import numpy as np

from neuroncore_rtl.golden.arith import widen
from neuroncore_rtl.golden.arith.words import load_words, store_words
from neuroncore_rtl.golden.elementwise.index import element_index, element_words
from neuroncore_rtl.golden.memory import gather, scatter
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import IntFormat
from neuroncore_rtl.spec.isa import DIMENSIONS, Access, Elementwise, Pointer, Storage
from neuroncore_rtl.spec.isa.alu import Arithmetic
from neuroncore_rtl.spec.isa.elementwise import arithmetic_of, counts_of

__all__ = ["Operands"]


class Operands:
    """What a legal instruction works on; every tensor has the shape [partitions, 4 free dimensions, outermost first].

    Arguments:
        instruction: of either engine.
        config: the machine's parameters.
        sbuf, psum: uint8 [partitions, bytes], the memories.

    Attributes:
        partitions: lanes.
        shape: counts of the instruction's four dimensions, outermost first.
        arithmetic: what it computes in.
    """

    def __init__(self, instruction: Elementwise, config: Config, sbuf: np.ndarray, psum: np.ndarray):
        self._fields = _fields_of(instruction, config)
        self.instruction = instruction
        self.partitions = instruction.partitions
        self.shape = (1,) * (DIMENSIONS - len(instruction.shape)) + tuple(instruction.shape)
        self.arithmetic = arithmetic_of(self._fields)
        self._memories = {Storage.SBUF: sbuf, Storage.PSUM: psum}

    def codes(self, name: str) -> np.ndarray:
        """Return the codes of tensor "a" or "b"."""
        access, shape = self._access(name)
        return gather(self._memories[access.storage], access, self.partitions, shape)

    def words(self, name: str) -> np.ndarray:
        """Return tensor "a" or "b" in the instruction's arithmetic."""
        return load_words(self.codes(name), getattr(self.instruction, name).format, self.arithmetic)

    def fp32(self, name: str) -> np.ndarray:
        """Return tensor "a" or "b" in FP32, whatever the instruction's arithmetic."""
        return widen(self.codes(name), getattr(self.instruction, name).format)

    def scalar(self, name: str, arithmetic: Arithmetic | None = None) -> np.ndarray:
        """Return scalar "s0" or "s1" in the instruction's arithmetic, or in another one: words that broadcast."""
        scalar = getattr(self.instruction, name)
        if not isinstance(scalar, Pointer):
            return np.full((1,) * (DIMENSIONS + 1), scalar & 0xFFFF_FFFF, np.uint32)
        codes = gather(self._memories[Storage.SBUF], scalar, self.partitions, ())
        words = load_words(codes, scalar.format, self.arithmetic if arithmetic is None else arithmetic)
        return words.reshape(-1, *(1,) * DIMENSIONS)

    def index(self) -> np.ndarray:
        """Return the elements' numbers in their tensor, uint64."""
        index = self.instruction.index
        steps = (0,) * (DIMENSIONS - len(index.steps)) + tuple(index.steps)
        return element_index(replace(index, steps=steps), self.partitions, self.shape)

    def random(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the elements' two random words."""
        return element_words(self.instruction.seed, self.instruction.stream, self.index())

    def flat(self, words: np.ndarray) -> np.ndarray:
        """Return a tensor as [partitions, elements in row-major order]."""
        return words.reshape(self.partitions, -1)

    def write(self, words: np.ndarray, *, axes: int = 0, where: np.ndarray | None = None) -> None:
        """Cast and write dst.

        Arguments:
            words: of the instruction's arithmetic, of dst's number of elements in row-major order.
            axes: innermost dimensions that were reduced; the result is rounded as the last element of each.
            where: bool, False where dst keeps what it holds.
        """
        access, shape = self._access("dst")
        random = None
        if self.instruction.stochastic:
            last = (..., *(slice(-1, None),) * axes)
            random = self.random()[0][last]
        codes = store_words(words.reshape(-1, *shape), access.format, self.arithmetic, random)
        scatter(self._memories[access.storage], access, codes, where)

    def write_positions(self, words: np.ndarray) -> None:
        """Saturate and write integers to dst, whatever the arithmetic; all ones are -1 if it has a sign."""
        access, shape = self._access("dst")
        arithmetic = Arithmetic.INT32 if cast("IntFormat", access.format).signed else Arithmetic.UINT32
        codes = store_words(words.reshape(-1, *shape), access.format, arithmetic)
        scatter(self._memories[access.storage], access, codes)

    def write_codes(self, codes: np.ndarray) -> None:
        """Write dst as it is."""
        access, shape = self._access("dst")
        scatter(self._memories[access.storage], access, codes.reshape(-1, *shape))

    def write_result(self, words: np.ndarray) -> None:
        """Cast, to nearest even, and write a reduction's result, one word a lane, at `b`."""
        access, shape = self._access("b")
        codes = store_words(words.reshape(-1, *shape), access.format, self.arithmetic)
        scatter(self._memories[access.storage], access, codes)

    def _access(self, name: str) -> tuple[Access, tuple[int, ...]]:
        """Return a tensor's access with a step for each of four dimensions, and their counts, outermost first."""
        access = getattr(self.instruction, name)
        steps = (0,) * (DIMENSIONS - len(access.steps)) + tuple(access.steps)
        return replace(access, steps=steps), tuple(reversed(counts_of(self._fields, name)))


@lru_cache(1 << 16)
def _fields_of(instruction: Elementwise, config: Config) -> dict[str, int]:
    """Return the fields of an instruction; of one that is executed again they are found once."""
    return instruction.fields(config)

"""Operands of one instruction: reads codes and words, writes results."""

from dataclasses import replace
from functools import lru_cache
from typing import cast

import numpy as np

from neuroncore_rtl.golden.arith import widen
from neuroncore_rtl.golden.arith.words import load_words, store_words
from neuroncore_rtl.golden.elementwise.index import element_index, element_words
from neuroncore_rtl.golden.memory import gather, scatter
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import Format, IntFormat
from neuroncore_rtl.spec.isa import DIMENSIONS, Access, Elementwise, Pointer, Storage
from neuroncore_rtl.spec.isa.alu import Arithmetic
from neuroncore_rtl.spec.isa.elementwise import arithmetic_of, counts_of, widens_to_odd

__all__ = ["Operands"]


class Operands:
    """Operands of a legal instruction; every tensor has the shape [partitions, 4 free dimensions, outermost first].

    `sbuf` and `psum` are the memories, uint8 [partitions, bytes].
    """

    def __init__(self, instruction: Elementwise, config: Config, sbuf: np.ndarray, psum: np.ndarray):
        self._fields = _fields_of(instruction, config)
        self.instruction = instruction
        self.partitions = instruction.partitions
        self.shape = (1,) * (DIMENSIONS - len(instruction.shape)) + tuple(instruction.shape)
        self.arithmetic = arithmetic_of(self._fields)
        self._odd = widens_to_odd(self._fields)
        self._memories = {Storage.SBUF: sbuf, Storage.PSUM: psum}

    def codes(self, name: str) -> np.ndarray:
        """Return the codes of tensor "a" or "b"."""
        access, shape = self._access(name)
        return gather(self._memories[access.storage], access, self.partitions, shape)

    def words(self, name: str) -> np.ndarray:
        """Return tensor "a" or "b" as words (uint32), converted to the instruction's arithmetic."""
        return self.loaded(self.codes(name), getattr(self.instruction, name).format)

    def loaded(self, codes: np.ndarray, fmt: Format, arithmetic: Arithmetic | None = None) -> np.ndarray:
        """Return codes as words (uint32) in `arithmetic`, by default the instruction's."""
        return load_words(codes, fmt, self.arithmetic if arithmetic is None else arithmetic, self._odd)

    def fp32(self, name: str) -> np.ndarray:
        """Return tensor "a" or "b" as FP32 words (uint32)."""
        return widen(self.codes(name), getattr(self.instruction, name).format)

    def scalar(self, name: str, arithmetic: Arithmetic | None = None) -> np.ndarray:
        """Return scalar "s0" or "s1" as words in `arithmetic`, by default the instruction's."""
        scalar = getattr(self.instruction, name)
        if not isinstance(scalar, Pointer):
            return np.full((1,) * (DIMENSIONS + 1), scalar & 0xFFFF_FFFF, np.uint32)
        codes = gather(self._memories[Storage.SBUF], scalar, self.partitions, ())
        return self.loaded(codes, scalar.format, arithmetic).reshape(-1, *(1,) * DIMENSIONS)

    def index(self) -> np.ndarray:
        """Return the index that the instruction gives to each element, uint64."""
        index = self.instruction.index
        steps = (0,) * (DIMENSIONS - len(index.steps)) + tuple(index.steps)
        return element_index(replace(index, steps=steps), self.partitions, self.shape)

    def random(self) -> tuple[np.ndarray, np.ndarray]:
        """Return two random words of each element: the first for rounding, the second for dropout."""
        return element_words(self.instruction.seed, self.instruction.stream, self.index())

    def flat(self, words: np.ndarray) -> np.ndarray:
        """Return a tensor as [partitions, elements in row-major order]."""
        return words.reshape(self.partitions, -1)

    def write(self, words: np.ndarray, *, axes: int = 0, where: np.ndarray | None = None) -> None:
        """Cast results in the instruction's arithmetic, in row-major order, to the format of dst and write them.

        `axes` is the number of innermost dimensions that were reduced; stochastic rounding of a result uses the index
        of its last operand element. Where `where` is False, dst keeps its value.
        """
        access, shape = self._access("dst")
        random = None
        if self.instruction.stochastic:
            last = (..., *(slice(-1, None),) * axes)
            random = self.random()[0][last]
        codes = store_words(words.reshape(-1, *shape), access.format, self.arithmetic, random)
        scatter(self._memories[access.storage], access, codes, where)

    def write_positions(self, words: np.ndarray) -> None:
        """Saturate and write integer words to dst, whatever the arithmetic; in a signed dst 0xFFFFFFFF is -1."""
        access, shape = self._access("dst")
        arithmetic = Arithmetic.INT32 if cast("IntFormat", access.format).signed else Arithmetic.UINT32
        codes = store_words(words.reshape(-1, *shape), access.format, arithmetic)
        scatter(self._memories[access.storage], access, codes)

    def write_codes(self, codes: np.ndarray) -> None:
        """Write codes to dst without a cast."""
        access, shape = self._access("dst")
        scatter(self._memories[access.storage], access, codes.reshape(-1, *shape))

    def write_result(self, words: np.ndarray) -> None:
        """Cast a reduction's results, one word per partition, to nearest even, and write them to tensor `b`."""
        access, shape = self._access("b")
        codes = store_words(words.reshape(-1, *shape), access.format, self.arithmetic)
        scatter(self._memories[access.storage], access, codes)

    def _access(self, name: str) -> tuple[Access, tuple[int, ...]]:
        access = getattr(self.instruction, name)
        steps = (0,) * (DIMENSIONS - len(access.steps)) + tuple(access.steps)
        return replace(access, steps=steps), tuple(reversed(counts_of(self._fields, name)))


@lru_cache(1 << 16)
def _fields_of(instruction: Elementwise, config: Config) -> dict[str, int]:
    return instruction.fields(config)

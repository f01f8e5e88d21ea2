"""Untimed interpreter of the tensor engine's instructions."""

from dataclasses import dataclass
from typing import cast

import numpy as np

from neuroncore_rtl.golden.arith import storage_dtype
from neuroncore_rtl.golden.memory.access import strided_view
from neuroncore_rtl.golden.tensor.kernel import WIDTH, Packed, multiply_tiles, pack_tiles
from neuroncore_rtl.golden.tensor.operand import array_operand
from neuroncore_rtl.golden.tensor.tile import TILE
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Context, LoadStationary, MultiplyMoving, TensorInstruction

__all__ = ["TensorEngine"]


@dataclass(frozen=True)
class _Weights:
    instruction: LoadStationary
    operand: Packed


class TensorEngine:
    """Functional model of the tensor engine: executes tensor instructions in order.

    Attributes:
        psum: uint32 [columns, words of PSUM], initially zero: FP32 patterns, or INT32 after INT8 products. Writable.
    """

    def __init__(self, config: Config):
        self.config = config
        self.psum = np.zeros((config.columns, config.psum_bytes // 4), np.uint32)
        self._shadow: _Weights | None = None
        self._context = Context(config)

    def execute(self, instruction: TensorInstruction, stationary_memory, moving_memory) -> None:
        """Execute one instruction.

        A LoadStationary overwrites the shadow registers. A MultiplyMoving uses the operand of the last LoadStationary,
        and only the rows that both instructions have. The memories are uint8 [rows, bytes], little-endian; each
        instruction reads one, and the other may be None.

        Raises ValueError if it is illegal after the previous instructions, or reads beyond the memory.
        """
        instruction.check(self._context)
        self.perform(instruction, stationary_memory, moving_memory)
        self._context = instruction.after(self._context)

    def perform(self, instruction: TensorInstruction, stationary_memory, moving_memory) -> None:
        """Execute one legal instruction without checks, see `execute`."""
        if isinstance(instruction, LoadStationary):
            self._load(instruction, stationary_memory)
        else:
            self._multiply(cast("MultiplyMoving", instruction), moving_memory)

    def _load(self, load: LoadStationary, memory) -> None:
        codes = pack_tiles(_elements(load, memory, load.m, load.format.bits // 8), TILE)
        self._shadow = _Weights(load, array_operand(codes, load.format, load.half))

    def _multiply(self, multiplied: MultiplyMoving, memory) -> None:
        assert self._shadow is not None, "a load comes first"
        loaded, (weights, present) = self._shadow.instruction, self._shadow.operand
        first = max(loaded.row, multiplied.row)
        count = max(min(loaded.row + loaded.k, multiplied.row + multiplied.k) - first, 0)
        # The first column is a multiple of a load step, so it is the first of a tile.
        tiles = slice((multiplied.column - loaded.column) // TILE, None)
        rows = slice(first - loaded.row, first - loaded.row + count)
        codes = _elements(multiplied, memory, multiplied.n, multiplied.stride)[first - multiplied.row :][:count]
        partitions = slice(multiplied.column, multiplied.column + multiplied.m)
        multiply_tiles(
            (weights[tiles, rows], None if present is None else present[tiles, rows]),
            array_operand(pack_tiles(codes, WIDTH), multiplied.format, multiplied.half, skip_zero=multiplied.transpose),
            self.psum[partitions, multiplied.psum : multiplied.psum + multiplied.n],
            accumulates=multiplied.accumulate,
            integer=multiplied.integer,
        )


def _elements(instruction: TensorInstruction, memory, count: int, stride: int) -> np.ndarray:
    size = instruction.format.bits // 8
    rows, length = memory.shape
    end = instruction.address + (count - 1) * stride + size
    last = instruction.row + instruction.k
    if last > rows or end > length:
        raise ValueError(f"memory must have {last} rows of {end} bytes or more, not {memory.shape!r}")
    shape, strides = (instruction.k, count), (memory.strides[0], stride)
    return strided_view(
        memory, (instruction.row, instruction.address), storage_dtype(instruction.format), shape, strides
    )

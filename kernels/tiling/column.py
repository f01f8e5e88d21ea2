"""A column in HBM as the stationary operand of a product: it comes as rows, and the vector engine turns it.

DMA writes what it brings to a partition in a cycle at least, so a column, of which each tile of K has an element in
every partition, would cost as many cycles as it has elements. Here a partition gets a line of adjacent elements, of as
many tiles of K as the vector engine transposes at once.
"""

from neuroncore_rtl.kernels.program import HbmTensor, Program, dma_copy
from neuroncore_rtl.kernels.program.instructions import transpose
from neuroncore_rtl.kernels.tiling.blocks import cut
from neuroncore_rtl.spec.config import LOAD_COLUMNS
from neuroncore_rtl.spec.isa import Storage
from neuroncore_rtl.spec.isa.elementwise.opcode import transpose_block

__all__ = ["Column"]

SHARE = 8
"""Of what SBUF has room for, a column takes one part of so many at most."""


class Column:
    """The first tiles of K of an operand [K, 1], each of as many elements as the array has rows.

    Arguments:
        program: what is appended to.
        source: the operand; one of more columns has no tiles here.

    Attributes:
        tiles: how many there are: whole blocks of those that are transposed at once.
        size: bytes of a partition that they take.
    """

    def __init__(self, program: Program, source: HbmTensor):
        rows, self._block = program.config.rows, transpose_block(program.config)
        each = (1 + LOAD_COLUMNS) * source.format.bits // 8
        tiles = min(source.shape[0] // rows, len(program.space.room(Storage.SBUF)) // SHARE // each)
        fits = source.shape[1] == 1 and rows % self._block == 0
        self.tiles = tiles // self._block * self._block if fits else 0
        self.size = self.tiles * each
        self._program, self._there = program, set()
        if self.tiles:
            self._source = source[: self.tiles * rows].reshape(self.tiles, rows)
            self._lines = program.space.sbuf("lines", source.format, (self.tiles,), rows)
            self._turned = program.space.sbuf("column", source.format, (self.tiles, LOAD_COLUMNS), rows)

    def bring(self, k: int) -> int:
        """Append what brings a tile, if it is not there; return its address."""
        first = k // self._block * self._block
        if first not in self._there:
            self._there.add(first)
            block = slice(first, first + self._block)
            for lanes in cut(0, self._lines.partitions, self._block):
                copy = dma_copy(self._lines[lanes, block], self._source[block, lanes])
                self._program.append(copy, self._program.load_queues[-1])
            self._program.append(transpose(self._turned[:, block, 0], self._lines[:, block]))
        return self._turned[:, k].address

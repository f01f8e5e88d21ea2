"""Column of HBM as the stationary operand of a product: loaded as rows, transposed by the vector engine.

DMA needs at least one cycle per partition and row, so a column loaded directly would cost one cycle per element. Here
each partition receives a line of adjacent elements, one for every tile of K of a transposed block.
"""

from neuroncore_rtl.kernels.program import HbmTensor, Program, dma_copy
from neuroncore_rtl.kernels.program.instructions import transpose
from neuroncore_rtl.kernels.tiling.blocks import cut
from neuroncore_rtl.spec.config import LOAD_COLUMNS
from neuroncore_rtl.spec.isa import Storage
from neuroncore_rtl.spec.isa.elementwise.opcode import transpose_block

__all__ = ["Column"]

SHARE = 8
"""A column uses at most 1 / SHARE of the free SBUF."""


class Column:
    """Cache in SBUF for the first tiles of an operand [K, 1]; a tile has one element per row of the array.

    An operand of several columns has no tiles here. `tiles` is their number, a multiple of the block that one TRANSPOSE
    converts; `size` the bytes per partition that all occupy.
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
        """Append the load of tile `k` unless SBUF has the tile already; return the tile's address."""
        first = k // self._block * self._block
        if first not in self._there:
            self._there.add(first)
            block = slice(first, first + self._block)
            for lanes in cut(0, self._lines.partitions, self._block):
                copy = dma_copy(self._lines[lanes, block], self._source[block, lanes])
                self._program.append(copy, self._program.load_queues[-1])
            self._program.append(transpose(self._turned[:, block, 0], self._lines[:, block]))
        return self._turned[:, k].address

"""Zeros for the rest of a tile that a kernel has written in part, and reads as a whole.

Published kernels load the rows that there are into a tile of 128, compute with all of them, and store those that there
are. What is in the others does not matter to them, but nothing on chip may be read before it is written here
(:mod:`run.check.unwritten`). A tile that nothing was written to is refused as ever.
"""

from itertools import islice

import numpy as np

from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program.allocator import buffer_of
from neuroncore_rtl.kernels.program.entries import ProgramStep
from neuroncore_rtl.kernels.program.footprint import runs_of
from neuroncore_rtl.kernels.program.instructions import memset
from neuroncore_rtl.spec.isa import Region

__all__ = ["fill"]


def fill(r: Recording) -> None:
    """Let the tiles of a kernel that are read where nothing has been written start as zeros.

    In a program with loops that the run decides, whose bodies are read again, it leaves all tiles as they are.
    """
    if not r.program.flow.is_plain:
        return
    tiles = {}
    for allocation in r.on_chip:
        for tensor in allocation.tiles:
            tiles[buffer_of(tensor.address)] = _Tile(tensor)
    for number, step in enumerate(r.program.steps):
        writes = len(step.instruction.writes)
        for region, buffer in _reads(step, writes):
            if buffer in tiles:
                tiles[buffer].read(region)
        for region, buffer in zip(step.instruction.writes, step.buffers[:writes], strict=True):
            if buffer in tiles:
                tiles[buffer].write(region, number)
    partly = sorted((tile for tile in tiles.values() if tile.is_short), key=lambda tile: -tile.first)
    for tile in partly:
        r.program.insert(tile.first, memset(tile.tensor, 0))
        r.inserted["zeros where nothing was written"] += 1


def _reads(step: ProgramStep, writes: int) -> list[tuple[Region, int]]:
    """Return what an instruction reads: of one that leaves some of its dst alone that, too."""
    instruction = step.instruction
    reads = [*zip(instruction.reads, islice(step.buffers, writes, None), strict=True)]
    if getattr(instruction, "keep", False):
        reads.append((instruction.writes[0], step.buffers[0]))
    return reads


class _Tile:
    """What a program has written of a tile so far.

    Arguments:
        tensor: the machine's.
    """

    def __init__(self, tensor: Tensor):
        self.tensor = tensor
        self.first = -1
        self.is_short = False
        self._written: np.ndarray | None = None  # of each partition the bytes; None: all or nothing, as `first` says
        self._bytes = tensor.size * tensor.format.bits // 8

    def write(self, region: Region, number: int) -> None:
        """Note that the step of a number writes a region."""
        is_new, self.first = self.first < 0, number if self.first < 0 else self.first
        if self._written is None and not is_new:
            return
        low, high = region.span
        if region.is_dense and region.partitions == self.tensor.partitions and high - low == self._bytes:
            self._written = None
            return
        if self._written is None:
            self._written = np.zeros((self.tensor.partitions, self._bytes), bool)
        self._written[self._places(region)] = True

    def read(self, region: Region) -> None:
        """Note that a region is read."""
        if self._written is None or self.is_short:
            return
        if self._written[self._places(region)].all():
            if self._written.all():
                self._written = None
            return
        self.is_short = True

    def _places(self, region: Region) -> tuple[slice, slice | np.ndarray]:
        """Return the index of a region's bytes."""
        first = region.partition - self.tensor.partition
        rows = slice(first, first + region.partitions * region.partition_step, region.partition_step)
        starts, length = runs_of(region)
        starts = starts - self.tensor.address
        if len(starts) == 1:
            return rows, slice(int(starts[0]), int(starts[0]) + length)
        return rows, (starts[:, np.newaxis] + np.arange(length)).reshape(-1)

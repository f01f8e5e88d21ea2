"""Tensors that a kernel writes in part: zero initialisation of tiles that it reads as a whole, a note of results.

Published kernels load fewer rows than a tile's 128, compute with all of them and store only the loaded ones, but a read
of unwritten memory is an error (`run.check.unwritten`). A tile without any write is not initialised.
"""

from itertools import islice

import numpy as np

from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import HbmTensor, Tensor
from neuroncore_rtl.kernels.program.allocator import buffer_of
from neuroncore_rtl.kernels.program.entries import ProgramStep
from neuroncore_rtl.kernels.program.footprint import runs_of
from neuroncore_rtl.kernels.program.instructions import memset
from neuroncore_rtl.spec.isa import Region, Storage

__all__ = ["fill", "leaves_unwritten"]

_MOST = 1 << 26


def fill(r: Recording) -> None:
    """Insert a memset of every tile that is read where the kernel has not written.

    A program with dynamic loops is unchanged, because the recorded instructions do not show the order of accesses.
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


def leaves_unwritten(r: Recording, tensor: HbmTensor) -> bool:
    """Return whether no instruction writes some element of a tensor in HBM.

    False for a program with dynamic loops, and for a tensor of more than 64 MiB.
    """
    size = tensor.size * tensor.format.bits // 8
    if not r.program.flow.is_plain or size > _MOST:
        return False
    written = np.zeros(size, bool)
    for step in r.program.steps:
        for region in step.instruction.writes:
            low, high = (end - tensor.address for end in region.span)
            if region.storage == Storage.HBM and low < size and high > 0:
                starts, length = runs_of(region)
                places = (starts[:, np.newaxis] + np.arange(length)).reshape(-1) - tensor.address
                written[places[(places >= 0) & (places < size)]] = True
    return not written.all()


def _reads(step: ProgramStep, writes: int) -> list[tuple[Region, int]]:
    """Return the regions that an instruction reads, each with its buffer, and a dst that it overwrites only in part."""
    instruction = step.instruction
    reads = [*zip(instruction.reads, islice(step.buffers, writes, None), strict=True)]
    if getattr(instruction, "keep", False):
        reads.append((instruction.writes[0], step.buffers[0]))
    return reads


class _Tile:
    """Bytes of a tile that have been written up to a step of the program."""

    def __init__(self, tensor: Tensor):
        self.tensor = tensor
        self.first = -1
        self.is_short = False
        self._written: np.ndarray | None = None  # [partitions, bytes]; None: no bytes if `first` < 0, else all
        self._bytes = tensor.size * tensor.format.bits // 8

    def write(self, region: Region, number: int) -> None:
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
        if self._written is None or self.is_short:
            return
        if self._written[self._places(region)].all():
            if self._written.all():
                self._written = None
            return
        self.is_short = True

    def _places(self, region: Region) -> tuple[slice, slice | np.ndarray]:
        first = region.partition - self.tensor.partition
        rows = slice(first, first + region.partitions * region.partition_step, region.partition_step)
        starts, length = runs_of(region)
        starts = starts - self.tensor.address
        if len(starts) == 1:
            return rows, slice(int(starts[0]), int(starts[0]) + length)
        return rows, (starts[:, np.newaxis] + np.arange(length)).reshape(-1)

"""Tensors that a kernel writes in part: zero initialisation of tiles that it reads as a whole, a note of results.

Published kernels load fewer rows than a tile's 128, compute with all of them and store only the loaded ones, but a read
of unwritten memory is an error (`run.check.unwritten`). A tile without any write is initialised only if the
results of the instructions that read it are not used.
"""

from itertools import islice

import numpy as np

from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import HbmTensor, Tensor
from neuroncore_rtl.kernels.program.allocator import buffer_of
from neuroncore_rtl.kernels.program.entries import ProgramStep
from neuroncore_rtl.kernels.program.footprint import runs_of
from neuroncore_rtl.kernels.program.instructions import memset
from neuroncore_rtl.spec.isa import Opcode, Region, Storage

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
    reads = [_reads(step) for step in r.program.steps]
    used = {0, *(buffer for own in reads for _, buffer in own)}  # 0: HBM
    for number, (step, own) in enumerate(zip(r.program.steps, reads, strict=True)):
        written = step.buffers[: len(step.instruction.writes)]
        # The engine keeps weights, and the sums of activations.
        has_state = not written or getattr(step.instruction, "opcode", None) == Opcode.ACTIVATE
        is_used = has_state or not used.isdisjoint(written)
        for region, buffer in own:
            if buffer in tiles:
                tiles[buffer].read(region, number, is_used)
        for region, buffer in zip(step.instruction.writes, written, strict=True):
            if buffer in tiles:
                tiles[buffer].write(region, number)
    short = [(tile.filled, tile.tensor) for tile in tiles.values() if tile.filled is not None]
    for number, tensor in sorted(short, key=lambda one: -one[0]):
        r.program.insert(number, memset(tensor, 0))
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


def _reads(step: ProgramStep) -> list[tuple[Region, int]]:
    """Return the regions that an instruction reads, each with its buffer, and a dst that it overwrites only in part."""
    instruction = step.instruction
    reads = [*zip(instruction.reads, islice(step.buffers, len(instruction.writes), None), strict=True)]
    if getattr(instruction, "keep", False):
        reads.append((instruction.writes[0], step.buffers[0]))
    return reads


class _Tile:
    """Bytes of a tile that have been written up to a step of the program."""

    def __init__(self, tensor: Tensor):
        self.tensor = tensor
        self.first = -1
        self.is_short = False
        self._early: list[tuple[int, bool]] = []  # steps that read before any write, and whether their results are used
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

    def read(self, region: Region, number: int, is_used: bool) -> None:
        if self.first < 0:
            self._early.append((number, is_used))
        if self._written is None or self.is_short:
            return
        if self._written[self._places(region)].all():
            if self._written.all():
                self._written = None
            return
        self.is_short = True

    @property
    def filled(self) -> int | None:
        """Number of the step before which the tile is filled with zeros, None if it is not."""
        if self._early and not any(is_used for _, is_used in self._early):
            return self._early[0][0]
        return self.first if self.is_short else None

    def _places(self, region: Region) -> tuple[slice, slice | np.ndarray]:
        first = region.partition - self.tensor.partition
        rows = slice(first, first + region.partitions * region.partition_step, region.partition_step)
        starts, length = runs_of(region)
        starts = starts - self.tensor.address
        if len(starts) == 1:
            return rows, slice(int(starts[0]), int(starts[0]) + length)
        return rows, (starts[:, np.newaxis] + np.arange(length)).reshape(-1)

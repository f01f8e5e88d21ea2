"""One collective of one group of cores, executed on their memories."""

from collections.abc import Mapping

import numpy as np

from neuroncore_rtl.golden.collective.errors import CollectiveError
from neuroncore_rtl.golden.collective.reduction import reduce_blocks
from neuroncore_rtl.spec.isa import Cause
from neuroncore_rtl.spec.isa.collective import (
    BLOCKS_OF_DST,
    BLOCKS_OF_SRC,
    Collective,
    CollectiveKind,
    CollectiveType,
    element_bytes,
    uses_dst,
    uses_src,
)

__all__ = ["execute_group"]

_K = CollectiveKind

_IN_PLACE = {
    _K.ALL_REDUCE: lambda i: i.src == i.dst,
    _K.BROADCAST: lambda i: i.src == i.dst,
    _K.REDUCE_SCATTER: lambda i: i.dst == i.src + i.rank * i.pitch,
    _K.ALL_GATHER: lambda i: i.src == i.dst + i.rank * i.pitch,
}
"""Condition, by kind, under which src and dst may overlap."""


def execute_group(instructions: list[Collective], memories: Mapping[int, np.ndarray]) -> None:
    """Execute one collective of a group on uint8 [bytes] memories; all blocks are read before any is written.

    The instructions are legal and agree: one per rank in order, or a SEND and its RECEIVE. Raises CollectiveError if a
    block reaches beyond a memory, or src and dst overlap with an undefined result.
    """
    kind, ranks = instructions[0].kind, len(instructions)
    sides = [_Side(instruction, memories[instruction.core]) for instruction in instructions]
    if kind == _K.BARRIER:
        return
    read = [side.copy_source() for side in sides]
    if kind == _K.ALL_REDUCE:
        result = reduce_blocks(np.concatenate(read), instructions)
        written = [result[np.newaxis]] * ranks
    elif kind == _K.REDUCE_SCATTER:
        blocks = np.stack(read)
        written = [reduce_blocks(blocks[:, b], instructions, b)[np.newaxis] for b in range(ranks)]
    elif kind == _K.ALL_GATHER:
        written = [np.concatenate(read)] * ranks
    elif kind == _K.BROADCAST:
        written = [read[instructions[0].root]] * ranks
    elif kind == _K.ALL_TO_ALL:
        written = list(np.stack(read).swapaxes(0, 1))
    else:
        written = [next(blocks for blocks in read if len(blocks))] * ranks
    for side, blocks in zip(sides, written, strict=True):
        side.write_target(blocks)


class _Side:
    """Lists of source and destination blocks of one rank, each a view of the rank's memory."""

    def __init__(self, instruction: Collective, memory: np.ndarray):
        self.instruction = instruction
        kind, ranks, values = instruction.kind, instruction.group.ranks, instruction.fields()
        sources = (ranks if kind in BLOCKS_OF_SRC else 1) if uses_src(values) else 0
        targets = (ranks if kind in BLOCKS_OF_DST else 1) if uses_dst(values) else 0
        self.src = self._blocks("src", memory, instruction.src, sources)
        self.dst = self._blocks("dst", memory, instruction.dst, targets)
        if not _IN_PLACE.get(kind, lambda i: False)(instruction) and self._overlap():
            raise CollectiveError(
                f"core {instruction.core}: {kind.name}: src at {instruction.src} and dst at {instruction.dst} must not "
                "overlap this way",
                instruction.core,
            )

    def _blocks(self, name: str, memory: np.ndarray, address: int, blocks: int) -> list[np.ndarray]:
        i = self.instruction
        size = i.count * element_bytes(i.dtype)
        starts = [address + block * i.pitch for block in range(blocks)]
        if starts and starts[-1] + size > len(memory):
            raise CollectiveError(
                f"core {i.core}: {i.kind.name}: {name}'s bytes must end at {len(memory)}, not at {starts[-1] + size}",
                i.core,
                Cause.AXI,
            )
        return [memory[start : start + size] for start in starts]

    def _overlap(self) -> bool:
        return any(np.may_share_memory(source, target) for source in self.src for target in self.dst)

    def copy_source(self) -> np.ndarray:
        dtype = np.dtype(np.uint16 if self.instruction.dtype == CollectiveType.BF16 else np.uint32)
        count = self.instruction.count if self.src else 0
        return np.array([block.view(dtype.newbyteorder("<")) for block in self.src], dtype).reshape(-1, count or 1)

    def write_target(self, codes: np.ndarray) -> None:
        for block, code in zip(self.dst, codes, strict=False):
            block[:] = np.ascontiguousarray(code).view(np.uint8)

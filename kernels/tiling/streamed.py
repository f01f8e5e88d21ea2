"""Kernels of rows from HBM to HBM: tiles come to SBUF, are computed and go back, all three at the same time.

The kernels of this folder that work row by row, such as softmax, take and leave tensors in SBUF. A matrix in HBM goes
through them a few tiles at a time, each with a place of its own while it is needed, so that tiles come as far ahead as
SBUF has room.
"""

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

from neuroncore_rtl.kernels.program import HbmTensor, Program, dma_copy, place_rows, replicate
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.spec.isa import Storage

__all__ = ["streamed"]

TILES = 4
"""Tiles that a kernel is given at once: it may work on one while another waits for an engine."""

SETS = 3
"""Sets of so many tiles: one comes, one is computed, one goes."""


def streamed(
    program: Program,
    kernel: Callable[..., None],
    results: Sequence[HbmTensor],
    operands: Sequence[HbmTensor],
    shared: Sequence[HbmTensor] = (),
) -> None:
    """Append a kernel on matrices in HBM.

    Arguments:
        program: what it is appended to.
        kernel: appends what is done with tiles in SBUF. It is given the program, then the rows of all `results`, of the
            `operands` that are not among these, and of `shared`.
        results: matrices [rows, columns] that it writes.
        operands: those that it reads, of as many rows; one that is also a result is updated in place.
        shared: parameters [columns] that are the same for all rows.

    Raises:
        ValueError: if the matrices do not have the same rows, or SBUF has no room for a tile of each.
    """
    space, lanes = program.space, program.config.partitions
    matrices = [*results, *(operand for operand in operands if operand not in results)]
    if not matrices:
        raise ValueError("streamed: there must be at least one matrix, not none")
    rows: Any = (*matrices[0].shape, "rows")[0]
    for matrix in matrices:
        if len(matrix.shape) != 2 or matrix.shape[0] != rows:
            raise ValueError(f"{matrix.name}: shape must be [{rows}, columns], not {list(matrix.shape)}")
    loading, storing = cycle(program.load_queues), cycle(program.store_queues)
    parameters = [space.sbuf(vector.name, vector.format, vector.shape) for vector in shared]
    for place, vector in zip(parameters, shared, strict=True):
        program.append(dma_copy(place, vector), next(loading))
    # Tiles come, are computed and go at the same time, and half of the room is for what is computed on the way.
    width = sum(matrix.shape[1] * matrix.format.bits // 8 for matrix in matrices)
    tiles = max(1, min(TILES, len(space.room(Storage.SBUF)) // (2 * SETS * width)))
    for part in cut(0, rows, tiles * lanes):
        places = [place_rows(space, m.name, m.format, length(part), m.shape[1], part.start) for m in matrices]
        for number, tile in enumerate(cut(part.start, part.stop, lanes)):
            for matrix, place in zip(matrices, places, strict=True):
                if matrix in operands:
                    program.append(dma_copy(place.tiles[number], matrix[tile]), next(loading))
        kernel(program, *places, *(replicate(place, length(part)) for place in parameters))
        for number, tile in enumerate(cut(part.start, part.stop, lanes)):
            for matrix, place in zip(results, places, strict=False):
                program.append(dma_copy(matrix[tile], place.tiles[number]), next(storing))

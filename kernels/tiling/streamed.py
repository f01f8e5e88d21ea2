"""Row-wise kernels from HBM to HBM: tiles are loaded, computed and stored at the same time.

The tiles of each call of the kernel have separate buffers, so that loads are prefetched as far as SBUF has room.
"""

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

from neuroncore_rtl.kernels.program import HbmTensor, Program, dma_copy
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.rows import place_rows, replicate
from neuroncore_rtl.spec.isa import Storage

__all__ = ["streamed"]

TILES = 4
"""Tiles of rows per call of the kernel, whose steps can overlap on different engines."""

SETS = 3
"""Sets of `TILES` tiles: one is loaded, one computed, one stored."""


@located
def streamed(
    program: Program,
    kernel: Callable[..., None],
    results: HbmTensor | Sequence[HbmTensor],
    operands: HbmTensor | Sequence[HbmTensor],
    shared: HbmTensor | Sequence[HbmTensor] = (),
) -> None:
    """Append a kernel on matrices in HBM, which is called once for each set of up to `TILES` tiles of rows.

    The loads of a set precede the call, the stores of its results follow it.

    Arguments:
        program: program to which the instructions are appended.
        kernel: function that appends the computation of tiles in SBUF. Its arguments are the program, the rows of all
            `results`, of the `operands` that are not results, and of `shared`.
        results: matrices [rows, columns] to write; a single one needs no list, also of the following.
        operands: matrices [rows, columns] to read; an operand that is also a result is updated in place.
        shared: parameters [columns], the same for all rows.

    Raises:
        ValueError: if the matrices do not have the same rows, or SBUF has no room for a tile of each.
    """
    space, lanes = program.space, program.config.partitions
    results, operands, shared = map(_in_hbm, (results, operands, shared))
    matrices = [*results, *(operand for operand in operands if operand not in results)]
    if not matrices:
        raise ValueError("streamed: there must be at least one matrix, not none")
    rows: Any = (*matrices[0].shape, "rows")[0]
    for matrix in matrices:
        if len(matrix.shape) != 2 or matrix.shape[0] != rows:
            raise ValueError(f"{matrix.name}: shape must be [{rows}, columns], not {list(matrix.shape)}")
    for vector in shared:
        if len(vector.shape) != 1:
            raise ValueError(f"{vector.name}: shape of shared parameters must be [columns], not {list(vector.shape)}")
    loading, storing = cycle(program.load_queues), cycle(program.store_queues)
    parameters = [space.sbuf(vector.name, vector.format, vector.shape) for vector in shared]
    for place, vector in zip(parameters, shared, strict=True):
        program.append(dma_copy(place, vector), next(loading))
    # `SETS` sets are in SBUF at the same time; half of the free space remains for the kernel's temporaries.
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


def _in_hbm(some: HbmTensor | Sequence[HbmTensor]) -> list[HbmTensor]:
    tensors: list[Any] = list(some) if isinstance(some, Sequence) else [some]
    for one in tensors:
        if not isinstance(one, HbmTensor):
            raise ValueError(f"streamed: results, operands and shared must be in HBM, not {type(one).__name__}")
    return tensors

"""Matrices on their way between HBM and SBUF, whole: what is loaded stays there for as long as it is needed."""

from collections.abc import Sequence
from math import ceil

from neuroncore_rtl.kernels.library.blocks import cut, length
from neuroncore_rtl.kernels.library.engines import LONG, beats
from neuroncore_rtl.kernels.program import HbmTensor, Program, Rows, Tensor, dma_copy
from neuroncore_rtl.kernels.program.instructions import tensor_copy
from neuroncore_rtl.spec.config import LINE_BYTES, LOAD_COLUMNS, SBUF_BANKS, Config

__all__ = ["Matrix", "aligned", "lanes_of", "load", "load_row", "on_chip", "store"]

Matrix = Rows | HbmTensor
"""A matrix wherever it is; in HBM [rows, columns]."""

SHARE = 2 * SBUF_BANKS * LINE_BYTES
"""Bytes of a row that one copy moves: two lines of every bank, so that ports do not meet in one."""


def lanes_of(config: Config) -> int:
    """Return the most rows of a tile that is an operand of the array, or a result of it, whichever is needed."""
    return min(config.rows, config.columns)


def on_chip(program: Program, matrix: Matrix, parts: Sequence[slice] | None = None) -> Rows:
    """Return a matrix in SBUF: itself if it is there, else as `load` brings it."""
    return load(program, matrix, parts) if isinstance(matrix, HbmTensor) else matrix


def load(program: Program, source: HbmTensor, parts: Sequence[slice] | None = None) -> Rows:
    """Append what brings a matrix to SBUF.

    Arguments:
        program: what it is appended to.
        source: [rows, columns].
        parts: the rows of each tile, one after the other; None: as many as are operands of the array.

    Raises:
        ValueError: if it is not a matrix.
    """
    if len(source.shape) != 2:
        raise ValueError(f"{source.name}: shape must be [rows, columns], not {list(source.shape)}")
    parts = cut(0, source.shape[0], lanes_of(program.config)) if parts is None else parts
    tiles = []
    for part in parts:
        name = f"{source.name}[{part.start}:{part.stop}]"
        tile = program.space.sbuf(name, source.format, source.shape[1:], length(part))
        for rows, columns in _shares(program.config, tile):
            program.append(dma_copy(tile[rows, columns], source[part][rows, columns]), next(program.loads))
        tiles.append(tile)
    return Rows(tuple(tiles))


def load_row(program: Program, source: HbmTensor) -> Tensor:
    """Append what brings parameters [columns] to every partition."""
    row = program.space.sbuf(source.name, source.format, source.shape)
    program.append(dma_copy(row, source), next(program.loads))
    return row


def store(program: Program, target: HbmTensor, source: Rows) -> None:
    """Append what brings a matrix of the same shape to HBM.

    Raises:
        ValueError: if shapes differ.
    """
    if target.shape != source.shape:
        raise ValueError(f"{target.name}: shape must be {list(source.shape)}, not {list(target.shape)}")
    for part, tile in zip(source.parts, source.tiles, strict=True):
        for rows, columns in _shares(program.config, tile):
            program.append(dma_copy(target[part][rows, columns], tile[rows, columns]), next(program.stores))


def aligned(program: Program, tile: Tensor) -> Tensor:
    """Return a tile where the array can load it from: itself, or a copy, as tiles of an odd number of columns need."""
    if tile.address % (LOAD_COLUMNS * tile.format.bits // 8) == 0 and tile.steps == (1,):
        return tile
    copy = program.space.sbuf(tile.name, tile.format, tile.shape, tile.partitions)
    program.append(tensor_copy(copy, tile))
    return copy


def _shares(config: Config, tile: Tensor) -> list[tuple[slice, slice]]:
    """Cut the rows and columns of a tile for copies, so that all ports bring it if they have enough to do."""
    size = tile.format.bits // 8
    count = ceil(tile.size * size / SHARE)
    widest = ceil(tile.size / count / 4) * 4
    ports = min(config.hbm_ports, max(1, beats(config, tile.partitions, tile.size * size) // LONG))
    few = cut(0, tile.partitions, ceil(tile.partitions / ceil(ports / count)))
    return [(rows, columns) for columns in cut(0, tile.size, widest) for rows in few]

"""Loads and stores of whole matrices between HBM and SBUF."""

from collections.abc import Sequence
from math import ceil

from neuroncore_rtl.kernels.program import (
    HbmTensor,
    Program,
    Rows,
    Tensor,
    dma_copy,
    load_stationary,
    multiply_moving,
    place_rows,
)
from neuroncore_rtl.kernels.program.instructions import memset, tensor_copy
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.engines import LONG, beats
from neuroncore_rtl.spec.config import LINE_BYTES, LOAD_COLUMNS, Config
from neuroncore_rtl.spec.formats import FP32, INT8, Format

__all__ = [
    "SHARE", "Matrix", "aligned", "load", "load_row", "load_together", "on_chip", "one_pass", "store",
]  # fmt: skip

Matrix = Rows | HbmTensor
"""A matrix in SBUF, or in HBM as [rows, columns]."""

SHARE = 16 * LINE_BYTES
"""Bytes of a row that one copy moves: two lines of every bank in most presets, which spreads ports over the banks."""

SHORTEST = 4
"""Least beats of a row for a separate copy."""

HALVES = 2
"""Maximum copies per tile: a record can wait for two semaphores."""


def one_pass(config: Config, fmt: Format) -> bool:
    """Return whether the array multiplies this format in one pass, with an exact product if the other factor is 1."""
    return fmt in config.matmul_formats and fmt not in (FP32, INT8)


def on_chip(program: Program, matrix: Matrix, parts: Sequence[slice] | None = None) -> Rows:
    """Return a matrix as tiles in SBUF; if the matrix is in HBM, append the load."""
    return load(program, matrix, parts) if isinstance(matrix, HbmTensor) else matrix


def load(program: Program, source: HbmTensor, parts: Sequence[slice] | None = None) -> Rows:
    """Append the load of a matrix to SBUF, by default in tiles of as many rows as an operand of the array has.

    Raises ValueError if `source` is not a matrix.
    """
    if len(source.shape) != 2:
        raise ValueError(f"{source.name}: shape must be [rows, columns], not {list(source.shape)}")
    parts = cut(0, source.shape[0], program.lanes) if parts is None else parts
    tiles = []
    for part in parts:
        name = f"{source.name}[{part.start}:{part.stop}]"
        tile = program.space.sbuf(name, source.format, source.shape[1:], length(part))
        for rows, columns in _shares(program.config, tile, min(program.config.hbm_ports, HALVES)):
            copy = dma_copy(tile[rows, columns], source[part][rows, columns])
            program.append(copy, _loading(program, beats(program.config, *_size(tile[rows, columns]))))
        tiles.append(tile)
    return Rows(tuple(tiles))


def load_together(program: Program, sources: Sequence[HbmTensor], step: int) -> list[Rows]:
    """Append the loads of several matrices, interleaved by columns.

    An instruction that needs the first columns of all matrices can start before the others are loaded. `step` is the
    columns per matrix before the next matrix; more if copies would otherwise be too short.
    """
    config = program.config
    count = min(config.hbm_ports, HALVES)
    step = max(step, SHORTEST * config.hbm_bytes * 8 // min(source.format.bits for source in sources))
    found = [
        place_rows(program.space, source.name, source.format, *source.shape, lanes=program.lanes) for source in sources
    ]
    for columns in cut(0, max(source.shape[1] for source in sources), step):
        for source, matrix in zip(sources, found, strict=True):
            for part, tile in zip(matrix.parts, matrix.tiles, strict=True):
                for rows in cut(0, tile.partitions, ceil(tile.partitions / count)) if columns.start < tile.size else ():
                    copy = dma_copy(tile[rows, columns], source[part][rows, columns])
                    program.append(copy, _loading(program, 2 * beats(config, *_size(tile[rows, columns]))))
    return found


def load_row(program: Program, source: HbmTensor, *, each: bool = False) -> Tensor:
    """Append the broadcast of parameters [columns] to every partition of a result of the array.

    A format that the tensor engine multiplies in one pass is read from HBM once and multiplied by a column of ones,
    which copies it to all partitions. Other formats, such as FP32, are read from HBM for each partition.

    `each` reads any format for each partition, which is faster if the array has more work than HBM.
    """
    lanes = program.lanes
    row = program.space.sbuf(source.name, source.format, source.shape, lanes)
    if each or not one_pass(program.config, source.format):
        for rows, columns in _shares(program.config, row, min(program.config.hbm_ports, HALVES)):
            size = beats(program.config, *_size(row[rows, columns]))
            program.append(dma_copy(row[rows, columns], source[columns]), _loading(program, size))
        return row
    once = load(program, source.reshape(1, -1)).tiles[0]
    ones = program.space.sbuf("ones", source.format, (lanes,), 1)
    program.append(memset(ones, 1.0))
    for columns in cut(0, row.size, program.config.psum_words):
        sums = program.space.psum(source.name, FP32, (program.config.psum_words,), lanes)[:, : length(columns)]
        program.append(load_stationary(ones))
        program.append(multiply_moving(sums, once[:, columns]))
        program.append(tensor_copy(row[:, columns], sums))
    return row


def store(program: Program, target: HbmTensor, source: Rows) -> None:
    """Append the store of a matrix to HBM; ValueError if the shapes differ."""
    if target.shape != source.shape:
        raise ValueError(f"{target.name}: shape must be {list(source.shape)}, not {list(target.shape)}")
    for part, tile in zip(source.parts, source.tiles, strict=True):
        for rows, columns in _shares(program.config, tile, program.config.hbm_ports):
            program.append(dma_copy(target[part][rows, columns], tile[rows, columns]), next(program.stores))


def aligned(program: Program, tile: Tensor) -> Tensor:
    """Return the tile if the array can load it; otherwise append and return an aligned copy."""
    if tile.address % (LOAD_COLUMNS * tile.format.bits // 8) == 0 and tile.steps == (1,):
        return tile
    copy = program.space.sbuf(tile.name, tile.format, tile.shape, tile.partitions)
    program.append(tensor_copy(copy, tile))
    return copy


def _shares(config: Config, tile: Tensor, most: int) -> list[tuple[slice, slice]]:
    """Split a tile into the copies (rows, columns) of a transfer; at most `most` copies share the same columns.

    Rows are split only if all copies remain long.
    """
    rows, size = _size(tile)
    count = ceil(size / SHARE)
    widest = ceil(tile.size / count / 4) * 4
    parts = max(1, min(most, beats(config, rows, ceil(size / count)) // LONG))
    few = cut(0, rows, ceil(rows / parts))
    return [(part, columns) for columns in cut(0, tile.size, widest) for part in few]


def _loading(program: Program, size: int) -> int:
    """Return the queue of the next load of `size` beats.

    A long load uses one queue per port: more queues would share the port, and delay the first load by the next ones.
    """
    ports = program.config.hbm_ports if size >= LONG else len(program.load_queues)
    return next(queue for queue in program.loads if queue in program.load_queues[:ports])


def _size(tile: Tensor) -> tuple[int, int]:
    return tile.partitions, tile.size * tile.format.bits // 8

"""Loads and stores of whole matrices between HBM and SBUF."""

from collections.abc import Sequence
from math import ceil

from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, dma_copy, load_stationary, multiply_moving
from neuroncore_rtl.kernels.program.instructions import memset, tensor_copy
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.engines import LONG, beats
from neuroncore_rtl.kernels.tiling.rows import Rows, as_rows, place_rows
from neuroncore_rtl.spec.config import LINE_BYTES, LOAD_COLUMNS, Config
from neuroncore_rtl.spec.formats import FP32, INT8, Format

__all__ = [
    "Matrix", "RowVector", "aligned", "load", "load_row", "load_together", "matrix_of", "on_chip", "one_pass",
    "rows_like", "shares_of", "store",
]  # fmt: skip

Matrix = Rows | HbmTensor
"""A matrix in SBUF, or in HBM as [rows, columns]."""

RowVector = Rows | Tensor | HbmTensor
"""Parameters of a row-wise kernel, the same for all rows; see `rows_like`."""

SHARE = 16 * LINE_BYTES
"""Bytes of a row that one copy moves: two lines of every bank in most presets, which spreads ports over the banks."""

SHORTEST = 4
"""Minimum beats of HBM that a copy moves per row."""

HALVES = 2
"""Maximum copies per tile: the record of a consumer can wait for only two semaphores."""


def shares_of(row: int, config: Config) -> int:
    """Return the number of copies for rows of `row` bytes; 1 on a machine where short runs are slow."""
    return 1 if config.packet_interval else ceil(row / SHARE)


def one_pass(config: Config, fmt: Format) -> bool:
    """Return whether the array multiplies this format in one pass, with an exact product if the other factor is 1."""
    return fmt in config.matmul_formats and fmt not in (FP32, INT8)


def matrix_of(matrix: Matrix | Tensor, name: str) -> Matrix:
    """Return an operand of a product: a matrix in HBM unchanged, a matrix on chip as `Rows`; ValueError if neither."""
    return matrix if isinstance(matrix, HbmTensor) else as_rows(matrix, name)


def on_chip(program: Program, matrix: Matrix | Tensor, parts: Sequence[slice] | None = None) -> Rows:
    """Return a matrix as tiles in SBUF; if the matrix is in HBM, append the load."""
    return load(program, matrix, parts) if isinstance(matrix, HbmTensor) else as_rows(matrix)


@located
def rows_like(program: Program, vector: RowVector, like: Rows, name: str = "parameters") -> Rows:
    """Return parameters [columns], the same for all rows, in tiles like those of a matrix.

    Arguments:
        program: program to which a load is appended.
        vector: a vector in HBM, which is loaded; a tensor in SBUF, which has the vector in every partition of a tile;
            or `Rows`, which are returned unchanged.
        like: the matrix.
        name: name of the parameters in messages.

    Raises:
        ValueError: if the vector is something else, or its shape or partitions do not fit.
    """
    columns, rows = like.shape[1], max(tile.partitions for tile in like.tiles)
    if not isinstance(vector, Rows | Tensor | HbmTensor):
        rule = f"a vector [{columns}] in HBM, a tensor [{columns}] in SBUF with it in every partition, or Rows"
        raise ValueError(f"{name} must be {rule}, not {type(vector).__name__}: numbers are inputs of `run`, by name")
    if vector.shape[-1:] != (columns,) or (not isinstance(vector, Rows) and len(vector.shape) != 1):
        raise ValueError(f"{name} must have one number per column, shape [{columns}], not {list(vector.shape)}")
    if isinstance(vector, Rows):
        return vector
    row = load_row(program, vector, rows=rows) if isinstance(vector, HbmTensor) else vector
    if row.partitions < rows:
        raise ValueError(f"{name} must be in all {rows} partitions of a tile, not {row.partitions} (see `load_row`)")
    return Rows(tuple(row[: tile.partitions] for tile in like.tiles))


@located
def load(program: Program, source: HbmTensor, parts: Sequence[slice] | None = None) -> Rows:
    """Append the load of a matrix to SBUF, by default in tiles of as many rows as an operand of the array has.

    Raises ValueError if `source` is not a matrix.
    """
    if not isinstance(source, HbmTensor):
        raise ValueError(f"load: the source must be a matrix in HBM, not {type(source).__name__}")
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


@located
def load_row(program: Program, source: HbmTensor, *, each: bool = False, rows: int | None = None) -> Tensor:
    """Append the broadcast of parameters [columns] to `rows` partitions, by default those of a result of the array.

    A format that the tensor engine multiplies in one pass is read from HBM once and multiplied by a column of ones,
    which copies it to all partitions. Other formats, such as FP32, are read from HBM for each partition.

    Arguments:
        program: program to which the instructions are appended.
        source: the parameters.
        each: whether to read any format from HBM for each partition, which is faster if the array has more work than
            HBM.
        rows: number of partitions; for more than a result of the array has, every format is read for each partition.
    """
    if not isinstance(source, HbmTensor) or len(source.shape) != 1:
        found = list(source.shape) if isinstance(source, HbmTensor) else type(source).__name__
        raise ValueError(f"load_row: the source must be a vector [columns] in HBM, not {found}")
    lanes = program.lanes if rows is None else rows
    row = program.space.sbuf(source.name, source.format, source.shape, lanes)
    if each or lanes > program.lanes or not one_pass(program.config, source.format):
        for part, columns in _shares(program.config, row, min(program.config.hbm_ports, HALVES)):
            size = beats(program.config, *_size(row[part, columns]))
            program.append(dma_copy(row[part, columns], source[columns]), _loading(program, size))
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


@located
def store(program: Program, target: HbmTensor, source: Rows | Tensor) -> None:
    """Append the store of a matrix to HBM.

    Raises:
        ValueError: if the shapes differ.
    """
    source = as_rows(source, "store: the source")
    if not isinstance(target, HbmTensor):
        raise ValueError(f"store: the target must be a matrix in HBM, not {type(target).__name__}")
    if target.shape != source.shape:
        raise ValueError(f"{target.name}: shape must be {list(source.shape)}, not {list(target.shape)}")
    for part, tile in zip(source.parts, source.tiles, strict=True):
        for rows, columns in _shares(program.config, tile, program.config.hbm_ports):
            program.append(dma_copy(target[part][rows, columns], tile[rows, columns]), next(program.stores))


def aligned(program: Program, tile: Tensor) -> Tensor:
    """Return the tile if the array can load it; otherwise append and return an aligned copy in the same partitions."""
    if tile.address % (LOAD_COLUMNS * tile.format.bits // 8) == 0 and (tile.steps == (1,) or tile.size == 1):
        return tile
    first, end = tile.partition, tile.partition + tile.partitions
    copy = program.space.sbuf(tile.name, tile.format, tile.shape, end)[first:]
    program.append(tensor_copy(copy, tile))
    return copy


def _shares(config: Config, tile: Tensor, most: int) -> list[tuple[slice, slice]]:
    """Split a tile into the copies (rows, columns) of a transfer; at most `most` copies share the same columns.

    Rows are split only if all copies remain long.
    """
    rows, size = _size(tile)
    count = shares_of(size, config)
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

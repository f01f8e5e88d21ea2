"""Matrices in SBUF with one row per partition, for row-wise kernels."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from numbers import Integral

import numpy as np

from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.kernels.program.operands import Draw
from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.spec.formats import FP32, Format
from neuroncore_rtl.spec.isa import Index

__all__ = ["Rows", "as_rows", "place_rows", "replicate", "scratch", "tiles_of"]


@dataclass(frozen=True)
class Rows:
    """On-chip matrix that is divided into tiles of rows, with one row per partition.

    Arguments:
        tiles: tensors of shape [columns], in order; by default with as many rows as there are partitions.
        first: index of the first row, if this is a part of a larger matrix.

    Raises:
        ValueError: if there is no tile, or the tiles differ in columns or format.
    """

    tiles: tuple[Tensor, ...]
    first: int = 0

    def __post_init__(self):
        tiles = self.tiles if isinstance(self.tiles, tuple | list) else ()
        if not tiles or not all(isinstance(tile, Tensor) for tile in tiles):
            raise ValueError(
                f"Rows: tiles must be tensors in SBUF or PSUM, such as Rows((tile,)), not {type(self.tiles).__name__}"
            )
        object.__setattr__(self, "tiles", tuple(tiles))
        kinds = {f"{tile.size} {tile.format.name}": tile.name for tile in tiles}
        if len(kinds) > 1:
            found = ", ".join(f"{kind} ({name})" for kind, name in kinds.items())
            raise ValueError(f"Rows: tiles must have the same columns and format, not {found}")

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and number of columns."""
        return sum(tile.partitions for tile in self.tiles), self.tiles[0].size

    @property
    def format(self) -> Format:
        """Format of an element."""
        return self.tiles[0].format

    @property
    def parts(self) -> list[slice]:
        """Range of row indices of each tile; the first row is 0."""
        ends = [*accumulate((tile.partitions for tile in self.tiles), initial=0)]
        return [slice(*pair) for pair in pairwise(ends)]

    @property
    def by_first(self) -> dict[int, Tensor]:
        """Tiles by the index of their first row; the matrix's first row is 0."""
        return dict(zip((part.start for part in self.parts), self.tiles, strict=True))

    @located
    def columns(self, first: int, end: int) -> "Rows":
        """Return the part of the matrix with the columns [first, end)."""
        return Rows(tuple(tile[:, first:end] for tile in self.tiles), self.first)

    @located
    def draws(self, seed: int | None, stream: int) -> list[Draw | None]:
        """Return a `Draw` per tile, or None per tile without a seed; an element's words do not depend on the tiling."""
        first, draws = self.first, []
        for tile in self.tiles:
            index = Index(base=first * tile.size, partition=tile.size, steps=(1,))
            draws.append(None if seed is None else Draw(seed=seed, stream=stream, index=index))
            first += tile.partitions
        return draws

    def write(self, memory: np.ndarray, codes: np.ndarray) -> None:
        """Write codes [rows, columns], or one row for all rows, into the bytes of SBUF, uint8 [partitions, bytes]."""
        codes, first = np.broadcast_to(codes, self.shape), 0
        for tile in self.tiles:
            part = np.ascontiguousarray(codes[first : first + tile.partitions]).astype(f"<u{tile.format.bits // 8}")
            octets = part.view(np.uint8).reshape(tile.partitions, -1)
            memory[: tile.partitions, tile.address : tile.address + octets.shape[1]] = octets
            first += tile.partitions

    def read(self, memory: np.ndarray) -> np.ndarray:
        """Return the codes [rows, columns] from the bytes of SBUF, uint8 [partitions, bytes]."""
        parts = []
        for tile in self.tiles:
            size = tile.format.bits // 8
            octets = memory[: tile.partitions, tile.address : tile.address + tile.size * size]
            parts.append(np.ascontiguousarray(octets).view(f"<u{size}"))
        return np.concatenate(parts)


@located
def as_rows(matrix: Rows | Tensor, name: str = "a matrix") -> Rows:
    """Return an on-chip matrix as `Rows`: a tensor [columns], with one row per partition, is a single tile.

    Raises:
        ValueError: if it is neither, such as a matrix in HBM; `name` is its name in the message.
    """
    if isinstance(matrix, Rows):
        return matrix
    if isinstance(matrix, Tensor) and len(matrix.shape) == 1:
        return Rows((matrix,))
    found = f"{matrix.name} {list(matrix.shape)}" if isinstance(matrix, Tensor | HbmTensor) else type(matrix).__name__
    place = " in HBM (kernels.tiling has `load` and `streamed`)" if isinstance(matrix, HbmTensor) else ""
    raise ValueError(f"{name} must be Rows, or a tensor [columns] in SBUF or PSUM, not {found}{place}")


@located
def tiles_of(*matrices: Rows | Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Return an iterator of the tiles with the same rows of several matrices.

    Raises:
        ValueError: if the matrices are not divided into the same tiles.
    """
    first, *others = rows = [as_rows(matrix) for matrix in matrices]
    parts = [tile.partitions for tile in first.tiles]
    for other in others:
        if (found := [tile.partitions for tile in other.tiles]) != parts:
            name, like = other.tiles[0].name, first.tiles[0].name
            raise ValueError(f"{name}: tiles must have the rows of {like}'s, {parts}, not {found}")
    return zip(*(matrix.tiles for matrix in rows), strict=True)


@located
def place_rows(
    space: Allocator,
    name: str,
    fmt: Format | str,
    rows: int,
    columns: int,
    first: int = 0,
    *,
    kept: bool = False,
    lanes: int | None = None,
) -> Rows:
    """Return a new matrix in SBUF, with `lanes` rows per tile, by default the number of partitions.

    `first` is the number of its first row in a larger matrix. Raises ValueError if it has no elements or does not fit.
    """
    if not all(isinstance(extent, Integral) and extent >= 1 for extent in (rows, columns)):
        raise ValueError(f"{name}: rows and columns must be integers of at least 1, not {rows!r} and {columns!r}")
    lanes, end = lanes or space.config.partitions, first + rows
    tiles = [
        space.sbuf(f"{name}[{at}:{min(at + lanes, end)}]", fmt, (columns,), min(lanes, end - at), kept=kept)
        for at in range(first, end, lanes)
    ]
    return Rows(tuple(tiles), first)


@located
def replicate(row: Tensor, rows: int, lanes: int | None = None) -> Rows:
    """Return a row of parameters, equal in every partition, as a matrix of equal rows.

    A tile has `lanes` rows, by default the partitions of the row.

    Raises:
        ValueError: if the row is not a tensor [columns], or has fewer partitions than a tile has rows.
    """
    (tile,) = as_rows(row, "a row of parameters").tiles
    lanes = row.partitions if lanes is None else lanes
    if rows < 1 or not 1 <= min(rows, lanes) <= tile.partitions:
        rule = f"rows, and lanes as rows of a tile, must be from 1 on, a tile at most {tile.partitions} rows"
        raise ValueError(f"{tile.name}: {rule}, not {rows} and {lanes}")
    return Rows(tuple(row[: min(lanes, rows - first)] for first in range(0, rows, lanes)))


@located
def scratch(
    space: Allocator, name: str, like: Rows | Tensor, columns: int | None = None, fmt: Format | str = FP32
) -> Rows:
    """Return a temporary matrix in tiles like those of `like`, with the same columns by default."""
    like = as_rows(like)
    width, tiles, first = columns or like.shape[1], [], like.first
    for tile in like.tiles:
        end = first + tile.partitions
        tiles.append(space.sbuf(f"{name}[{first}:{end}]", fmt, (width,), tile.partitions))
        first = end
    return Rows(tuple(tiles), like.first)

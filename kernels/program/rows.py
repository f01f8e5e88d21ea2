"""Matrices in SBUF with one row per partition, for row-wise kernels."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.kernels.program.operands import Draw
from neuroncore_rtl.kernels.program.tensor import Tensor
from neuroncore_rtl.spec.formats import FP32, Format
from neuroncore_rtl.spec.isa import Index

__all__ = ["Rows", "place_rows", "replicate", "scratch", "tiles_of"]


@dataclass(frozen=True)
class Rows:
    """On-chip matrix that is divided into tiles of rows, with one row per partition.

    The tiles, [columns], have by default as many rows as there are partitions. `first` is the index of the first row in
    a larger matrix.
    """

    tiles: tuple[Tensor, ...]
    first: int = 0

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

    def columns(self, first: int, end: int) -> "Rows":
        """Return the part of the matrix with the columns [first, end)."""
        return Rows(tuple(tile[:, first:end] for tile in self.tiles), self.first)

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


def tiles_of(*matrices: Rows) -> Iterator[tuple[Tensor, ...]]:
    """Yield the tiles with the same rows of several matrices, which must be divided into the same tiles."""
    return zip(*(matrix.tiles for matrix in matrices), strict=True)


def place_rows(
    space: Allocator,
    name: str,
    fmt: Format,
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
    if rows < 1 or columns < 1:
        raise ValueError(f"{name}: shape must be at least 1 x 1, not {rows} x {columns}")
    lanes, end = lanes or space.config.partitions, first + rows
    tiles = [
        space.sbuf(f"{name}[{at}:{min(at + lanes, end)}]", fmt, (columns,), min(lanes, end - at), kept=kept)
        for at in range(first, end, lanes)
    ]
    return Rows(tuple(tiles), first)


def replicate(row: Tensor, rows: int, lanes: int | None = None) -> Rows:
    """Return a row of parameters as a matrix of equal rows, in tiles of `lanes`, by default the row's partitions."""
    lanes = lanes or row.partitions
    return Rows(tuple(row[: min(lanes, rows - first)] for first in range(0, rows, lanes)))


def scratch(space: Allocator, name: str, like: Rows, columns: int | None = None, fmt: Format = FP32) -> Rows:
    """Return a temporary matrix in tiles like those of `like`, with the same columns by default."""
    width, tiles, first = columns or like.shape[1], [], like.first
    for tile in like.tiles:
        end = first + tile.partitions
        tiles.append(space.sbuf(f"{name}[{first}:{end}]", fmt, (width,), tile.partitions))
        first = end
    return Rows(tuple(tiles), like.first)

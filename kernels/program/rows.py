"""Matrices in SBUF, a row a partition: what the element-wise kernels work on, whatever the shape."""

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
    """A matrix cut into tiles of rows, each row in a partition; unless told of as many as there are partitions.

    Arguments:
        tiles: of shape [columns] each, in order.
        first: number of the first row, if these are rows out of the middle of a matrix.
    """

    tiles: tuple[Tensor, ...]
    first: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return sum(tile.partitions for tile in self.tiles), self.tiles[0].size

    @property
    def format(self) -> Format:
        """Of an element."""
        return self.tiles[0].format

    @property
    def parts(self) -> list[slice]:
        """The rows of each tile, from 0 on."""
        ends = [*accumulate((tile.partitions for tile in self.tiles), initial=0)]
        return [slice(*pair) for pair in pairwise(ends)]

    @property
    def by_first(self) -> dict[int, Tensor]:
        """Each tile by the number of its first row, from 0 on, which tells it from the others."""
        return dict(zip((part.start for part in self.parts), self.tiles, strict=True))

    def columns(self, first: int, end: int) -> "Rows":
        """Return the columns from `first` to before `end`."""
        return Rows(tuple(tile[:, first:end] for tile in self.tiles), self.first)

    def draws(self, seed: int | None, stream: int) -> list[Draw | None]:
        """Return for each tile the draw that numbers elements in the whole matrix, so that tiles change no bit; without
        a seed None."""
        first, draws = self.first, []
        for tile in self.tiles:
            index = Index(base=first * tile.size, partition=tile.size, steps=(1,))
            draws.append(None if seed is None else Draw(seed=seed, stream=stream, index=index))
            first += tile.partitions
        return draws

    def write(self, memory: np.ndarray, codes: np.ndarray) -> None:
        """Put codes [rows, columns], or one row for all, into a memory's image, uint8 [partitions, bytes]."""
        codes, first = np.broadcast_to(codes, self.shape), 0
        for tile in self.tiles:
            part = np.ascontiguousarray(codes[first : first + tile.partitions]).astype(f"<u{tile.format.bits // 8}")
            octets = part.view(np.uint8).reshape(tile.partitions, -1)
            memory[: tile.partitions, tile.address : tile.address + octets.shape[1]] = octets
            first += tile.partitions

    def read(self, memory: np.ndarray) -> np.ndarray:
        """Return the codes [rows, columns] that a memory's image, uint8 [partitions, bytes], holds."""
        parts = []
        for tile in self.tiles:
            size = tile.format.bits // 8
            octets = memory[: tile.partitions, tile.address : tile.address + tile.size * size]
            parts.append(np.ascontiguousarray(octets).view(f"<u{size}"))
        return np.concatenate(parts)


def tiles_of(*matrices: Rows) -> Iterator[tuple[Tensor, ...]]:
    """Return the tiles of matrices that are cut alike, those of the same rows together."""
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
    """Return a new matrix in SBUF, or `rows` of one from row `first` on.

    Arguments:
        lanes: rows of a tile; None: as many as there are partitions.

    Raises:
        ValueError: if it has no elements, or there is no room; the message names it.
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
    """Return a row of parameters, the same in every partition, as a matrix of which it is every row.

    Arguments:
        row: of shape [columns].
        rows: of the matrix.
        lanes: rows of a tile; None: as many as the row has partitions.
    """
    lanes = lanes or row.partitions
    return Rows(tuple(row[: min(lanes, rows - first)] for first in range(0, rows, lanes)))


def scratch(space: Allocator, name: str, like: Rows, columns: int | None = None, fmt: Format = FP32) -> Rows:
    """Return a temporary for what a kernel computes on the way: cut into tiles like `like`, as wide unless told."""
    width, tiles, first = columns or like.shape[1], [], like.first
    for tile in like.tiles:
        end = first + tile.partitions
        tiles.append(space.sbuf(f"{name}[{first}:{end}]", fmt, (width,), tile.partitions))
        first = end
    return Rows(tuple(tiles), like.first)

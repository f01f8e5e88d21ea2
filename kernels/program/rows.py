"""Matrices in SBUF, a row a partition: what the element-wise kernels work on, whatever the shape."""

from dataclasses import dataclass

import numpy as np

from neuroncore_rtl.kernels.program.allocator import Allocator
from neuroncore_rtl.kernels.program.instructions import Draw
from neuroncore_rtl.kernels.program.tensor import Tensor
from neuroncore_rtl.spec.formats import Format
from neuroncore_rtl.spec.isa import Index

__all__ = ["Rows", "place_rows", "replicate"]


@dataclass(frozen=True)
class Rows:
    """A matrix cut into tiles of as many rows as there are partitions; the last tile may have fewer.

    Arguments:
        tiles: of shape [columns] each, in order.
    """

    tiles: tuple[Tensor, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return sum(tile.partitions for tile in self.tiles), self.tiles[0].size

    def draws(self, seed: int, stream: int) -> list[Draw]:
        """Return for each tile the draw that numbers elements in the whole matrix, so that tiles change no bit."""
        first, draws = 0, []
        for tile in self.tiles:
            index = Index(base=first * tile.size, partition=tile.size, steps=(1,))
            draws.append(Draw(seed=seed, stream=stream, index=index))
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


def place_rows(space: Allocator, name: str, fmt: Format, rows: int, columns: int) -> Rows:
    """Return a new matrix in SBUF.

    Raises:
        ValueError: if it has no elements, or there is no room; the message names it.
    """
    if rows < 1 or columns < 1:
        raise ValueError(f"{name}: shape must be at least 1 x 1, not {rows} x {columns}")
    lanes = space.config.partitions
    tiles = [
        space.sbuf(f"{name}[{first}:{min(first + lanes, rows)}]", fmt, (columns,), min(lanes, rows - first))
        for first in range(0, rows, lanes)
    ]
    return Rows(tuple(tiles))


def replicate(space: Allocator, name: str, fmt: Format, rows: int, columns: int) -> Rows:
    """Return one row of parameters that all rows of a matrix share: in every partition, the same for every tile."""
    lanes = min(space.config.partitions, rows)
    whole = space.sbuf(name, fmt, (columns,), lanes)
    return Rows(tuple(whole[: min(lanes, rows - first)] for first in range(0, rows, lanes)))

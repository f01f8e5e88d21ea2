"""Differences of a matrix from golden's: their number, and the first wrong tile in decimal."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["WrongTile", "count_differences", "first_wrong_tile"]

SHOWN = 4
"""Maximum number of different elements that are printed."""


@dataclass(frozen=True)
class WrongTile:
    """The first tile of a matrix that differs from golden's; tiles are in row-major order.

    Arguments:
        name: the matrix.
        row, column: of the tile's first element.
        found, expected: the numbers of the tile as decimal text, by row.
        places: row and column in the matrix of each different element.
    """

    name: str
    row: int
    column: int
    found: list[list[str]]
    expected: list[list[str]]
    places: list[tuple[int, int]]

    @property
    def count(self) -> int:
        """Number of elements of the tile."""
        return sum(map(len, self.found))

    def __str__(self) -> str:
        rows, columns = self.row + len(self.found), self.column + len(self.found[0])
        return f"{self.name}[rows {self.row}:{rows}, columns {self.column}:{columns}]"


def first_wrong_tile(
    name: str, found: np.ndarray, expected: np.ndarray, side: int, number: Callable[[np.ndarray], np.ndarray]
) -> WrongTile | None:
    """Return the first tile of `side` in which two matrices of codes differ; `number` returns the numbers of codes."""
    differs = found != expected
    if not differs.any():
        return None
    row, column = min((np.argwhere(differs) // side * side).tolist())
    tile = slice(row, row + side), slice(column, column + side)

    def texts(codes: np.ndarray) -> list[list[str]]:
        return [[*map(str, line)] for line in number(np.ascontiguousarray(codes[tile]))]

    places = [(row + at, column + along) for at, along in np.argwhere(differs[tile]).tolist()]
    return WrongTile(name, row, column, texts(found), texts(expected), places)


def count_differences(
    found: np.ndarray, expected: np.ndarray, integer: bool, side: int, again: str
) -> tuple[int, WrongTile | None]:
    """Return the number of elements in which a product differs from golden's, and the first wrong tile; print it.

    Products are uint32 [M, N], words of FP32 or INT32, in tiles of `side`. `again` is the printed shell command that
    repeats the run.
    """
    kind = np.int32 if integer else np.float32
    tile = first_wrong_tile("C", found, expected, side, lambda words: words.view(kind))
    if tile is None:
        return 0, None
    print(f"{tile} is the first tile that differs, in {len(tile.places):,} of {tile.count:,} elements:")
    for place in tile.places[:SHOWN]:
        told = [f"{words[place].view(kind)} ({words[place]:08x})" for words in (found, expected)]
        print(f"  C[{place[0]}, {place[1]}]: RTL {told[0]}, golden {told[1]}")
    print(f"to see it: {again}")
    return int((found != expected).sum()), tile

"""The first tile of a matrix that differs from golden's, in decimal."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["WrongTile", "first_wrong_tile"]


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

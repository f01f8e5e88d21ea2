"""Differences of a product: their number, and the first tile that has one, in decimal."""

from typing import Any

import numpy as np

__all__ = ["count_differences"]

SHOWN = 4
"""Most elements of the tile that are printed."""


def count_differences(found: np.ndarray, expected: np.ndarray, integer: bool, side: int, again: str) -> int:
    """Return the number of elements of a product that differ, and print the first ones.

    Arguments:
        found: the product, words of FP32 or INT32, uint32 of shape [M, N].
        expected: golden's product.
        integer: whether the words are INT32.
        side: rows and columns of a tile.
        again: the command that records a waveform of the run.
    """
    differs = found != expected
    if not differs.any():
        return 0
    # The first tile in row-major order, the order in which products are tiled.
    row, column = min((np.argwhere(differs) // side * side).tolist())
    rows, columns = range(row, min(row + side, len(found))), range(column, min(column + side, found.shape[1]))
    own = np.argwhere(differs[row : rows.stop, column : columns.stop]) + (row, column)
    tile = f"C[rows {row}:{rows.stop}, columns {column}:{columns.stop}]"
    print(f"{tile} is the first tile that differs, in {len(own):,} of {len(rows) * len(columns):,} elements:")
    for place in map(tuple, own[:SHOWN].tolist()):
        told = [f"{_number(words[place], integer)} ({words[place]:08x})" for words in (found, expected)]
        print(f"  C[{place[0]}, {place[1]}]: RTL {told[0]}, golden {told[1]}")
    print(f"to see it: {again}")
    return int(differs.sum())


def _number(word: Any, integer: bool) -> str:
    return str(word.view(np.int32 if integer else np.float32))

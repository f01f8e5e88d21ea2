"""Differences of a product: their number, and the first wrong tile in decimal."""

from typing import Any

import numpy as np

__all__ = ["count_differences"]

SHOWN = 4
"""Maximum number of different elements that are printed."""


def count_differences(found: np.ndarray, expected: np.ndarray, integer: bool, side: int, again: str) -> int:
    """Return the number of elements in which a product differs from golden's, and print the first of them.

    Products are uint32 [M, N], words of FP32 or INT32, in tiles of `side`. `again` is the printed shell command that
    repeats the run.
    """
    differs = found != expected
    if not differs.any():
        return 0
    # Products are tiled in row-major order.
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

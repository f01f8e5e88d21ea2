"""Differences of a product: their number, and the first wrong tile in decimal."""

from typing import Any

import numpy as np

from neuroncore_rtl.run.wrong_tile import WrongTile, first_wrong_tile

__all__ = ["count_differences"]

SHOWN = 4
"""Maximum number of different elements that are printed."""


def count_differences(
    found: np.ndarray, expected: np.ndarray, integer: bool, side: int, again: str
) -> tuple[int, WrongTile | None]:
    """Return the number of elements in which a product differs from golden's, and the first wrong tile; print it.

    Products are uint32 [M, N], words of FP32 or INT32, in tiles of `side`. `again` is the printed shell command that
    repeats the run.
    """
    tile = first_wrong_tile("C", found, expected, side, lambda words: words.view(np.int32 if integer else np.float32))
    if tile is None:
        return 0, None
    print(f"{tile} is the first tile that differs, in {len(tile.places):,} of {tile.count:,} elements:")
    for place in tile.places[:SHOWN]:
        told = [f"{_number(words[place], integer)} ({words[place]:08x})" for words in (found, expected)]
        print(f"  C[{place[0]}, {place[1]}]: RTL {told[0]}, golden {told[1]}")
    print(f"to see it: {again}")
    return int((found != expected).sum()), tile


def _number(word: Any, integer: bool) -> str:
    return str(word.view(np.int32 if integer else np.float32))

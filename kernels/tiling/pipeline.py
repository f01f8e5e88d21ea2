"""Software pipelining of tiles that have the same steps.

Engines issue in program order. Appending all steps of one tile before the next would keep only one engine busy at a
time; interleaved steps of several tiles keep all engines busy.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

__all__ = ["pipelined"]


def pipelined(tiles: Iterable[Iterator[None]]) -> None:
    """Append the steps of all tiles, interleaved: each round runs one step of every started tile, the newest first.

    A tile's generator appends the instructions of a step before each yield; a temporary should live for few steps.
    """
    waiting, under_way, done = iter(tiles), [], object()
    while under_way := [*islice(waiting, 1), *under_way]:
        under_way = [tile for tile in under_way if next(tile, done) is not done]

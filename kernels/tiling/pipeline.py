"""Software pipelining: what is done to many tiles alike, each tile a step behind the one before it.

Engines start their instructions in the order of the program. So a tile that is taken from its beginning to its end
keeps all engines waiting for one of them at a time; steps of several tiles that take turns keep them all busy.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

__all__ = ["pipelined"]


def pipelined(tiles: Iterable[Iterator[None]]) -> None:
    """Append what tiles are made of, a step of each in turn, the tile that came last first.

    Arguments:
        tiles: of each a generator that appends a step, then yields; its temporaries live through few steps.
    """
    waiting, under_way, done = iter(tiles), [], object()
    while under_way := [*islice(waiting, 1), *under_way]:
        under_way = [tile for tile in under_way if next(tile, done) is not done]

"""Blocks of taps: which elements of a convolution's filter share the partitions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from neuroncore_rtl.frontends.xla.emit.phases import PhaseLine
from neuroncore_rtl.kernels.tiling.blocks import cut, length

__all__ = ["TapBlock", "tap_blocks"]

Tap = tuple[tuple[int, ...], tuple[int, ...]]
"""Place of a tap in the filter, and the elements that it meets for the first output."""


@dataclass(frozen=True)
class TapBlock:
    """Products of one stationary operand.

    Arguments:
        rows: channels.
        taps: taps, for each of which the channels are along the partitions.
        copies: rows and columns of taps for which the array has shifted copies; a block's taps are the first of them.
    """

    rows: slice
    taps: tuple[Tap, ...]
    copies: tuple[int, int]

    @property
    def height(self) -> int:
        return length(self.rows) * len(self.taps)


def tap_blocks(lines: Sequence[PhaseLine], channels: int, lanes: int) -> Iterator[TapBlock]:
    """Yield the blocks of a phase for so many partitions.

    Some rows of taps are divided into blocks of several rows, the rest into blocks of a row.
    """
    planes, rows, columns = (line.taps for line in lines)
    share = max(1, lanes // max(1, channels))
    down = min(share, len(rows))

    def across(height: int) -> int:
        return min(share // height, len(columns))

    def count(whole: int) -> int:
        rest = (len(rows) - whole) * -(-len(columns) // across(1))
        return -(-whole // down) * -(-len(columns) // across(down)) + rest

    whole = min(range(len(rows), -1, -1), key=count)
    for part in cut(0, channels, lanes):
        for plane in planes:
            for height, own in ((down, rows[:whole]), (1, rows[whole:])):
                for few in cut(0, len(own), height):
                    for some in cut(0, len(columns), across(height)):
                        taps = [zip(plane, row, column, strict=True) for column in columns[some] for row in own[few]]
                        places = tuple((place, start) for place, start in taps)
                        yield TapBlock(part, places, (height, across(height)))

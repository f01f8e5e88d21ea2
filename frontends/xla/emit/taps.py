"""Blocks of taps: which elements of a convolution's filter share the partitions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from neuroncore_rtl.frontends.xla.emit.phases import PhaseLine
from neuroncore_rtl.kernels.library.matmul import passes
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import Format

__all__ = ["TapBlock", "is_packed", "tap_blocks"]

Tap = tuple[tuple[int, ...], tuple[int, ...]]
"""Place of a tap in the filter, and the elements that it meets for the first output."""

_RECORD = 16
"""Cycles of the tensor engine for a record besides its columns."""


@dataclass(frozen=True)
class TapBlock:
    """Products of one stationary operand.

    Arguments:
        rows: channels.
        taps: taps, for each of which the channels are along the partitions.
        axis: dimension along which the array has shifted copies, one for each tap.
    """

    rows: slice
    taps: tuple[Tap, ...]
    axis: int = 1

    @property
    def height(self) -> int:
        return length(self.rows) * len(self.taps)


def is_packed(config: Config, lines: Sequence[PhaseLine], images: int, channels: int, fmt: Format) -> bool:
    """Return whether taps that share the partitions take less time if each has its own elements.

    The other way is a copy of the array for each row of taps, which is loaded once, but shares partitions less well.
    """
    share = config.rows // max(1, channels)
    if share < 2:
        return False
    (planes, rows, columns), taps = (line.count for line in lines), [len(line.taps) for line in lines]
    count, total, step = len(passes(fmt)), images * planes * rows * columns, lines[2].step
    moves, together = images * planes * (1 if lines[1].step == step == 1 else rows), [*_shared_taps(lines, share)]
    shared = count * len(together) * (total + _RECORD * moves)
    row = columns if step > 1 else -(-columns * fmt.bits // (8 * config.hbm_bytes)) + 1
    image = channels * images * planes * rows * row // config.hbm_ports
    blocks = -(-prod(taps) // share)
    alone = count * blocks * (total + _RECORD * -(-total // config.psum_words))
    copies = sum(max(len(some) for at, some in together if at == axis) for axis in {axis for axis, _ in together})
    return alone + prod(taps) * image < shared + copies * image


def tap_blocks(config: Config, lines: Sequence[PhaseLine], channels: int, packed: bool) -> Iterator[TapBlock]:
    """Yield the blocks of a phase; if packed, each tap has its own elements of the array."""
    share = config.rows // max(1, channels)
    if packed:
        taps = [*_taps(*(line.taps for line in lines))]
        yield from (TapBlock(slice(0, channels), tuple(taps[some])) for some in cut(0, len(taps), share))
        return
    for rows in cut(0, channels, config.rows):
        yield from (TapBlock(rows, some, axis) for axis, some in _shared_taps(lines, share))


def _taps(*sides: Sequence[tuple[int, int]]) -> Iterator[Tap]:
    """Yield the taps of planes, rows and columns."""
    yield from (tuple(zip(*one, strict=True)) for one in product(*sides))


def _shared_taps(lines: Sequence[PhaseLine], share: int) -> Iterator[tuple[int, tuple[Tap, ...]]]:
    """Yield the taps that up to `share` copies of the array meet together, and the axis along which these are shifted.

    Some rows of taps are divided into parts of columns, axis 1, the others into parts of rows.
    """
    planes, rows, columns = (line.taps for line in lines)
    down, across = min(share, len(rows)) or 1, min(share, len(columns)) or 1

    def blocks(whole: int) -> int:
        return len(columns) * -(-whole // down) + (len(rows) - whole) * -(-len(columns) // across)

    whole = min(range(len(rows), -1, -1), key=blocks)
    for plane in planes:
        for column in columns:
            for some in cut(0, whole, down):
                yield 1, tuple(_taps([plane], rows[some], [column]))
        for row in rows[whole:]:
            for some in cut(0, len(columns), across):
                yield 2, tuple(_taps([plane], [row], columns[some]))

"""Operands of a convolution: tiles in SBUF of the array and of the filter, with channels along the partitions.

A row of an image is short, so images with adjacent rows in HBM are loaded without padding, and the vector engine
moves them to their places. The array transposes filters that have outputs outermost.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from neuroncore_rtl.kernels.library.transpose import ChipMoves
from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, dma_copy
from neuroncore_rtl.kernels.program.instructions import memset
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.engines import LONG, beats
from neuroncore_rtl.kernels.tiling.phases import PhaseBox, PhaseLine, TapBlock
from neuroncore_rtl.kernels.tiling.views import merged_lines
from neuroncore_rtl.spec.config import LOAD_COLUMNS, Config
from neuroncore_rtl.spec.formats import INT8, Format
from neuroncore_rtl.spec.isa.access import allowed_start

__all__ = ["ConvolutionFilter", "copy_long", "grouped", "is_turned", "padded_tile"]

_SHORT = 128
"""Bytes of a row that DMA moves well."""
_SHARE = 4
"""Fraction of SBUF for the filter: 1 / 4."""


def grouped(tensor: HbmTensor, axis: int, groups: int) -> HbmTensor:
    """Return a tensor of two and three spatial dimensions, behind one of the groups into which an axis is divided."""
    shape = tensor.shape[:2] + (1,) * (5 - len(tensor.shape)) + tensor.shape[2:]
    steps = tensor.steps[:2] + (0,) * (5 - len(tensor.shape)) + tensor.steps[2:]
    n, step = shape[axis] // groups, steps[axis]
    shape, steps = ([*some[:axis], one, *some[axis + 1 :]] for some, one in ((shape, n), (steps, step)))
    return replace(tensor, shape=(groups, *shape), steps=(n * step, *steps))


def copy_long(program: Program, target: HbmTensor | Tensor, source: HbmTensor | Tensor) -> None:
    """Append a copy between SBUF and HBM [channels, ...], in parts by channels for several engines if it is long."""
    (channels, *shape), config = source.dma_operand()[0], program.config
    target, source = _merged(target, source)
    row = source.shape[-1] * source.format.bits // 8
    long = beats(config, channels * prod(shape) // source.shape[-1], row) > LONG
    for part in cut(0, channels, -(-channels // config.hbm_ports) if long else channels):
        program.append(dma_copy(target[part], source[part]))


def _merged(*tensors: HbmTensor | Tensor) -> list[HbmTensor | Tensor]:
    """Return views without inner dimensions that both tensors traverse as one."""
    inner = len(next(one for one in tensors if isinstance(one, Tensor)).shape)
    lines = merged_lines([*zip(tensors[0].shape[-inner:], *(one.steps[-inner:] for one in tensors), strict=True)])
    return [one.reshape(*one.shape[: len(one.shape) - inner], *(extent for extent, *_ in lines)) for one in tensors]


def padded_tile(
    chip: ChipMoves, array: HbmTensor, rows: slice, lines: Sequence[PhaseLine], box: PhaseBox,
    copies: tuple[int, int], loaded: dict[int, Tensor],
) -> Tensor:  # fmt: skip
    """Append the load of some channels with their padding, and of copies that are shifted by rows and columns of taps.

    `loaded` are the channels without padding by their first partition.
    """
    reaches = [line.reach(part) for line, part in zip(lines, box[1:], strict=True)]
    shape, channels = (length(box[0]), *(end - first for first, end in reaches)), length(rows)
    tile = chip.program.space.sbuf(array.name, array.format, shape, channels * prod(copies))
    whole = [slice(max(0, first), min(end, line.extent)) for (first, end), line in zip(reaches, lines, strict=True)]
    (rows_of, columns_of), parts = ([start for _, start in line.taps] for line in lines[1:]), []
    for copy, (column, row) in enumerate(product(columns_of[: copies[1]], rows_of[: copies[0]])):
        (plane, _), (top, _), (left, _) = reaches
        firsts = plane, top + row - rows_of[0], left + column - columns_of[0]
        sides = [*zip(firsts, shape[1:], whole, strict=True)]
        there = [slice(max(one.start, first), min(first + n, one.stop)) for first, n, one in sides]
        if all(length(one) > 0 for one in there):
            within = [slice(one.start - first, one.stop - first) for one, first in zip(there, firsts, strict=True)]
            inner = [slice(one.start - of.start, one.stop - of.start) for one, of in zip(there, whole, strict=True)]
            parts.append((copy * channels, (slice(None), slice(None), *inner), (slice(None), *within)))
    _clear_border(chip.program, tile, [within for *_, within in parts])
    for lane, inner, within in parts:
        target = tile[lane : lane + channels][(slice(None), *within)]
        source = array[(box[0], rows, *whole)].permute(1, 0, 2, 3, 4)
        if _is_moved(chip.program, target, source):
            if lane not in loaded:
                # The engines access the same partitions on both sides.
                dense = chip.program.space.sbuf(array.name, array.format, source.shape[1:], lane + channels)
                loaded[lane] = dense[lane:]
                copy_long(chip.program, loaded[lane], source)
            chip.move(target, loaded[lane][inner])
        else:
            copy_long(chip.program, target, source[inner])
    return tile


def _is_moved(program: Program, target: Tensor, source: HbmTensor) -> bool:
    """Return whether an image is loaded densely: its rows are short, adjacent in HBM, and not adjacent in the tile."""
    quadrant, height, width = program.config.quadrant, *source.shape[-2:]
    legal = target.partition % quadrant == 0 and not allowed_start(target.partition, target.partitions, quadrant)
    short = width * source.format.bits // 8 < _SHORT and height > 1
    return legal and short and source.steps[-2] == width and target.steps[-2] != width


def _clear_border(program: Program, tile: Tensor, parts: Sequence[tuple[slice, ...]]) -> None:
    """Append zeros wherever a part does not cover the tile: in slabs before and behind all parts' common elements."""
    if not parts:
        program.append(memset(tile, 0))
        return
    rest = [slice(0, extent) for extent in tile.shape]
    for axis in range(1, len(tile.shape)):
        low, high = max(part[axis].start for part in parts), min(part[axis].stop for part in parts)
        low, high = (low, high) if low < high else (tile.shape[axis], tile.shape[axis])
        for slab in (slice(0, low), slice(high, tile.shape[axis])):
            if length(slab) > 0:
                program.append(memset(tile[(slice(None), *rest[:axis], slab, *rest[axis + 1 :])], 0))
        rest[axis] = slice(low, high)
        if low == high:
            return


def is_turned(config: Config, filter_: HbmTensor, fmt: Format) -> bool:
    """Return whether the array transposes a filter [..., channels, planes, rows, columns, outputs].

    Adjacent elements are then of one output, and there is room for both layouts.
    """
    channels, *taps, outputs = filter_.shape[-5:]
    inner = [step for extent, step in zip(filter_.shape[-5:-1], filter_.steps[-5:-1], strict=True) if extent > 1]
    columns = -(-outputs // config.rows) * channels + outputs * -(-channels // config.rows)
    room = columns * prod(taps) * fmt.bits * _SHARE <= config.sbuf_bytes * 8
    return outputs > 1 and filter_.steps[-1] != 1 and min(inner, default=0) == 1 and room and fmt is not INT8


@dataclass
class ConvolutionFilter:
    """A group's filter.

    Arguments:
        chip: for moves on chip.
        tensor: [channels, planes, rows, columns, outputs].
        format: format of the stationary operand.
        turned: whether the array transposes it.
        tiles: its parts in SBUF.
    """

    chip: ChipMoves
    tensor: HbmTensor
    format: Format
    turned: bool
    tiles: dict[tuple, Tensor] = field(default_factory=dict)

    def prepare(self, blocks: Sequence[TapBlock], outputs: Sequence[slice]) -> None:
        """Append the transpositions of all parts, which have to come before products in order."""
        for block, few in product(blocks, outputs) if self.turned else ():
            self.stationary(block, few)

    def stationary(self, block: TapBlock, few: slice) -> Tensor:
        """Return a block's part of some outputs, which is loaded once, or at each use if the filter has no room."""
        outputs, config = self.tensor.shape[-1], self.chip.program.config
        wide = -(-outputs // LOAD_COLUMNS) * LOAD_COLUMNS
        size = -(-self.tensor.size // (outputs * block.height)) * wide * self.format.bits
        fits = self.turned or size * _SHARE <= config.sbuf_bytes * 8
        own = few if self.turned or not fits else slice(0, outputs)
        key = block.rows.start, block.taps, own.start
        if key not in self.tiles or not fits:
            self.tiles[key] = self._transposed(block, few) if self.turned else self._loaded(block, own)
        return self.tiles[key][:, few.start - own.start : few.stop - own.start]

    def _new(self, shape: tuple[int, ...], partitions: int) -> Tensor:
        return self.chip.program.space.sbuf(self.tensor.name, self.format, shape, partitions)

    def _transposed(self, block: TapBlock, few: slice) -> Tensor:
        """Append and return a block's part, transposed from a load with outputs along the partitions."""
        key, channels = (few.start,), length(block.rows)
        if key not in self.tiles:
            order = sorted(range(4), key=lambda d: -self.tensor.steps[d])
            source = self.tensor[..., few].permute(4, *order)
            tile = self._new(source.shape[1:], length(few))
            copy_long(self.chip.program, tile, source)
            self.tiles[key] = tile.permute(*(order.index(d) for d in range(4)))
        # The engines gather the taps, since the array transposes adjacent columns.
        flat = self._new((block.height,), length(few))
        for place, (tap, _) in enumerate(block.taps):
            part = self.tiles[key][(slice(None), block.rows, *tap)]
            self.chip.move(flat[:, place * channels : (place + 1) * channels], part)
        found = self._new((length(few),), block.height)
        self.chip.move(found, self.chip.turned([flat]))
        return found

    def _loaded(self, block: TapBlock, few: slice) -> Tensor:
        """Append the load of a block's part, of adjacent taps together if channels are not outermost; return it."""
        tile, channels = self._new((length(few),), block.height), length(block.rows)
        taps = self.tensor[block.rows][..., few].permute(1, 2, 3, 0, 4)
        numbers = [(plane * taps.shape[1] + row) * taps.shape[2] + column for (plane, row, column), _ in block.taps]
        parts = [(place * channels, taps[tap]) for place, (tap, _) in enumerate(block.taps)]
        if numbers == [*range(numbers[0], numbers[0] + len(numbers))]:
            with suppress(ValueError):
                flat = taps.reshape(prod(taps.shape[:4]), length(few))
                parts = [(0, flat[numbers[0] * channels :][: block.height])]
        for first, part in parts:
            copy_long(self.chip.program, tile[first : first + part.shape[0]], part)
        return tile

"""Convolutions on the tensor engine: channels along the partitions, a stationary operand per tap, sums in PSUM.

The array is in SBUF, with its padding, and the moving operand of a tap is a shifted view of it: with steps of 1,
several rows together, and results at the padding between two rows are ignored. If there are half as many channels as
partitions, or less, several taps share them, each with a copy of the array that is shifted by rows and columns of taps.

A stationary operand is loaded once for as many sums as there are open banks.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from neuroncore_rtl.kernels.library.convolution.operands import (
    ConvolutionFilter,
    copy_long,
    grouped,
    is_turned,
    padded_tile,
)  # fmt: skip
from neuroncore_rtl.kernels.library.copy_hbm import made_adjacent
from neuroncore_rtl.kernels.library.matmul import add_products
from neuroncore_rtl.kernels.library.transpose import ChipMoves
from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, dma_copy
from neuroncore_rtl.kernels.program.instructions import memset, tensor_copy
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.phases import (
    ColumnPart,
    PhaseBox,
    PhaseLine,
    TapBlock,
    WindowShape,
    banks_of,
    parts_of,
    phases_of,
    tap_blocks,
)
from neuroncore_rtl.kernels.tiling.transfer import aligned
from neuroncore_rtl.kernels.tiling.views import pieces
from neuroncore_rtl.spec.config import PSUM_BANKS
from neuroncore_rtl.spec.formats import FP32, INT8, INT32, Format

__all__ = ["convolution"]

_OPEN = PSUM_BANKS // 2
"""Banks of sums that a stationary operand is loaded for; the others hold the sums before and after them."""
_LONG = 128
"""Columns of a bank that hide the load of a stationary operand."""
_SHARE = 4
"""Fraction of SBUF for the array, and for the filter: 1 / 4."""


@located
def convolution(
    program: Program,
    out: HbmTensor,
    array: HbmTensor,
    filter_: HbmTensor,
    window: WindowShape,
    reverse: tuple[bool, ...] = (),
    *,
    groups: int = 1,
    batch_groups: int = 1,
    fmt: Format | None = None,
    chip: ChipMoves | None = None,
    clear: Callable[[HbmTensor], None] | None = None,
) -> None:
    """Append a convolution in HBM: group by group, phase by phase.

    Arguments:
        program: where instructions are appended.
        out: [N, O, spatial], with at most three spatial dimensions.
        array: [N, C, spatial]; views need no copy if adjacent elements are adjacent in HBM.
        filter_: [O, C / groups, spatial].
        window: the filter's places in the array.
        reverse: spatial dimensions in which the filter is flipped; default none.
        groups: number of groups that divide C and O.
        batch_groups: number of groups that divide N and O.
        fmt: format of the products, default the array's; others are cast.
        chip: for moves on chip.
        clear: appends zeros to a part of the result that no element of the array reaches.

    Raises:
        ValueError: if the shapes do not fit.
    """
    rank, count = len(window.size), groups * batch_groups
    fmt, chip, reverse = fmt or array.format, chip or ChipMoves(program), reverse or (False,) * rank
    wanted = array.shape[0] // batch_groups, filter_.shape[0], *window.counts(array.shape[2:])
    if rank > 3 or filter_.shape[2:] != window.size or out.shape != wanted:
        rule = f"shape must be {list(wanted)} for a filter of {list(window.size)} in at most three dimensions"
        raise ValueError(f"{out.name}: {rule}, not {list(out.shape)} for {list(filter_.shape[2:])}")
    phases = [*phases_of(window, reverse, array.shape[2:], out.shape[2:])]
    array = grouped(array, 0 if batch_groups > 1 else 1, count)
    filter_ = grouped(filter_, 0, count).permute(0, 2, 3, 4, 5, 1)
    out = grouped(out, 1, count)
    turned = is_turned(program.config, filter_, fmt)
    if not turned and filter_.steps[-1] != 1:
        filter_ = made_adjacent(program, filter_, fmt)
    array = made_adjacent(program, array, fmt)
    for group in range(count):
        own = _Group(chip, array[group], ConvolutionFilter(chip, filter_[group], fmt, turned))
        for lines in phases:
            part = out[group][(slice(None), slice(None), *(line.outputs for line in lines))]
            if array.shape[2] and all(line.taps for line in lines):
                own.append(part, lines)
            elif clear is not None:
                clear(part)
            else:
                _clear(program, part)


def _clear(program: Program, part: HbmTensor) -> None:
    zero = program.space.sbuf("zero", part.format, (1,), 1)
    program.append(memset(zero, 0))
    for (one,) in pieces(4, part):
        program.append(dma_copy(one, zero))


@dataclass
class _Group:
    """A group of channels.

    Arguments:
        chip: for moves on chip.
        array: [images, channels, planes, rows, columns].
        filter: the filter.
    """

    chip: ChipMoves
    array: HbmTensor
    filter: ConvolutionFilter

    @property
    def program(self) -> Program:
        return self.chip.program

    def append(self, out: HbmTensor, lines: Sequence[PhaseLine]) -> None:
        """Append a phase: out [images, outputs, planes, rows, columns]."""
        config, (images, channels) = self.program.config, self.array.shape[:2]
        blocks = [*tap_blocks(lines, channels, config.rows)]
        outputs = [*cut(0, out.shape[1], config.columns)]
        self.filter.prepare(blocks, outputs)
        size = len({(block.rows.start, block.copies) for block in blocks})
        for box in self._slabs(images, lines, size):
            tiles = self._tiles(blocks, lines, box)
            for few in outputs:
                self._append_products(out, lines, blocks, tiles, box, few)

    def _slabs(self, images: int, lines: Sequence[PhaseLine], tiles: int) -> Iterator[PhaseBox]:
        """Yield the outputs for which the array's elements are in SBUF together."""
        room = self.program.config.sbuf_bytes * 8 // (_SHARE * tiles * self.array.format.bits)
        counts = [images, *(line.count for line in lines)]
        for axis in range(3):
            while counts[axis] > 1 and self._size(lines, counts) > room:
                counts[axis] = -(-counts[axis] // 2)
        extents = images, *(line.count for line in lines)
        yield from product(*(cut(0, extent, count) for extent, count in zip(extents, counts, strict=True)))

    def _size(self, lines: Sequence[PhaseLine], counts: Sequence[int]) -> int:
        reaches = [line.reach(slice(0, n)) for line, n in zip(lines, counts[1:], strict=True)]
        return counts[0] * prod(end - first for first, end in reaches)

    def _tiles(self, blocks: Sequence[TapBlock], lines: Sequence[PhaseLine], box: PhaseBox) -> list[Tensor]:
        """Append the loads of the array's elements for some outputs; return a tile for each block."""
        tiles: dict[tuple, Tensor] = {}
        loaded: defaultdict[int, dict[int, Tensor]] = defaultdict(dict)
        for block in blocks:
            if (key := (block.rows.start, block.copies)) not in tiles:
                sides = block.rows, lines, box, block.copies, loaded[block.rows.start]
                tiles[key] = padded_tile(self.chip, self.array, *sides)
        return [tiles[block.rows.start, block.copies][: block.height] for block in blocks]

    def _append_products(
        self, out: HbmTensor, lines: Sequence[PhaseLine], blocks: Sequence[TapBlock], tiles: Sequence[Tensor],
        box: PhaseBox, few: slice,
    ) -> None:  # fmt: skip
        """Append the sums of some outputs' columns, and their stores."""
        flat = tiles[0].shape == tuple(map(length, box)) and all(line.step == 1 for line in lines)
        pitch = tiles[0].shape[-1] if all(line.step == 1 for line in lines[1:]) else 0
        banks = banks_of([*parts_of(box, self.program.config.psum_words, flat, pitch)], self.program.config.psum_words)
        kind = INT32 if self.array.format is INT8 else FP32
        # A long bank hides the next load of a stationary operand, and is stored during the products of the next one.
        few_columns = sum(part.columns for part in banks[0]) < _LONG
        for some in cut(0, len(banks), _OPEN if few_columns else 1):
            sums = [
                self.program.space.psum("sums", kind, (sum(part.columns for part in bank),), length(few))
                for bank in banks[some]
            ]
            with self.program.in_order():
                self._multiply(blocks, tiles, banks[some], sums, lines, box, few, flat)
            for bank, total in zip(banks[some], sums, strict=True):
                self._store(out[:, few], bank, total)

    def _multiply(
        self, blocks: Sequence[TapBlock], tiles: Sequence[Tensor], banks: Sequence[Sequence[ColumnPart]],
        sums: Sequence[Tensor], lines: Sequence[PhaseLine], box: PhaseBox, few: slice, flat: bool,
    ) -> None:  # fmt: skip
        """Append the products of all blocks, which add up in some banks."""
        for number, (block, tile) in enumerate(zip(blocks, tiles, strict=True)):
            stationary = aligned(self.program, self.filter.stationary(block, few))
            moved = (self._moved(*one, tile, block, lines, box, flat) for one in zip(banks, sums, strict=True))
            targets, operands = zip(*(pair for some in moved for pair in some), strict=True)
            add_products(self.program, targets, stationary, operands, accumulate=number > 0)

    def _moved(
        self, bank: Sequence[ColumnPart], total: Tensor, tile: Tensor, block: TapBlock, lines: Sequence[PhaseLine],
        box: PhaseBox, flat: bool,
    ) -> Iterator[tuple[Tensor, Tensor]]:  # fmt: skip
        """Yield sums and moving operands of a block."""
        first = 0
        for part in bank:
            sums = total[:, first : first + part.columns]
            first += part.columns
            inner = [slice(one.start - at.start, one.stop - at.start) for one, at in zip(part.box, box, strict=True)]
            if flat:
                yield sums, tile[(slice(None), *inner)].reshape(part.columns)
                continue
            starts = block.taps[0][1]
            sides = zip(starts, lines, inner[1:], strict=True)
            at = [start - min(low for _, low in line.taps) + line.step * one.start for start, line, one in sides]
            plane, width = tile[:, inner[0].start, at[0]], length(inner[3])
            if part.pitch:
                begin = at[1] * part.pitch + at[2]
                yield sums, plane.reshape(plane.size)[:, begin : begin + part.columns]
                continue
            columns = slice(at[2], at[2] + (width - 1) * lines[2].step + 1, lines[2].step)
            for row in range(length(inner[2])):
                yield sums[:, row * width : (row + 1) * width], plane[:, at[1] + row * lines[1].step, columns]

    def _store(self, out: HbmTensor, bank: Sequence[ColumnPart], total: Tensor) -> None:
        first = 0
        for part in bank:
            shape = tuple(map(length, part.box))
            tile = self.program.space.sbuf("result", out.format, shape, total.partitions)
            sums = total[:, first : first + part.columns]
            first += part.columns
            if part.pitch and shape[2] > 1:
                rows, width = shape[2:]
                whole = replace(sums, shape=(1, 1, rows, width), steps=(0, 0, part.pitch, 1))
            else:
                whole = sums.reshape(*shape)
            self.program.append(tensor_copy(tile, whole))
            images, *inner = part.box
            target = out[(images, slice(None), *inner)].permute(1, 0, 2, 3, 4)
            copy_long(self.program, target, tile)

"""Convolutions on the tensor engine: channels along the partitions, a stationary operand per tap, sums in PSUM.

The array is in SBUF, with its padding, and the moving operand of a tap is a shifted view of it: with steps of 1,
several rows together, and results at the padding between two rows are ignored. If there are half as many channels as
partitions, or less, several taps share them: with a copy of the array that is shifted by a row of taps, or, if channels
are few, with a copy of the outputs' elements for each tap.

A stationary operand is loaded once for as many sums as there are open banks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from neuroncore_rtl.frontends.xla.emit.columns import ColumnPart, banks_of, column_runs, is_packed, parts_of
from neuroncore_rtl.frontends.xla.emit.copies import copy_dense
from neuroncore_rtl.frontends.xla.emit.emission import Emission
from neuroncore_rtl.frontends.xla.emit.images import copy_long, grouped, operand_of, packed_tile, padded_tile
from neuroncore_rtl.frontends.xla.emit.phases import PhaseBox, PhaseLine, phases_of
from neuroncore_rtl.frontends.xla.emit.streamed_products import product_format
from neuroncore_rtl.frontends.xla.graph.operations import Convolution
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.kernels.library.matmul import passes
from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, dma_copy, load_stationary, multiply_moving
from neuroncore_rtl.kernels.program.instructions import tensor_copy
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.transfer import aligned
from neuroncore_rtl.spec.config import LOAD_COLUMNS, PSUM_BANKS
from neuroncore_rtl.spec.formats import FP32, INT8, INT32

__all__ = ["emit_convolution"]

_OPEN = PSUM_BANKS // 2
"""Banks of sums that a stationary operand is loaded for; the others hold the sums before and after them."""
_LONG = 128
"""Columns of a bank that hide the load of a stationary operand."""
_SHARE = 4
"""Fraction of SBUF for the array, and for the filter: 1 / 4."""

Tap = tuple[tuple[int, ...], tuple[int, ...]]
"""Place of a tap in the filter, and the elements that it meets for the first output."""


def emit_convolution(emission: Emission, convolution: Convolution) -> None:
    """Append a convolution: group by group, phase by phase."""
    (left, right), out = convolution.operands, emission.new(convolution.result)
    if out.shape[2:] and len(out.shape) > 5:
        raise Refused(f"convolutions must have 1 to 3 spatial dimensions, not {len(out.shape) - 2}")
    if not out.size:
        return
    fmt = product_format(emission.options, left, right)
    groups = convolution.groups * convolution.batch_groups
    filter_, reverse = emission.tensor(right), list(convolution.reverse)
    for axis, step in enumerate(filter_.steps[2:]):
        if step < 0:
            flip = [slice(None)] * len(filter_.shape)
            flip[2 + axis] = slice(None, None, -1)
            filter_, reverse[axis] = filter_[tuple(flip)], not reverse[axis]
    convolution = replace(convolution, reverse=tuple(reverse))
    array = grouped(emission.tensor(left), 0 if convolution.batch_groups > 1 else 1, groups)
    filter_ = grouped(filter_, 0, groups).permute(0, 2, 3, 4, 5, 1)
    out = grouped(out, 1, groups)
    phases = [*phases_of(convolution)]
    packed = is_packed(emission.program.config, phases[0], array.shape[1], array.shape[2], fmt)
    # Adjacent taps are loaded together; but a copy of a filter of many channels is faster with the channels outermost.
    order = (0, 2, 3, 4, 1, 5) if packed and array.shape[2] < prod(right.shape[2:]) else (0, 1, 2, 3, 4, 5)
    filter_ = operand_of(emission, filter_.permute(*order), fmt)
    filter_ = filter_.permute(0, 4, 1, 2, 3, 5) if order[1] == 2 else filter_
    array = operand_of(emission, array, fmt)
    for group in range(groups):
        own = _Group(emission, array[group], filter_[group], packed)
        for lines in phases:
            part = out[group][(slice(None), slice(None), *(line.outputs for line in lines))]
            if array.shape[2] and all(line.taps for line in lines):
                own.append(part, lines)
            else:
                zero = emission.constant(convolution.result.type.dtype.type(0).reshape(()), out.format)
                copy_dense(emission.program, part, replace(zero, shape=part.shape, steps=(0,) * 5))


@dataclass(frozen=True)
class _Block:
    """Products of one stationary operand: some channels and taps; `is_part` of a tile with all taps of the channels."""

    rows: slice
    taps: tuple[Tap, ...]
    is_part: bool = False


@dataclass
class _Group:
    """A group of channels.

    Arguments:
        emission: the emission.
        array: [images, channels, planes, rows, columns].
        filter: [channels, planes, rows, columns, outputs].
        packed: whether each tap has its own elements.
        weights: tiles of the filter that remain in SBUF.
    """

    emission: Emission
    array: HbmTensor
    filter: HbmTensor
    packed: bool
    weights: dict[tuple, Tensor] = field(default_factory=dict)

    @property
    def program(self) -> Program:
        return self.emission.program

    def append(self, out: HbmTensor, lines: Sequence[PhaseLine]) -> None:
        """Append a phase: out [images, outputs, planes, rows, columns]."""
        config, (images, channels) = self.program.config, self.array.shape[:2]
        pairs = [*product(*(line.taps for line in (lines[0], lines[2], lines[1])))]
        taps = [((a[0], c[0], b[0]), (a[1], c[1], b[1])) for a, b, c in pairs]
        if self.packed:
            blocks = [
                _Block(slice(0, channels), tuple(taps[some])) for some in cut(0, len(taps), config.rows // channels)
            ]
        else:
            # Here the taps of a column are adjacent.
            down = len(lines[1].taps)
            few = min(down, max(1, config.rows // channels))
            blocks = [
                _Block(rows, tuple(taps[first + some.start : first + some.stop]), few == 1)
                for rows in cut(0, channels, config.rows)
                for first in range(0, len(taps), down)
                for some in cut(0, down, few)
            ]
        size = len({block.rows.start for block in blocks}) if not self.packed else len(blocks)
        for box in self._slabs(images, lines, size):
            tiles = self._tiles(blocks, lines, box)
            for few in cut(0, out.shape[1], config.columns):
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
        return prod(counts) if self.packed else counts[0] * prod(end - first for first, end in reaches)

    def _tiles(self, blocks: Sequence[_Block], lines: Sequence[PhaseLine], box: PhaseBox) -> list[Tensor]:
        """Append the loads of the array's elements for some outputs; return a tile for each block."""
        if self.packed:
            starts = [[start for _, start in block.taps] for block in blocks]
            pairs = zip(blocks, starts, strict=True)
            return [packed_tile(self.program, self.array, block.rows, some, lines, box) for block, some in pairs]
        copies = max(len(block.taps) for block in blocks)
        parts = {block.rows.start: block.rows for block in blocks}
        tiles = {at: padded_tile(self.program, self.array, rows, lines, box, copies) for at, rows in parts.items()}
        return [tiles[block.rows.start][: self._height(block)] for block in blocks]

    def _height(self, block: _Block) -> int:
        return length(block.rows) * len(block.taps)

    def _append_products(
        self, out: HbmTensor, lines: Sequence[PhaseLine], blocks: Sequence[_Block], tiles: Sequence[Tensor],
        box: PhaseBox, few: slice,
    ) -> None:  # fmt: skip
        """Append the sums of some outputs' columns, and their stores."""
        plain = tiles[0].shape == tuple(map(length, box)) and all(line.step == 1 for line in lines)
        flat = self.packed or plain
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
        self, blocks: Sequence[_Block], tiles: Sequence[Tensor], banks: Sequence[Sequence[ColumnPart]],
        sums: Sequence[Tensor], lines: Sequence[PhaseLine], box: PhaseBox, few: slice, flat: bool,
    ) -> None:  # fmt: skip
        """Append the products of all blocks, which add up in some banks."""
        accumulate = False
        for block, tile in zip(blocks, tiles, strict=True):
            stationary = aligned(self.program, self._stationary(block, few))
            for half, other, loaded in passes(self.array.format):
                if loaded:
                    self.program.append(load_stationary(stationary, half=half))
                for bank, total in zip(banks, sums, strict=True):
                    for to, of in self._moved(bank, total, tile, block, lines, box, flat):
                        self.program.append(multiply_moving(to, of, half=other, accumulate=accumulate))
                accumulate = True

    def _moved(
        self, bank: Sequence[ColumnPart], total: Tensor, tile: Tensor, block: _Block, lines: Sequence[PhaseLine],
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

    def _stationary(self, block: _Block, few: slice) -> Tensor:
        """Return a block's part of the filter, which is loaded once, or at each use if the filter has no room."""
        outputs, height = self.filter.shape[-1], self._height(block)
        wide = -(-outputs // LOAD_COLUMNS) * LOAD_COLUMNS
        size = -(-self.filter.size // (outputs * height)) * wide * self.filter.format.bits
        if size * _SHARE > self.program.config.sbuf_bytes * 8:
            tile = self.program.space.sbuf(self.filter.name, self.filter.format, (length(few),), height)
            self._load_filter(tile, block, few)
            return tile
        key = block.rows.start, None if block.is_part else block.taps
        if key not in self.weights:
            shape = (*self.filter.shape[1:4], wide) if block.is_part else (wide,)
            self.weights[key] = tile = self.program.space.sbuf(self.filter.name, self.filter.format, shape, height)
            if block.is_part:
                copy_long(self.program, tile[:, :, :, :, :outputs], self.filter[block.rows])
            else:
                self._load_filter(tile[:, :outputs], block, slice(0, outputs))
        tile = self.weights[key]
        return tile[(slice(None), *block.taps[0][0], few)] if block.is_part else tile[:, few]

    def _load_filter(self, tile: Tensor, block: _Block, few: slice) -> None:
        """Append the load of a block's part of the filter, of adjacent taps together if channels are not outermost."""
        channels, (_, _, height, width, _) = length(block.rows), self.filter.shape
        numbers = [(plane * height + row) * width + column for (plane, row, column), _ in block.taps]
        taps = self.filter[block.rows][..., few].permute(1, 2, 3, 0, 4)
        try:
            flat = taps.reshape(prod(taps.shape[:4]), length(few))
        except ValueError:
            for place, (tap, _) in enumerate(block.taps):
                self.program.append(dma_copy(tile[place * channels : (place + 1) * channels], taps[tap]))
            return
        for some in column_runs(numbers):
            first = numbers[some.start] * channels
            source = flat[first : first + length(some) * channels]
            self.program.append(dma_copy(tile[some.start * channels : some.stop * channels], source))

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

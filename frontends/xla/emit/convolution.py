"""Convolutions on the tensor engine: channels along the partitions, a stationary operand per tap, sums in PSUM.

The array is in SBUF, with its padding, and the moving operand of a tap is a shifted view of it: with steps of 1,
several rows together, and results at the padding between two rows are ignored. If there are half as many channels as
partitions, or less, several taps share them, each with a copy of the array that is shifted by rows and columns of taps.

A stationary operand is loaded once for as many sums as there are open banks.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from neuroncore_rtl.frontends.xla.emit.columns import ColumnPart, banks_of, parts_of
from neuroncore_rtl.frontends.xla.emit.convolution_operands import (
    ConvolutionFilter,
    copy_long,
    grouped,
    is_turned,
    padded_tile,
)  # fmt: skip
from neuroncore_rtl.frontends.xla.emit.copies import copy_dense
from neuroncore_rtl.frontends.xla.emit.emission import Emission
from neuroncore_rtl.frontends.xla.emit.phases import PhaseBox, PhaseLine, TapBlock, phases_of, tap_blocks
from neuroncore_rtl.frontends.xla.emit.streamed_products import product_format
from neuroncore_rtl.frontends.xla.graph.operations import Convolution
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.kernels.library.matmul import passes
from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, load_stationary, multiply_moving
from neuroncore_rtl.kernels.program.instructions import tensor_copy
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.transfer import aligned
from neuroncore_rtl.spec.config import PSUM_BANKS
from neuroncore_rtl.spec.formats import FP32, INT8, INT32

__all__ = ["emit_convolution"]

_OPEN = PSUM_BANKS // 2
"""Banks of sums that a stationary operand is loaded for; the others hold the sums before and after them."""
_LONG = 128
"""Columns of a bank that hide the load of a stationary operand."""
_SHARE = 4
"""Fraction of SBUF for the array, and for the filter: 1 / 4."""


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
    turned = is_turned(emission.program.config, filter_, fmt)
    if not turned and filter_.steps[-1] != 1:
        filter_ = emission.adjacent(filter_, fmt)
    array = emission.adjacent(array, fmt)
    for group in range(groups):
        own = _Group(emission, array[group], ConvolutionFilter(emission, filter_[group], fmt, turned))
        for lines in phases:
            part = out[group][(slice(None), slice(None), *(line.outputs for line in lines))]
            if array.shape[2] and all(line.taps for line in lines):
                own.append(part, lines)
            else:
                zero = emission.constant(convolution.result.type.dtype.type(0).reshape(()), out.format)
                copy_dense(emission.program, part, replace(zero, shape=part.shape, steps=(0,) * 5))


@dataclass
class _Group:
    """A group of channels.

    Arguments:
        emission: the emission.
        array: [images, channels, planes, rows, columns].
        filter: the filter.
    """

    emission: Emission
    array: HbmTensor
    filter: ConvolutionFilter

    @property
    def program(self) -> Program:
        return self.emission.program

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
                tiles[key] = padded_tile(self.emission, self.array, *sides)
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
        accumulate = False
        for block, tile in zip(blocks, tiles, strict=True):
            stationary = aligned(self.program, self.filter.stationary(block, few))
            for half, other, loaded in passes(self.array.format):
                if loaded:
                    self.program.append(load_stationary(stationary, half=half))
                for bank, total in zip(banks, sums, strict=True):
                    for to, of in self._moved(bank, total, tile, block, lines, box, flat):
                        self.program.append(multiply_moving(to, of, half=other, accumulate=accumulate))
                accumulate = True

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

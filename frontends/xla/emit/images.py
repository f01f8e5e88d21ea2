"""Operands of a convolution: views in HBM, and tiles in SBUF of the array, with channels along the partitions.

A row of an image is short, so images with adjacent rows in HBM are loaded without padding, and the vector engine
moves them to their places.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod

from neuroncore_rtl.frontends.xla.emit.copies import merged_lines
from neuroncore_rtl.frontends.xla.emit.emission import Emission
from neuroncore_rtl.frontends.xla.emit.phases import PhaseBox, PhaseLine
from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, dma_copy
from neuroncore_rtl.kernels.program.instructions import memset
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.engines import LONG, beats
from neuroncore_rtl.spec.isa.access import allowed_start

__all__ = ["copy_long", "grouped", "padded_tile"]

_SHORT = 128
"""Bytes of a row that DMA moves well."""


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
    emission: Emission, array: HbmTensor, rows: slice, lines: Sequence[PhaseLine], box: PhaseBox,
    copies: tuple[int, int], loaded: dict[int, Tensor],
) -> Tensor:  # fmt: skip
    """Append the load of some channels with their padding, and of copies that are shifted by rows and columns of taps.

    `loaded` are the channels without padding by their first partition.
    """
    reaches = [line.reach(part) for line, part in zip(lines, box[1:], strict=True)]
    shape, channels = (length(box[0]), *(end - first for first, end in reaches)), length(rows)
    tile = emission.program.space.sbuf(array.name, array.format, shape, channels * prod(copies))
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
    _clear_border(emission.program, tile, [within for *_, within in parts])
    for lane, inner, within in parts:
        target = tile[lane : lane + channels][(slice(None), *within)]
        source = array[(box[0], rows, *whole)].permute(1, 0, 2, 3, 4)
        if _is_moved(emission.program, target, source):
            if lane not in loaded:
                # The engines access the same partitions on both sides.
                dense = emission.program.space.sbuf(array.name, array.format, source.shape[1:], lane + channels)
                loaded[lane] = dense[lane:]
                copy_long(emission.program, loaded[lane], source)
            emission.move(target, loaded[lane][inner])
        else:
            copy_long(emission.program, target, source[inner])
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

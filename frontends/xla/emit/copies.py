"""Copies between tensors in HBM of any steps.

DMA moves adjacent elements in beats, others one by one. A transposition of innermost dimensions therefore goes through
SBUF, where the vector engine transposes blocks of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from neuroncore_rtl.kernels.program import HbmTensor, Program, dma_copy
from neuroncore_rtl.kernels.program.instructions import memset, tensor_copy, transpose
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.engines import LONG, beats
from neuroncore_rtl.spec.formats import UINT8, UINT16, UINT32

__all__ = ["coalesced", "copy_dense", "merged_lines", "pieces"]

_MOST = 5
"""Maximum dimensions of a copy."""
_COUNT = 1 << 16
"""A dimension of a copy must have less elements."""
_LONG, _FILLED = 256, 512
"""Minimum row of a tensor that is filled from SBUF, and the maximum elements of a partition there."""
_BLOCK = 32
"""Maximum rows of a block that the vector engine transposes."""
_BLOCKS = 16
"""Blocks of a tile that is transposed at once."""


def merged_lines(lines: Sequence[tuple[int, ...]], most: int | None = None) -> list[tuple[int, ...]]:
    """Return dimensions, each an extent and steps, without those of one element, and with adjacent ones as one.

    At least one; of less than `most` elements if several are merged.
    """
    found: list[tuple[int, ...]] = []
    for extent, *steps in lines:
        if extent == 1:
            continue
        is_next = found and all(old == extent * new for old, new in zip(found[-1][1:], steps, strict=True))
        if is_next and (most is None or found[-1][0] * extent < most):
            found[-1] = found[-1][0] * extent, *steps
        else:
            found.append((extent, *steps))
    return found or [(1, *(0,) * (len(lines[0]) - 1 if lines else 2))]


def coalesced(*tensors: HbmTensor) -> list[HbmTensor]:
    """Return views of tensors of the same shape, without dimensions that all of them traverse as one."""
    lines = merged_lines([*zip(tensors[0].shape, *(one.steps for one in tensors), strict=True)], _COUNT)
    shape, *steps = zip(*lines, strict=True)
    return [replace(one, shape=shape, steps=own) for one, own in zip(tensors, steps, strict=False)]


def pieces(dims: int, *tensors: HbmTensor) -> Iterator[list[HbmTensor]]:
    """Yield parts of tensors of the same shape, with at most `dims` dimensions of less than 65,536 elements."""
    views = coalesced(*tensors)
    for d, extent in enumerate(views[0].shape):
        if extent >= _COUNT:
            half = _COUNT // 2
            for first in range(0, extent, half):
                part = (slice(None),) * d + (slice(first, first + half),)
                yield from pieces(dims, *(view[part] for view in views))
            return
    outer = max(0, len(views[0].shape) - dims)
    for index in product(*(range(extent) for extent in views[0].shape[:outer])):
        yield [view[index] if index else view for view in views]


def copy_dense(program: Program, target: HbmTensor, source: HbmTensor) -> None:
    """Append a copy between tensors in HBM of the same shape; a cast if the formats differ.

    The innermost dimension of the target has adjacent elements.
    """
    if not source.size:
        return
    to, of = coalesced(target, source)
    if not any(of.steps) and to.steps[-1] == 1 and to.shape[-1] >= _LONG and to.format == of.format:
        _fill(program, to, of)
        return
    if of.steps[-1] in (0, 1) or to.format != of.format or 1 not in of.steps or len(of.shape) < 2:
        for one, other in pieces(_MOST, to, of):
            program.append(dma_copy(one, other))
        return
    axis = of.steps.index(1)
    order = [d for d in range(len(of.shape)) if d not in (axis, len(of.shape) - 1)] + [axis, len(of.shape) - 1]
    to, of = to.permute(*order), of.permute(*order)
    for index in product(*(range(extent) for extent in of.shape[:-2])):
        _transpose(program, to[index], of[index])


def _fill(program: Program, target: HbmTensor, source: HbmTensor) -> None:
    """Append the copy of one element to a whole tensor, from rows of equal elements in SBUF."""
    codes = {8: UINT8, 16: UINT16, 32: UINT32}[source.format.bits]
    lanes, width = program.lanes, min(_FILLED, -(-target.shape[-1] // program.lanes))
    spot = program.space.sbuf("element", source.format, (1,), lanes)
    rows = program.space.sbuf("filled", source.format, (width,), lanes)
    program.append(dma_copy(spot, replace(source, shape=(lanes, 1), steps=(0, 0))))
    program.append(tensor_copy(rows.bitcast(codes), spot.bitcast(codes).broadcast_to(width)))
    for index in product(*(range(extent) for extent in target.shape[:-1])):
        row = target[index] if index else target
        whole = row.size // width * width
        for part in cut(0, whole, lanes * width):
            count = length(part) // width
            program.append(dma_copy(row[part].reshape(count, width), rows[:count]))
        if whole < row.size:
            program.append(dma_copy(row[whole:].reshape(1, row.size - whole), rows[:1, : row.size - whole]))


def _transpose(program: Program, target: HbmTensor, source: HbmTensor) -> None:
    """Append the copy of a matrix [n, m]; the source has adjacent elements along n, the target along m."""
    n, m = target.shape
    block = min(_BLOCK, program.config.partitions)
    lanes = program.config.partitions // block * block
    wide = block * _BLOCKS
    for first in range(0, m, lanes):
        rows = min(lanes, m - first)
        groups = -(-rows // block)
        for start in range(0, n, wide):
            columns = min(wide, n - start)
            blocks = -(-columns // block)
            tiles = [
                program.space.sbuf(name, source.format, (blocks, block), groups * block) for name in ("block", "turned")
            ]
            if rows % block or columns % block:
                program.append(memset(tiles[0], 0))
            flat = tiles[0].reshape(blocks * block)
            part = source[start : start + columns, first : first + rows].permute(1, 0)
            long = beats(program.config, rows, columns * source.format.bits // 8) > LONG
            for some in cut(0, rows, -(-rows // program.config.hbm_ports) if long else rows):
                program.append(dma_copy(flat[some, :columns], part[some]))
            program.append(transpose(tiles[1], tiles[0]))
            for group in range(groups):
                width = min(block, rows - group * block)
                for number in range(blocks):
                    height = min(block, columns - number * block)
                    at = slice(start + number * block, start + number * block + height)
                    to = slice(first + group * block, first + group * block + width)
                    part = tiles[1][group * block : group * block + height, number, :width]
                    program.append(dma_copy(target[at, to], part))

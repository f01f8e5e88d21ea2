"""Copies between tensors in HBM of any steps.

DMA moves adjacent elements in beats, others one by one. A transposition of innermost dimensions therefore goes through
SBUF, where the vector engine transposes blocks of it.
"""

from dataclasses import replace
from itertools import product

from neuroncore_rtl.kernels.program import HbmTensor, Program, dma_copy
from neuroncore_rtl.kernels.program.instructions import memset, tensor_copy, transpose
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.engines import LONG, beats
from neuroncore_rtl.kernels.tiling.views import coalesced, pieces
from neuroncore_rtl.spec.formats import UINT8, UINT16, UINT32, Format

__all__ = ["copied", "copy_hbm", "made_adjacent"]

_MOST = 5
"""Maximum dimensions of a copy."""
_LONG, _FILLED = 256, 512
"""Minimum row of a tensor that is filled from SBUF, and the maximum elements of a partition there."""
_BLOCK = 32
"""Maximum rows of a block that the vector engine transposes."""
_BLOCKS = 16
"""Blocks of a tile that is transposed at once."""


@located
def copy_hbm(program: Program, target: HbmTensor, source: HbmTensor) -> None:
    """Append a copy between tensors in HBM of the same shape; a cast if the formats differ.

    The innermost dimension of the target has adjacent elements. Raises ValueError if the shapes differ.
    """
    if target.shape != source.shape:
        raise ValueError(f"{source.name}: shape must be {list(target.shape)}, not {list(source.shape)}")
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


@located
def copied(program: Program, source: HbmTensor, fmt: Format | None = None) -> HbmTensor:
    """Append and return a copy in row-major order, by default in the same format."""
    target = program.space.hbm(f"{source.name}_dense", fmt or source.format, source.shape or (1,))
    target = target.reshape(*source.shape)
    copy_hbm(program, target, source)
    return target


@located
def made_adjacent(program: Program, tensor: HbmTensor, fmt: Format) -> HbmTensor:
    """Return a tensor in a format, with adjacent innermost elements; a copy if it is not."""
    if tensor.size and tensor.steps[-1] != 1 and tensor.shape[-1] > 1:
        tensor = copied(program, tensor)
    return tensor if tensor.format is fmt else copied(program, tensor, fmt)


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

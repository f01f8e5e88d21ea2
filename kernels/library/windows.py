"""Copies of windows of an array in HBM to and from places that are known when the program runs.

A window starts at a row number times a unit of elements, which are counted in row-major order. A copy has a row number
per partition. Windows are copied from HBM to HBM, so that their size has no limit.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, dma_copy
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.views import elements_at, pieces
from neuroncore_rtl.spec.formats import INT32
from neuroncore_rtl.spec.isa import DmaCopy, DmaIndex, DmaTensor

__all__ = ["WindowTable", "read_windows", "write_windows"]

_COLUMNS = 64
"""Maximum row numbers of a partition that are loaded at once."""
_DIMENSIONS = 4
"""Maximum dimensions of a window in a copy; another one has the windows."""


@dataclass(frozen=True)
class WindowTable:
    """An array in HBM, in row-major order, as windows that may overlap.

    Arguments:
        array: the array.
        shape: extents of a window.
        unit: elements of the array from one row number to the next.
        steps: elements of the array between those of a window, for each of its dimensions.
    """

    array: HbmTensor
    shape: tuple[int, ...]
    unit: int
    steps: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Number of row numbers at which a window lies within the array."""
        span = sum((count - 1) * step for count, step in zip(self.shape, self.steps, strict=True))
        return (self.array.size - 1 - span) // self.unit + 1

    def window(self, row: int) -> HbmTensor:
        """Return the view of a window."""
        return elements_at(self.array, row * self.unit, self.shape, self.steps)


@located
def read_windows(program: Program, windows: HbmTensor, table: WindowTable, numbers: HbmTensor) -> None:
    """Append windows[i] = window numbers[i] of the table; another number than one of its rows is a run-time error.

    The numbers [n] are INT32 or UINT32 with adjacent elements.
    """
    _append(program, windows, table, numbers, is_read=True)


@located
def write_windows(program: Program, table: WindowTable, windows: HbmTensor, numbers: HbmTensor) -> None:
    """Append the writes of windows[i] to window numbers[i] of the table, in order.

    A window with another number than one of the table's rows is not written. The numbers are as in `read_windows`.
    """
    _append(program, windows, table, numbers, is_read=False)


def _append(program: Program, windows: HbmTensor, table: WindowTable, numbers: HbmTensor, *, is_read: bool) -> None:
    if windows.shape != (*numbers.shape, *table.shape):
        rule = f"shape must be {[*numbers.shape, *table.shape]}, a window for each number"
        raise ValueError(f"{windows.name}: {rule}, not {list(windows.shape)}")
    step, near = windows.steps[0], replace(windows, shape=table.shape, steps=windows.steps[1:])
    parts = [*pieces(_DIMENSIONS, table.window(0), near)]
    for first, rows in _row_numbers(program, numbers):
        index = DmaIndex(address=rows.address, partition=rows.partition, limit=table.rows, skip=not is_read)
        for far, own in parts:
            shape = rows.partitions, *far.shape
            there, here = _operand(far, table.unit), _operand(own, step, first)
            if is_read:
                copy = DmaCopy(shape=shape, dst=here, src=there, gather=index)
            else:
                copy = DmaCopy(shape=shape, dst=there, src=here, scatter=index)
            program.append(copy)


def _row_numbers(program: Program, numbers: HbmTensor) -> Iterator[tuple[int, Tensor]]:
    """Yield the first row and the numbers, one per partition, of as many rows as there are partitions."""
    first = 0
    while first < numbers.size:
        rows = min(program.config.partitions, numbers.size - first)
        columns = min(_COLUMNS, (numbers.size - first) // rows)
        tile = program.space.sbuf("rows", INT32, (columns,), rows)
        part = numbers[first : first + rows * columns].reshape(columns, rows).permute(1, 0)
        program.append(dma_copy(tile, part))
        for number in range(columns):
            yield first + number * rows, tile[:, number : number + 1]
        first += rows * columns


def _operand(tensor: HbmTensor, step: int, first: int = 0) -> DmaTensor:
    """Return a copy's operand with one more dimension outside, of this step, from an index on."""
    operand = elements_at(tensor, first * step, tensor.shape, tensor.steps).dma_operand()[1]
    return replace(operand, steps=(step, *operand.steps))

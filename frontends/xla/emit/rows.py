"""Copies of windows of an array in HBM to and from places that are known when the program runs.

A copy has a row number per partition. Windows are copied from HBM to HBM, so that their size has no limit.
"""

from collections.abc import Iterator
from dataclasses import replace

from neuroncore_rtl.frontends.xla.emit.copies import copy_dense, pieces
from neuroncore_rtl.frontends.xla.emit.emission import Emission
from neuroncore_rtl.frontends.xla.graph.loops import known_integer
from neuroncore_rtl.frontends.xla.graph.operations import GatherRows, ScatterRows, Value
from neuroncore_rtl.frontends.xla.graph.types import dense_steps
from neuroncore_rtl.kernels.program import HbmTensor, Tensor, dma_copy
from neuroncore_rtl.spec.formats import INT32
from neuroncore_rtl.spec.isa import DmaCopy, DmaIndex, DmaTensor

__all__ = ["emit_gather_rows", "emit_scatter_rows"]

_COLUMNS = 64
"""Maximum row numbers of a partition that are loaded at once."""
_DIMENSIONS = 4
"""Maximum dimensions of a window in a copy; another one has the windows."""


def emit_gather_rows(emission: Emission, gather: GatherRows) -> None:
    """Append copies of the windows; a single one at a known place is a view."""
    array, numbers = gather.operands
    table, result = emission.dense(array), gather.result
    window = replace(table, shape=result.shape[1:], steps=gather.steps)
    if (place := known_integer(numbers, emission.makers)) is not None:
        part = _moved(window, place * gather.unit)
        steps = dense_steps(result.shape)[0], *gather.steps
        emission.tensors[result] = replace(part, shape=result.shape, steps=steps)
        return
    limit = _limit(array, window, gather.unit)
    _append(emission, numbers, window, gather.unit, limit, emission.new(result), is_gather=True)


def emit_scatter_rows(emission: Emission, scatter: ScatterRows) -> None:
    """Append copies of the windows to their places in the array, or in a copy of it if something else reads it."""
    array, numbers, windows = scatter.operands
    target, source = _target(emission, scatter), emission.tensor(windows)
    window = replace(target, shape=windows.shape[1:], steps=scatter.steps)
    limit = _limit(array, window, scatter.unit)
    if (place := known_integer(numbers, emission.makers)) is None:
        _append(emission, numbers, window, scatter.unit, limit, source, is_gather=False)
    elif 0 <= place < limit:
        for to, of in pieces(_DIMENSIONS, _moved(window, place * scatter.unit), source[0]):
            emission.program.append(dma_copy(to, of))


def _target(emission: Emission, scatter: ScatterRows) -> HbmTensor:
    array, result = scatter.operands[0], scatter.result
    old = emission.tensor(array)
    if array not in scatter.operands[1:] and old.steps == dense_steps(array.shape) and emission.is_last(array, scatter):
        emission.home(old).residents.clear()
        emission.tensors[result] = old
        emission.owned.add(result)
        return old
    new = emission.new(result)
    copy_dense(emission.program, new, old)
    return new


def _limit(array: Value, window: HbmTensor, unit: int) -> int:
    """Return the number of rows at which a window lies within the array."""
    span = sum((count - 1) * step for count, step in zip(window.shape, window.steps, strict=True))
    return (array.size - 1 - span) // unit + 1


def _append(
    emission: Emission, numbers: Value, window: HbmTensor, unit: int, limit: int, near: HbmTensor, *, is_gather: bool
) -> None:
    """Append copies between windows of an array and those of `near`, which are in order."""
    parts = [*pieces(_DIMENSIONS, window, replace(near, shape=near.shape[1:], steps=near.steps[1:]))]
    for first, rows in _row_numbers(emission, numbers):
        index = DmaIndex(address=rows.address, partition=rows.partition, limit=limit, skip=not is_gather)
        for far, own in parts:
            shape = rows.partitions, *far.shape
            there = _operand(far, unit)
            here = _operand(_moved(own, first * near.steps[0]), near.steps[0])
            if is_gather:
                copy = DmaCopy(shape=shape, dst=here, src=there, gather=index)
            else:
                copy = DmaCopy(shape=shape, dst=there, src=here, scatter=index)
            emission.program.append(copy)


def _row_numbers(emission: Emission, numbers: Value) -> Iterator[tuple[int, Tensor]]:
    """Yield the first row and the numbers, one per partition, of as many rows as there are partitions."""
    program, column = emission.program, emission.dense(numbers)
    lanes = program.config.partitions
    first = 0
    while first < numbers.size:
        rows = min(lanes, numbers.size - first)
        columns = min(_COLUMNS, (numbers.size - first) // rows)
        tile = program.space.sbuf("rows", INT32, (columns,), rows)
        part = column[first : first + rows * columns].reshape(columns, rows).permute(1, 0)
        program.append(dma_copy(tile, part))
        for number in range(columns):
            yield first + number * rows, tile[:, number : number + 1]
        first += rows * columns


def _moved(tensor: HbmTensor, elements: int) -> HbmTensor:
    return replace(tensor, address=tensor.address + elements * tensor.format.bits // 8)


def _operand(tensor: HbmTensor, step: int) -> DmaTensor:
    """Return a copy's operand with one more dimension outside, of this step."""
    operand = tensor.dma_operand()[1]
    return replace(operand, steps=(step, *operand.steps))

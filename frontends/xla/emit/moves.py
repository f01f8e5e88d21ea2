"""Emission of moves and convolutions: each calls a kernel of the library."""

from dataclasses import replace

from neuroncore_rtl.frontends.xla.emit.emission import Emission
from neuroncore_rtl.frontends.xla.emit.streamed_products import product_format
from neuroncore_rtl.frontends.xla.graph.loops import known_integer
from neuroncore_rtl.frontends.xla.graph.operations import (
    Bitcast,
    Concatenate,
    Convolution,
    GatherRows,
    Pad,
    ScatterRows,
)
from neuroncore_rtl.frontends.xla.graph.types import dense_steps
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.kernels.library.convolution import convolution
from neuroncore_rtl.kernels.library.copy_hbm import copy_hbm
from neuroncore_rtl.kernels.library.windows import WindowTable, read_windows, write_windows
from neuroncore_rtl.kernels.program import HbmTensor, dma_copy
from neuroncore_rtl.kernels.tiling.views import pieces

__all__ = [
    "emit_bitcast", "emit_concatenate", "emit_convolution", "emit_gather_rows", "emit_pad", "emit_scatter_rows",
]  # fmt: skip


def emit_bitcast(emission: Emission, cast: Bitcast) -> None:
    """Read the bytes of the operand in row-major order as elements of another width; a copy aligns wider ones."""
    tensor, shape, fmt = emission.dense(cast.operands[0]), cast.result.shape, cast.result.type.format
    if tensor.address % (fmt.bits // 8):
        tensor = emission.copied(tensor)
    emission.tensors[cast.result] = replace(tensor, format=fmt, shape=shape, steps=dense_steps(shape))


def emit_concatenate(emission: Emission, concatenate: Concatenate) -> None:
    """Append a copy of each operand to its part of the result."""
    target, first = emission.new(concatenate.result), 0
    for operand in concatenate.operands:
        end = first + operand.shape[concatenate.axis]
        if operand.size:
            part = target[(slice(None),) * concatenate.axis + (slice(first, end),)]
            copy_hbm(emission.program, part, emission.tensor(operand))
        first = end


def emit_pad(emission: Emission, pad: Pad) -> None:
    """Append a copy of the number to the whole result, and of the array to its places in it."""
    array, number = pad.operands
    target, source = emission.new(pad.result), emission.tensor(array)
    if not target.size:
        return
    spot = emission.tensor(number)
    copy_hbm(emission.program, target, replace(spot, shape=target.shape, steps=(0,) * len(target.shape)))
    if not source.size:
        return
    sides = zip(source.shape, target.shape, pad.low, pad.interior, strict=True)
    inner, outer = zip(*(_overlap(*side) for side in sides), strict=True) if pad.low else ((), ())
    if all(part.stop > part.start for part in inner):
        copy_hbm(emission.program, target[outer], source[inner])


def _overlap(extent: int, room: int, low: int, interior: int) -> tuple[slice, slice]:
    """Return the elements of a dimension that are in the result, and their places there."""
    step = interior + 1
    first = max(0, -(low // step))
    last = min(extent - 1, (room - 1 - low) // step)
    if last < first:
        return slice(0, 0), slice(0, 0)
    return slice(first, last + 1), slice(low + first * step, low + last * step + 1, step)


def emit_gather_rows(emission: Emission, gather: GatherRows) -> None:
    """Append copies of the windows; a single one at a known place is a view."""
    (array, numbers), result = gather.operands, gather.result
    table = WindowTable(emission.dense(array), result.shape[1:], gather.unit, gather.steps)
    if (place := known_integer(numbers, emission.makers)) is not None:
        steps = dense_steps(result.shape)[0], *gather.steps
        emission.tensors[result] = replace(table.window(place), shape=result.shape, steps=steps)
        return
    read_windows(emission.program, emission.new(result), table, emission.dense(numbers))


def emit_scatter_rows(emission: Emission, scatter: ScatterRows) -> None:
    """Append copies of the windows to their places in the array, or in a copy of it if something else reads it."""
    _, numbers, windows = scatter.operands
    target, source = _target(emission, scatter), emission.tensor(windows)
    table = WindowTable(target, windows.shape[1:], scatter.unit, scatter.steps)
    if (place := known_integer(numbers, emission.makers)) is None:
        write_windows(emission.program, table, source, emission.dense(numbers))
    elif 0 <= place < table.rows:
        for to, of in pieces(4, table.window(place), source[0]):
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
    copy_hbm(emission.program, new, old)
    return new


def emit_convolution(emission: Emission, operation: Convolution) -> None:
    """Append a convolution; a filter that is a reversed view is read forwards, and reversed by the kernel."""
    (left, right), out = operation.operands, emission.new(operation.result)
    if len(out.shape) > 5:
        raise Refused(f"convolutions must have 1 to 3 spatial dimensions, not {len(out.shape) - 2}")
    if not out.size:
        return
    fmt = product_format(emission.options, left, right)
    filter_, reverse = emission.tensor(right), list(operation.reverse)
    for axis, step in enumerate(filter_.steps[2:]):
        if step < 0:
            flip = [slice(None)] * len(filter_.shape)
            flip[2 + axis] = slice(None, None, -1)
            filter_, reverse[axis] = filter_[tuple(flip)], not reverse[axis]

    def clear(part: HbmTensor) -> None:
        zero = emission.constant(operation.result.type.dtype.type(0).reshape(()), out.format)
        copy_hbm(emission.program, part, replace(zero, shape=part.shape, steps=(0,) * 5))

    groups = {"groups": operation.groups, "batch_groups": operation.batch_groups}
    sides = emission.tensor(left), filter_, operation.window, tuple(reverse)
    convolution(emission.program, out, *sides, **groups, fmt=fmt, chip=emission.chip, clear=clear)

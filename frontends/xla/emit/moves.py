"""Operations that only move elements or read them as others: concatenation, padding, bits of another type."""

from dataclasses import replace

from neuroncore_rtl.frontends.xla.emit.copies import copy_dense
from neuroncore_rtl.frontends.xla.emit.emission import Emission
from neuroncore_rtl.frontends.xla.graph.operations import Bitcast, Concatenate, Pad
from neuroncore_rtl.frontends.xla.graph.types import dense_steps
from neuroncore_rtl.kernels.program import HbmTensor

__all__ = ["emit_bitcast", "emit_concatenate", "emit_pad"]


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
            copy_dense(emission.program, part, emission.tensor(operand))
        first = end


def emit_pad(emission: Emission, pad: Pad) -> None:
    """Append a copy of the number to the whole result, and of the array to its places in it."""
    array, number = pad.operands
    target, source = emission.new(pad.result), emission.tensor(array)
    if not target.size:
        return
    spot = emission.tensor(number)
    copy_dense(emission.program, target, replace(spot, shape=target.shape, steps=(0,) * len(target.shape)))
    if not source.size:
        return
    sides = zip(source.shape, target.shape, pad.low, pad.interior, strict=True)
    inner, outer = zip(*(_overlap(*side) for side in sides), strict=True) if pad.low else ((), ())
    if all(part.stop > part.start for part in inner):
        copy_dense(emission.program, _part(target, outer), _part(source, inner))


def _part(tensor: HbmTensor, part: tuple[slice, ...]) -> HbmTensor:
    return tensor[part] if part else tensor


def _overlap(extent: int, room: int, low: int, interior: int) -> tuple[slice, slice]:
    """Return the elements of a dimension that are in the result, and their places there."""
    step = interior + 1
    first = max(0, -(low // step))
    last = min(extent - 1, (room - 1 - low) // step)
    if last < first:
        return slice(0, 0), slice(0, 0)
    return slice(first, last + 1), slice(low + first * step, low + last * step + 1, step)

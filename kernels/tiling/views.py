"""Views of tensors that one instruction traverses together: few dimensions, none that could be one with the next."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from neuroncore_rtl.kernels.program import HbmTensor

__all__ = ["coalesced", "elements_at", "merged_lines", "pieces"]

_COUNT = 1 << 16
"""A dimension of a copy must have less elements."""


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


def elements_at(tensor: HbmTensor, first: int, shape: Sequence[int], steps: Sequence[int]) -> HbmTensor:
    """Return the view of a tensor's elements from one on, with any shape and steps."""
    address = tensor.address + first * tensor.format.bits // 8
    return replace(tensor, address=address, shape=tuple(shape), steps=tuple(steps))


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

"""Views of strided arrays by numpy's rules: shape, steps and offset of a view, without any data."""

from collections.abc import Iterable
from functools import lru_cache
from numbers import Integral

import numpy as np
from numpy.lib.stride_tricks import as_strided

__all__ = ["broadcast", "part", "permute", "reshaped_strides"]

_Sizes = tuple[int, ...]
_View = tuple[_Sizes, _Sizes]
"""Shape, and steps in elements."""

VIEWS = 4096
"""Number of cached views; kernels create the same views for every tile."""


def part(shape: _Sizes, steps: _Sizes, key: Iterable) -> tuple[int, _Sizes, _Sizes]:
    """Return the offset of the first element of `array[key]`, in elements, and its shape and steps.

    The key has integers, slices, None, and at most one `...`; without it the last dimensions are whole.

    Raises TypeError for another index, IndexError if there are too many indices, or one is out of range.
    """
    key = tuple(key)
    dots = sum(index is Ellipsis for index in key)
    taken = len(key) - dots - sum(index is None for index in key)
    if taken > len(shape) or dots > 1:
        raise IndexError(f"indices must be at most {len(shape)} and one ..., not {key!r}")
    start, counts, strides, d = 0, [], [], 0
    for index in key if dots else (*key, Ellipsis):
        if isinstance(index, slice):
            first, end, step = index.indices(shape[d])
            count = len(range(first, end, step))
            counts.append(count)
            # The view of an empty slice starts at the start of the array.
            start += first * steps[d] if count else 0
            strides.append(step * steps[d] if count else steps[d])
            d += 1
        elif index is None:
            counts.append(1)
            strides.append(0)
        elif index is Ellipsis:
            rest = d + len(shape) - taken
            counts += shape[d:rest]
            strides += steps[d:rest]
            d = rest
        elif isinstance(index, Integral):
            index = int(index)
            if not -shape[d] <= index < shape[d]:
                raise IndexError(f"index {index} is out of bounds for dimension {d} of {shape[d]}")
            start += (int(index) % shape[d]) * steps[d]
            d += 1
        else:
            raise TypeError(f"an index must be an integer, a slice, None or ..., not {index!r}")
    return start, tuple(counts), tuple(strides)


@lru_cache(VIEWS)
def reshaped_strides(shape: _Sizes, steps: _Sizes, wanted: _Sizes) -> _View:
    """Return the view of another shape, with at most one extent of -1; ValueError if no steps express it."""
    return _view_of(_array(shape, steps).reshape(wanted, copy=False))


@lru_cache(VIEWS)
def permute(shape: _Sizes, steps: _Sizes, axes: _Sizes) -> _View:
    """Return the view with permuted dimensions; ValueError if `axes` is not a permutation."""
    return _view_of(_array(shape, steps).transpose(axes))


@lru_cache(VIEWS)
def broadcast(shape: _Sizes, steps: _Sizes, wanted: _Sizes) -> _View:
    """Return the view that repeats elements; ValueError if the shapes do not broadcast."""
    return _view_of(np.broadcast_to(_array(shape, steps), wanted))


def _array(shape: _Sizes, steps: _Sizes) -> np.ndarray:
    """Return an array with these strides but no memory of this size, to let numpy compute the steps of views."""
    return as_strided(np.zeros(1, np.int8), shape, steps)


def _view_of(view: np.ndarray) -> _View:
    return tuple(int(n) for n in view.shape), tuple(int(step) for step in view.strides)

"""Access of an instruction to a memory, an array of the bytes of each partition.

Elements are little-endian. An access covers consecutive partitions from `partition` on; in each, it has the same start
address and a step in elements per dimension, like numpy's strides. A read is therefore one copy of a strided view.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from neuroncore_rtl.golden.arith import storage_dtype
from neuroncore_rtl.spec.isa import Access, Pointer

__all__ = ["are_distinct", "footprint", "gather", "scatter", "strided_view"]


def gather(memory: np.ndarray, access: Access | Pointer, partitions: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return a copy of the codes that an access selects, [partitions, *shape]; a Pointer has the shape ().

    The memory is uint8 [partitions, bytes]; `shape` has a count for each step of the access, outermost first. Raises
    ValueError if an element lies outside the memory, or the numbers of steps and counts differ.
    """
    view = _elements(memory, access, partitions, shape)
    return view.astype(storage_dtype(access.format), order="C", copy=True)


def scatter(memory: np.ndarray, access: Access, codes: np.ndarray, where: np.ndarray | None = None) -> None:
    """Write codes [partitions, *shape] to the elements of an access, in row-major order.

    If several codes have one address, the last code remains. The memory, uint8 [partitions, bytes], keeps its value
    where `where` is False.
    """
    partitions, *shape = codes.shape
    view = _elements(memory, access, partitions, tuple(shape))
    if are_distinct(access.steps, shape):
        np.copyto(view, codes, where=True if where is None else where)
    else:
        where = np.broadcast_to(True if where is None else where, codes.shape)
        for index in np.ndindex(*shape):
            place = (slice(None), *index)
            np.copyto(view[place], codes[place], where=where[place])


def footprint(access: Access | Pointer, shape: tuple[int, ...]) -> np.ndarray:
    """Return the byte addresses that an access touches in each partition, ascending and unique."""
    size = access.format.bits // 8
    addresses = np.full((), access.address, np.int64)
    for count, step in zip(shape, _steps(access), strict=True):
        addresses = addresses[..., np.newaxis] + size * step * np.arange(count)
    return np.unique(addresses[..., np.newaxis] + np.arange(size))


def _steps(access: Access | Pointer) -> tuple[int, ...]:
    return () if isinstance(access, Pointer) else access.steps


def _elements(memory: np.ndarray, access: Access | Pointer, partitions: int, shape: tuple[int, ...]) -> np.ndarray:
    steps = _steps(access)
    if len(steps) != len(shape):
        raise ValueError(f"steps must be one for each of {len(shape)} dimensions, not {steps!r}")
    size = access.format.bits // 8
    rows, length = memory.shape
    spans = [(count - 1) * step * size for count, step in zip(shape, steps, strict=True)]
    low = access.address + sum(min(span, 0) for span in spans)
    high = access.address + sum(max(span, 0) for span in spans) + size
    if low < 0 or high > length:
        raise ValueError(f"bytes must lie from 0 to {length}, not from {low} to {high}: {access!r}")
    if access.partition < 0 or access.partition + partitions > rows:
        raise ValueError(f"partitions must end at {rows}, not {access.partition + partitions}: {access!r}")
    start = access.partition, access.address
    strides = (memory.strides[0], *(step * size for step in steps))
    return strided_view(memory, start, storage_dtype(access.format), (partitions, *shape), strides)


def strided_view(
    memory: np.ndarray, start: tuple[int, int], dtype: np.dtype, shape: tuple[int, ...], strides: tuple[int, ...]
) -> np.ndarray:
    """Return a view of little-endian elements in a memory, without bounds checks.

    `memory` is uint8 [partitions, bytes], `start` partition and byte of the first element, `strides` are bytes.
    """
    dtype = dtype.newbyteorder("<")
    if memory.flags.c_contiguous:  # true for a core's memories, and ten times as fast
        return np.ndarray(shape, dtype, memory, start[0] * memory.strides[0] + start[1], strides)
    first = memory[start[0] : start[0] + 1, start[1] : start[1] + dtype.itemsize].view(dtype)
    return np.lib.stride_tricks.as_strided(first, shape, strides)


def are_distinct(steps: Sequence[int], shape: Sequence[int]) -> bool:
    """Return True if each step exceeds the distance that all smaller steps cover together.

    No two elements then have the same address.
    """
    reach = 0
    for step, count in sorted((abs(step), count) for step, count in zip(steps, shape, strict=True) if count > 1):
        if step <= reach:
            return False
        reach += step * (count - 1)
    return prod(shape) > 0

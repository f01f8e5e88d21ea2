"""DMA copies between views: dimensions are merged where possible, long copies are split over several engines."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, product
from math import ceil, prod

import numpy as np

from neuroncore_rtl.frontends.nki.indices.numbers import Numbers
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.operands import in_sbuf, lanes_tensor
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.engines import LONG, beats
from neuroncore_rtl.kernels.tiling.transfer import shares_of
from neuroncore_rtl.spec.formats import INT32
from neuroncore_rtl.spec.isa import DMA_DIMENSIONS, DmaCopy, DmaIndex, DmaTensor, Storage
from neuroncore_rtl.spec.isa.dma.layout import DMA_WIDTHS

__all__ = ["strided"]

MOST = (1 << DMA_WIDTHS["count0"]) - 1
"""Largest count of a copy."""


def strided(r: Recording, dst: View, src: View, skip: bool = False) -> None:
    """Append a copy between views of one shape; with `skip`, rows with an index out of bounds are not copied.

    A long copy is split into shares for several DMA engines. Several indices within a partition need a separate copy
    each.
    """
    for view in (dst, src):
        view.check_bounds()
    shape, numbers = dst.shape, dst.numbers or src.numbers
    if dst.is_indirect() and src.is_indirect():
        raise ValueError(
            f"{dst.name}: only one side of a copy may have an index in memory, but {src.name} has one, too"
        )
    if numbers is not None and numbers.apart:
        for place in np.ndindex(*(shape[d] for d in numbers.apart)):
            at = dict(zip(numbers.apart, place, strict=True))
            few = tuple(slice(at[d], at[d] + 1) if d in at else slice(None) for d in range(len(shape)))
            strided(r, dst[few], src[few], skip)
        return
    index = numbers and _row_numbers(r, numbers, skip)
    ends = [_end(r, view) for view in (dst, src)]
    # The dimension along the row numbers must be first; None: a single number.
    moving: list[int | None] = [d for d, n in enumerate(shape) if n > 1 and (numbers is None or d != numbers.along)]
    moving = moving if numbers is None else [numbers.along, *moving]
    counts = [1 if d is None else shape[d] for d in moving] or [1]
    steps = [[0 if d is None else end[1][d] for d in moving] or [1] for end in ends]
    axes = [None if end[2] is None or end[2] not in moving else moving.index(end[2]) for end in ends]
    _join(counts, steps, axes, 0 if index is None else 1)
    if len(counts) > DMA_DIMENSIONS:
        outer = next(d for d in moving if d is not None and d not in (dst.lanes, src.lanes, numbers and numbers.along))
        r.inserted["copies of fewer dimensions"] += shape[outer] - 1
        for n in range(shape[outer]):
            part = (*(slice(None),) * outer, slice(n, n + 1))
            strided(r, dst[part], src[part], skip)
        return
    queues = r.program.stores if not dst.allocation.memory.on_chip else r.program.loads
    sizes = [end[0].format.bits // 8 for end in ends]
    # Scattered rows are not split, because the last of several rows with the same number must remain.
    shares = _shares(r, counts, axes, max(sizes), by_rows=not dst.is_indirect())
    for part in chain.from_iterable(map(_encodable, shares)):
        few, starts = tuple(length(one) for one in part), [one.start for one in part]
        by, moved = {}, []
        for view, end, own, axis, size in zip((dst, src), ends, steps, axes, sizes, strict=True):
            if index is not None and view.numbers is not None:
                by["scatter" if view is dst else "gather"] = replace(index, partition=index.partition + starts[0])
                moved.append(_from(end[0], [0, *starts[1:]], [view.numbers.step, *own[1:]], axis, size))
            else:
                moved.append(_from(end[0], starts, own, axis, size))
        r.program.append(DmaCopy(shape=few, dst=moved[0], src=moved[1], **by), next(queues))


def _encodable(part: tuple[slice, ...]) -> Iterable[tuple[slice, ...]]:
    return product(*(cut(one.start, one.stop, MOST) for one in part))


def _join(counts: list[int], steps: list[list[int]], axes: list[int | None], first: int) -> None:
    """Merge, in place, adjacent dimensions from `first` on that are contiguous in source and destination."""
    d = first
    while d + 1 < len(counts):
        along = any(axis in (d, d + 1) for axis in axes)
        if not along and all(own[d] == own[d + 1] * counts[d + 1] for own in steps):
            counts[d : d + 2] = [counts[d] * counts[d + 1]]
            for own in steps:
                del own[d]
            axes[:] = [None if axis is None else axis - (axis > d) for axis in axes]
        else:
            d += 1


def _row_numbers(r: Recording, numbers: Numbers, skip: bool) -> DmaIndex:
    view = numbers.view
    if not view.allocation.memory.on_chip or view.dtype.is_float:
        raise ValueError(f"{view.name}: an index must be integers in SBUF, not {view.dtype} in {view.buffer.value}")
    words = lanes_tensor(r, view.picked([numbers.along]))
    if words.storage != Storage.SBUF or words.format.bits != INT32.bits:
        words = in_sbuf(r, words, "row numbers of 32 bits in SBUF", INT32)
    return DmaIndex(address=words.address, partition=words.partition, limit=numbers.limit, skip=skip)


def _end(r: Recording, view: View) -> tuple[DmaTensor, tuple[int, ...], int | None]:
    if not view.allocation.memory.on_chip:
        base = view.allocation.tensor(0)
        address = base.address + view.element.start * view.dtype.itemsize
        place = DmaTensor(format=view.dtype.machine_format, address=address, storage=Storage.HBM, steps=(1,))
        return place, view.element.steps, None
    lanes = view.lanes if view.lanes is not None and view.partition.steps[view.lanes] else None
    first = lanes_tensor(r, view if lanes is not None else view.unrepeated())
    place = DmaTensor(
        format=first.format, address=first.address, storage=first.storage, steps=(1,), partition=first.partition
    )
    steps = tuple(view.partition.steps[d] if d == lanes else step for d, step in enumerate(view.element.steps))
    return place, steps, lanes


def _from(place: DmaTensor, starts: list[int], steps: list[int], axis: int | None, size: int) -> DmaTensor:
    offset = sum(start * step for d, (start, step) in enumerate(zip(starts, steps, strict=True)) if d != axis)
    partition = place.partition + (0 if axis is None else starts[axis] * steps[axis])
    return replace(place, address=place.address + offset * size, steps=tuple(steps), partition=partition, axis=axis)


def _shares(
    r: Recording, counts: list[int], axes: list[int | None], size: int, by_rows: bool
) -> list[tuple[slice, ...]]:
    """Split a copy into shares of the size that the kernel library uses, if all shares remain long.

    The outermost dimension that suffices is split into shares of a row, so that runs of contiguous bytes remain long;
    with `by_rows` also the partitions.
    """
    whole = [slice(0, n) for n in counts]
    axis = next((axis for axis in axes if axis is not None), None)
    last = len(counts) - 1
    if axis is None or axis == last:
        return [tuple(whole)]
    row = prod(n for d, n in enumerate(counts) if d != axis) * size
    wanted = shares_of(row, r.program.config)
    split = next((d for d, n in enumerate(counts) if d != axis and n >= wanted), last)
    pieces = min(counts[split], wanted)
    widest = ceil(counts[split] / pieces)
    widest = ceil(widest / 4) * 4 if split == last else widest
    parts = max(1, min(r.program.config.hbm_ports, beats(r.program.config, counts[axis], ceil(row / pieces)) // LONG))
    parts = parts if by_rows else 1
    found = []
    for rows in cut(0, counts[axis], ceil(counts[axis] / parts)):
        for columns in cut(0, counts[split], widest):
            found.append(tuple(rows if d == axis else columns if d == split else one for d, one in enumerate(whole)))
    return found

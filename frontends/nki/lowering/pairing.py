"""Pairing of operands of different shapes: element after element, as AWS's instructions do."""

from collections.abc import Iterator
from itertools import pairwise
from math import prod

from neuroncore_rtl.frontends.nki.indices import layouts
from neuroncore_rtl.frontends.nki.indices.views import View

__all__ = ["paired", "paired_for_dma"]


def paired(shape: tuple[int, ...], *views: View) -> tuple[tuple[int, ...], list[View]]:
    """Return a shape and the operands of an instruction in it.

    That is `shape`, if all views broadcast to it. Otherwise views of as many elements per partition, such as (128, 8)
    and (128, 2, 4), are paired in the order of their elements; the shape returned has dimensions that divide theirs.

    Raises:
        ValueError: if a view neither broadcasts to `shape` nor has as many elements per partition, or if no dimensions
            divide those of all views.
    """
    try:
        return shape, [view.fitted(shape) for view in views]
    except ValueError:
        lanes, size = shape[0] if shape else 1, prod(shape[1:])
        fit = [_fits(view, shape) for view in views]
        if not all(
            fits or (_lanes(view) == lanes and view.size == lanes * size) for fits, view in zip(fit, views, strict=True)
        ):
            raise
    alike = [view.fitted(shape) if fits else view for view, fits in zip(views, fit, strict=True)]
    free = _common_dimensions(size, *alike)
    return (lanes, *free), [_with_free(view, free) for view in alike]


def paired_for_dma(shape: tuple[int, ...], dst: View, src: View) -> tuple[View, View]:
    """Return destination and source of a DMA copy in `shape`, or, if they have as many elements, paired in their order.

    Raises:
        ValueError: if the views neither broadcast to `shape` nor have as many elements, if both are on chip in
            different numbers of partitions, or if no dimensions divide those of both.
    """
    try:
        return dst.fitted(shape), src.fitted(shape)
    except ValueError:
        lanes = {_lanes(view) for view in (dst, src) if view.allocation.memory.on_chip}
        if dst.is_indirect() or src.is_indirect() or dst.size != src.size or len(lanes) > 1 or None in lanes:
            raise
    count = next((count for count in lanes if count), 1)
    free = _common_dimensions(dst.size // count, dst, src)
    return _with_free(dst, free, count), _with_free(src, free, count)


def _fits(view: View, shape: tuple[int, ...]) -> bool:
    try:
        view.fitted(shape)
    except ValueError:
        return False
    return True


def _lanes(view: View) -> int | None:
    """Return the number of partitions; None if they are not dimension 0."""
    if view.lanes is None:
        return 1
    return view.shape[0] if view.lanes == 0 else None


def _common_dimensions(size: int, *views: View) -> tuple[int, ...]:
    """Return dimensions of `size` elements, those of a partition, that divide the dimensions of all views."""
    ends = sorted({size, *(end for view in views for end in _ends(view) if end < size)})
    if any(after % before for before, after in pairwise(ends)):
        shapes = " and ".join(dict.fromkeys(str(view.shape) for view in views))
        raise ValueError(f"{views[0].name}: operands must have dimensions that divide each other, not {shapes}")
    return tuple(after // before for before, after in pairwise(ends))[::-1] or (1,)


def _ends(view: View) -> Iterator[int]:
    """Yield the numbers of elements after which a view's step changes, from 1 on."""
    end, step = 1, None
    for d in reversed(range(0 if view.lanes is None else 1, view.ndim)):
        if step != view.element.steps[d] and view.shape[d] > 1:
            yield end
            step = view.element.steps[d]
        end *= view.shape[d]
        step = None if step is None else step * view.shape[d]


def _with_free(view: View, free: tuple[int, ...], lanes: int = 1) -> View:
    """Return a view with these dimensions in each partition; a view in HBM, or of one partition, as `lanes` rows."""
    if view.lanes is None and lanes == 1:
        flat = layouts.reshaped(view, free)
        return flat.picked([None, *range(len(free))])
    return layouts.reshaped(view, (lanes if view.lanes is None else view.shape[0], *free))

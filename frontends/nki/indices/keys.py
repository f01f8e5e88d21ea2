"""Keys of tensors: integers, slices, None, ..., index expressions, and at most one index in memory.

Slices follow Python's rules and broadcasting follows numpy's, with one difference: a slice is not clipped at the
tensor's end. An index beyond the end is refused unless a mask excludes it.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import reduce
from numbers import Integral
from typing import Any

from neuroncore_rtl.frontends.nki.indices.affine import Affine, broadcast_shapes
from neuroncore_rtl.frontends.nki.indices.numbers import Moved, Numbers
from neuroncore_rtl.frontends.nki.indices.pattern import Pattern, Viewed

__all__ = ["indices_of"]

Part = tuple[int, int | slice | Affine]
"""Pair: a part of a key, preceded by the first dimension of the result to which the part applies."""


def indices_of(
    view: Viewed, key: tuple[Any, ...]
) -> tuple[tuple[int, ...], list[Affine], list[tuple[Affine, int]], Numbers[Viewed] | None]:
    """Return the arguments of `Pattern.indexed` for the key of `view[key]`."""
    used = sum(part is not None and part is not Ellipsis for part in key)
    if used > view.ndim or sum(part is Ellipsis for part in key) > 1:
        raise ValueError(f"{view.name}: an index must have at most {view.ndim} parts for {view.shape}")
    rest = (slice(None),) * (view.ndim - used)
    at = next((n for n, part in enumerate(key) if part is Ellipsis), None)
    key = (*key, *rest) if at is None else (*key[:at], *rest, *key[at + 1 :])
    key, number = _without_number(view, key)
    key, common = _together(key)
    shape, parts = _parts(view, key, common)
    result, over = _indices(view, shape, parts, common)
    # These indices may be out of bounds where a mask does not hold.
    bounds = [
        (index, count)
        for index, count, (_, part) in zip(over, view.shape, parts, strict=True)
        if (isinstance(part, Affine) and index.range != (0, 0)) or not _within(index, count)
    ]
    if number is None:
        return result, over, bounds, None
    place, numbers = number
    d = sum(part is not None for part in key[:place])
    if over[d].range[0] < 0:
        raise ValueError(f"{view.name}: an index that is added to an index in memory must be at least 0, not {over[d]}")
    order: list[int | None] = [None] * len(result)
    if numbers.ndim:
        numbers, first = numbers.repeated(common), parts[d][0]
        order[first : first + len(common)] = range(len(common))
    limit = max(0, view.shape[d] - over[d].range[1])
    return result, over, bounds, Numbers(numbers.picked(order).repeated(result), view.step_along(d), limit)


def _without_number(view: Pattern, key: tuple) -> tuple[tuple, tuple[int, Any] | None]:
    """Return a key with 0 instead of its index in memory, and the position and value of this index, if any."""
    places = [n for n, part in enumerate(key) if isinstance(part, Pattern | Moved)]
    if not places:
        return key, None
    if len(places) > 1 or view.numbers is not None:
        raise ValueError(f"{view.name}: at most one index may be in memory, not {len(places)} more")
    (n,) = places
    part = key[n] if isinstance(key[n], Moved) else Moved(Affine(key[n].shape, (0,) * key[n].ndim), key[n])
    known = part.affine if part.affine.shape or part.number.shape else part.affine.start
    if isinstance(known, Affine):
        known = known.over(broadcast_shapes(known.shape, part.number.shape))
    return (*key[:n], known, *key[n + 1 :]), (n, part.number)


def _together(key: tuple) -> tuple[tuple, tuple[int, ...]]:
    """Return a key with index expressions that broadcast, and their common shape.

    Where numpy's rules fail, missing dimensions are appended as last ones: published kernels write `x[i, j]` with
    `i[:, None]` and `j[None, :, None]`.
    """
    expressions = [part for part in key if isinstance(part, Affine)]
    try:
        return key, reduce(broadcast_shapes, (part.shape for part in expressions), ())
    except ValueError as refusal:
        most = max(len(part.shape) for part in expressions)
        key = tuple(_widened(part, most) if isinstance(part, Affine) else part for part in key)
        with suppress(ValueError):
            return key, reduce(broadcast_shapes, (part.shape for part in key if isinstance(part, Affine)), ())
        raise refusal


def _widened(index: Affine, dimensions: int) -> Affine:
    more = dimensions - len(index.shape)
    return Affine((*index.shape, *(1,) * more), (*index.steps, *(0,) * more), index.start)


def _parts(view: Pattern, key: tuple, common: tuple[int, ...]) -> tuple[list[int], list[Part]]:
    """Return the shape of `view[key]`, with 0 for the size of a slice, and the part of the key for each dimension."""
    places = [n for n, part in enumerate(key) if isinstance(part, Affine)]
    if places and any(not isinstance(part, Affine | Integral) for part in key[places[0] : places[-1]]):
        raise ValueError(f"{view.name}: index expressions must be side by side, not with slices between them")
    shape: list[int] = []
    parts: list[Part] = []
    start = 0
    for n, part in enumerate(key):
        if places and n == places[0]:
            start = len(shape)
            shape += common
        if isinstance(part, Affine):
            parts.append((start, part))
        elif part is None:
            shape.append(1)
        elif isinstance(part, slice):
            parts.append((len(shape), part))
            shape.append(0)
        elif isinstance(part, Integral):
            parts.append((len(shape), int(part)))
        else:
            rule = "an index must be an integer, a slice, None, ... or an index expression"
            raise ValueError(f"{view.name}: {rule}, not {type(part).__name__} {part!r}")
    return shape, parts


def _indices(
    view: Pattern, shape: Sequence[int], parts: list[Part], common: tuple[int, ...]
) -> tuple[tuple[int, ...], list[Affine]]:
    counts = list(shape)
    found: list[tuple[int, dict[int, int]]] = []
    for count, (first, part) in zip(view.shape, parts, strict=True):
        if isinstance(part, int):
            found.append((part % count if -count <= part < count else part, {}))
        elif isinstance(part, slice):
            begin, end, step = _bounds(part, count)
            if step < 1 or end < begin:
                rule = f"a slice must be ascending, with indices from 0 to {count - 1}"
                raise ValueError(f"{view.name}: {rule}, not {part.start}:{part.stop}:{part.step}")
            counts[first] = len(range(begin, end, step))
            found.append((begin, {first: step}))
        else:
            wide = part.over(common)
            found.append((wide.start, {first + e: step for e, step in enumerate(wide.steps)}))
    result = tuple(counts)
    return result, [Affine(result, tuple(own.get(d, 0) for d in range(len(result))), start) for start, own in found]


def _bounds(part: slice, count: int) -> tuple[int, int, int]:
    begin, end, step = part.indices(count)
    start, stop = (number if isinstance(number, Integral) else 0 for number in (part.start, part.stop))
    return (max(begin, int(start)), max(end, int(stop)), step) if step > 0 else (begin, end, step)


def _within(index: Affine, count: int) -> bool:
    least, most = index.range
    return least >= 0 and most < count

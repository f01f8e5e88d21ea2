"""Views with another layout of the same memory: reshape, reinterpretation of bits, access patterns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from numbers import Integral

from neuroncore_rtl.frontends.nki.indices.affine import Affine
from neuroncore_rtl.frontends.nki.indices.dtypes import DType
from neuroncore_rtl.frontends.nki.indices.numbers import Numbers
from neuroncore_rtl.frontends.nki.indices.pattern import Pattern, Viewed
from neuroncore_rtl.frontends.nki.indices.registers import VirtualRegister
from neuroncore_rtl.frontends.nki.indices.storage import Memory, format_in
from neuroncore_rtl.kernels import strides

__all__ = ["accessed", "cast", "pattern_of", "rearranged", "reshaped", "retyped"]

AXES = ("element", "partition", "block")


def reshaped(view: Viewed, shape: tuple[int, ...]) -> Viewed:
    """Return a view of another shape; at most one extent is -1. On chip the partition dimension must stay first."""
    if -1 in shape:
        rest = prod(n for n in shape if n != -1)
        shape = tuple(view.size // rest if n == -1 else n for n in shape)
    first = 0
    if view.lanes is not None:
        first = view.lanes + 1
        if shape[:first] != view.shape[:first]:
            raise ValueError(f"{view.name}: the partitions of {view.shape} must stay first, not {shape}")
    view.check_bounds()
    if prod(shape) != view.size:
        raise ValueError(f"{view.name}: shape must have the {view.size} elements of {view.shape}, not {shape}")
    try:
        _, steps = strides.reshaped_strides(view.shape[first:], view.element.steps[first:], shape[first:])
    except (ValueError, TypeError):
        rule = f"another shape must be possible with constant steps, not {shape} for {view.shape}"
        raise ValueError(f"{view.name}: {rule} with steps {view.element.steps}") from None
    flat = (0,) * (len(shape) - first)
    last = {"element": tuple(int(step) for step in steps), "partition": flat, "block": flat}
    own = {name: getattr(view, name) for name in AXES}
    axes = {name: Affine(shape, axis.steps[:first] + last[name], axis.start) for name, axis in own.items()}
    # The indices in memory get the same new shape.
    numbers = view.numbers and replace(view.numbers, view=reshaped(view.numbers.view, shape))
    return replace(view, shape=shape, numbers=numbers, bounds=(), cut=None, **axes)


def retyped(view: Viewed, dtype: DType) -> Viewed:
    """Return a view that interprets the same bits as another type, with more or fewer elements in the last dimension.

    The type may be larger if the last dimension and all steps are whole elements of it.
    """
    _check_bits(view, dtype)
    old, new = view.dtype.itemsize, dtype.itemsize
    if old == new:
        return replace(view, dtype=dtype)
    near = view.ndim and view.element.steps[-1] == 1 and view.lanes != view.ndim - 1 and view.numbers is None
    places = [view.element.start, *view.element.steps[:-1], *view.shape[-1:]]
    if not near or view.allocation.memory is Memory.psum or any(place * old % new for place in places):
        rule = f"view must have {old} bytes per element, or whole elements in a contiguous last dimension outside PSUM"
        raise ValueError(f"{view.name}: {rule}, not {dtype}")
    shape = (*view.shape[:-1], view.shape[-1] * old // new)
    rows = Affine(shape, (*(step * old // new for step in view.element.steps[:-1]), 1), view.element.start * old // new)
    axes = {name: replace(getattr(view, name), shape=shape) for name in AXES} | {"element": rows}
    view.check_bounds()
    return replace(view, dtype=dtype, shape=shape, bounds=(), cut=None, **axes)


def pattern_of(view: Pattern) -> list[list[int]]:
    """Return pairs (step, count), outermost first; a partition is one row of the tensor further."""
    steps = zip(view.element.steps, view.partition.steps, strict=True)
    return [[own + row * _width(view), count] for (own, row), count in zip(steps, view.shape, strict=True)]


def rearranged(view: Viewed, given: Sequence, wanted: Sequence, sizes: Mapping[str, int]) -> Viewed:
    """Return a view with dimensions split, permuted and merged: names, in a tuple those of one dimension.

    `sizes` are those of split dimensions, of which one per dimension may be missing.
    """
    groups = [(part,) if isinstance(part, str) else tuple(part) for part in given]
    goal = [(part,) if isinstance(part, str) else tuple(part) for part in wanted]
    names = [name for group in groups for name in group]
    if len(groups) != view.ndim or sorted(names) != sorted(name for group in goal for name in group):
        rule = f"patterns must name the {view.ndim} dimensions of {view.shape}, both with the same names"
        raise ValueError(f"{view.name}: {rule}, not {tuple(given)} and {tuple(wanted)}")
    split: list[int] = []
    for group, size in zip(groups, view.shape, strict=True):
        known = [sizes.get(name, -1) for name in group]
        rest = prod(n for n in known if n != -1)
        counts = [size // rest if n == -1 else n for n in known]
        if known.count(-1) > 1 or prod(counts) != size:
            raise ValueError(f"{view.name}: sizes of {group} must have the product {size}, not {dict(sizes)}")
        split += counts
    order = [names.index(name) for group in goal for name in group]
    parts = reshaped(view, tuple(split)).picked(order)
    counts = iter(parts.shape)
    return reshaped(parts, tuple(prod(next(counts) for _ in group) for group in goal))


def _check_bits(view: Pattern, dtype: DType) -> None:
    """Raise ValueError if the bits of a type cannot be read as those of another one."""
    types = [view.dtype, dtype] if view.allocation.memory is Memory.psum and view.dtype != dtype else []
    if any(own.machine_format is not format_in(Memory.psum, own) for own in types):
        rule = "a view of PSUM, which has words of 32 bits, must be of float32, int32 or uint32"
        raise ValueError(f"{view.name}: {rule}, not of {view.dtype} as {dtype}: copy it to SBUF first")
    if dtype.is_truth and not view.dtype.is_truth:
        raise ValueError(f"{view.name}: bits of {view.dtype} must not be read as bool_, which has 0 and 1: cast them")


def cast(view: Viewed, dtype: DType) -> Viewed:
    """Return a view of another type at the same byte positions: its steps and start count elements of this type."""
    _check_bits(view, dtype)
    old, new = view.dtype.itemsize, dtype.itemsize
    element = view.element
    places = [*element.steps, element.start]
    if (old != new and view.allocation.memory is Memory.psum) or any(place * old % new for place in places):
        rule = "ap of another type must be in SBUF or HBM, with start and steps in whole elements of it"
        raise ValueError(f"{view.name}: {rule}, not {dtype} for {view.dtype} in {view.buffer.value}")
    *steps, start = (place * old // new for place in places)
    return replace(view, dtype=dtype, element=Affine(element.shape, tuple(steps), start))


def accessed(view: Viewed, pattern, offset: int | None, scalar, vector, dim: int, options: dict) -> Viewed:
    """Return the view with an access pattern, see `frontends.nki.indices.views.View.ap`.

    `offset` is the start, in elements counted over all partitions; None for the view's start. All values of `options`
    must be false.
    """
    if isinstance(scalar, VirtualRegister):
        scalar = scalar.word
    if isinstance(scalar, Integral):
        by = int(scalar) * view.step_along(dim)
        moved = replace(view, element=replace(view.element, start=view.element.start + by))
        return accessed(moved, pattern, None if offset is None else int(offset) + by, None, vector, dim, options)
    if any(options.values()):
        raise ValueError(f"{view.name}: ap may have only steps, counts and offsets, not {options}")
    shape = tuple(int(count) for _, count in pattern)
    steps, start = tuple(int(step) for step, _ in pattern), view.element.start if offset is None else int(offset)
    found = _patterned(view, shape, steps if vector is None else (0, *steps[1:]), start, offset is not None)
    if scalar is None and vector is None:
        return found
    return _offset(found, view, scalar, vector, dim)


def _width(view: Pattern) -> int:
    if view.allocation.memory is Memory.psum:
        return view.allocation.width
    return view.allocation.width * view.allocation.dtype.itemsize // view.dtype.itemsize


def _patterned(view: Viewed, shape: tuple[int, ...], steps: tuple[int, ...], start: int, across: bool) -> Viewed:
    """Return the view with an access pattern of these counts (`shape`), steps and start.

    If `across`, `start` counts elements over all partitions, otherwise within a partition.
    """
    width, flat = _width(view), (0,) * len(shape)
    block = Affine(shape, flat, view.block.start)
    if view.lanes is None:
        element, partition = Affine(shape, steps, start), Affine(shape, flat)
        lanes, bounds = None, ((element, width),)
    else:
        row, start = divmod(start, width) if across else (view.partition.start, start)
        if steps[0] % width:
            rule = f"a pattern's first step must be along the partitions, a multiple of {width}"
            raise ValueError(f"{view.name}: {rule}, not {steps[0]}")
        element = Affine(shape, (0, *steps[1:]), start)
        partition = Affine(shape, (steps[0] // width, *flat[1:]), row)
        lanes, bounds = 0, ((element, width), (partition, view.allocation.partitions))
    places = {"element": element, "partition": partition, "block": block}
    return replace(view, shape=shape, lanes=lanes, bounds=bounds, numbers=None, cut=None, **places)


def _offset(view: Viewed, base: Viewed, scalar: object, vector: object, dim: int) -> Viewed:
    """Return `view` moved along dimension `dim` of `base` by an index in memory."""
    offset = scalar if vector is None else vector
    if not isinstance(offset, Pattern) or (scalar is not None and vector is not None):
        rule = "an offset in memory must be one tensor in SBUF, scalar_offset or vector_offset"
        raise ValueError(f"{view.name}: {rule}, not {scalar!r} and {vector!r}")
    if vector is not None and (dim or view.lanes is not None or offset.size != view.shape[0]):
        rule = f"vector_offset must be {view.shape[0]} numbers for rows of a tensor in HBM"
        raise ValueError(f"{view.name}: {rule}, not {offset.size} in dimension {dim}")
    ones = (1,) * (view.ndim - 1)
    number = offset.single().picked([None] * view.ndim) if vector is None else offset.fitted((offset.size, *ones))
    step, last = base.step_along(dim), view.element.range[1]
    limit = (_width(view) - 1 - last) // step + 1
    return replace(view, numbers=Numbers(number.repeated(view.shape), step, max(0, limit)))

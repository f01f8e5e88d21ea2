"""Calls of the DMA engines."""

from dataclasses import replace
from math import ceil, prod

from neuroncore_rtl.frontends.nki.calls import Call, at_least_2d, instruction
from neuroncore_rtl.frontends.nki.isa_tensor import stationary_operand, transposable, transposed
from neuroncore_rtl.frontends.nki.operands import common, lanes_tensor
from neuroncore_rtl.frontends.nki.recording import Recording
from neuroncore_rtl.frontends.nki.storage import Memory
from neuroncore_rtl.frontends.nki.views import View
from neuroncore_rtl.kernels.library.blocks import cut, length
from neuroncore_rtl.kernels.library.engines import LONG, beats
from neuroncore_rtl.kernels.program import dma_copy as copied
from neuroncore_rtl.kernels.program.instructions import tensor_copy
from neuroncore_rtl.spec.config import LINE_BYTES, SBUF_BANKS
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import DmaCopy, DmaTensor, Storage

__all__ = ["CALLS", "copy"]

CALLS: dict[str, Call] = {}
"""The calls of this module."""

DIMENSIONS = 5
"""Of a copy at most."""

SHARE = 2 * SBUF_BANKS * LINE_BYTES
"""Bytes of a row that one copy moves at most, as of the library: two lines of every bank."""


@instruction(
    CALLS, "expanded", "a copy for each KiB of a partition; a transposed one by the tensor engine",
    result=lambda given: (at_least_2d(given["src"].shape), given["src"].dtype, Memory.sbuf), like="src",
)  # fmt: skip
def dma_copy(r: Recording, dst: View, src: View, dst_rmw_op=None, unique_indices=True) -> None:
    """dst = src, between HBM, SBUF and PSUM, cast on the way."""
    if dst_rmw_op is not None:
        raise ValueError("dst_rmw_op must be None: add on chip by tensor_tensor")
    copy(r, dst, src)


@instruction(
    CALLS, "expanded", "by the tensor engine where one side is in HBM or both on chip; integers by DMA",
    result=lambda given: (tuple(reversed(given["src"].shape)), given["src"].dtype, Memory.sbuf), like="src",
)  # fmt: skip
def dma_transpose(r: Recording, dst: View, src: View, axes=None) -> None:
    """dst = src.T of two dimensions."""
    if axes not in (None, (1, 0), [1, 0]) or src.ndim != 2:
        raise ValueError(
            f"{src.name}: what is transposed must be of 2 dimensions, axes (1, 0), not {src.shape}, {axes}"
        )
    copy(r, dst, src.permuted((1, 0)) if src.lanes is None else src, turned=src.lanes is not None)


def copy(r: Recording, dst: View, src: View, turned: bool = False) -> None:
    """Append dst = src, or of tensors on chip dst = src.T."""
    if turned:
        _transpose_on_chip(r, dst, src)
        return
    if dst.size < src.size or (dst.size == src.size and len(dst.shape) != len(src.shape)):
        shape = dst.shape if dst.lanes is not None else src.shape
    else:
        shape = dst.shape
    dst, src = dst.fitted(shape), src.fitted(shape)
    on_chip = [view for view in (dst, src) if view.allocation.memory.on_chip]
    if len(on_chip) == 1 and _is_turned(*on_chip, dst if on_chip[0] is src else src):
        _through_tensor_engine(r, dst, src)
    elif len(on_chip) == 1 and _is_slow(r, *on_chip, dst if on_chip[0] is src else src):
        _through_vector_engine(r, dst, src)
    else:
        _strided(r, dst, src)


def _is_slow(r: Recording, near: View, far: View) -> bool:
    """Return whether a copy would move an element a cycle, and the vector engine could make one of lines of it: it
    is of PSUM, of other types, or of elements that are apart."""
    if near.lanes != 0 or near.ndim < 2 or near.shape[0] == 1 or near.partition.start % r.program.config.quadrant:
        return False
    inner = [step for n, step in zip(near.shape[1:], near.element.steps[1:], strict=True) if n > 1]
    if not inner or not near.partition.steps[0]:
        return False
    return near.allocation.memory is Memory.psum or near.dtype != far.dtype or inner[-1] != 1


def _through_vector_engine(r: Recording, dst: View, src: View) -> None:
    """Append a copy between HBM and the chip by way of a tile of SBUF with the type and the order that HBM has."""
    near, far = (dst, src) if dst.allocation.memory.on_chip else (src, dst)
    tile = r.allocate(near.shape, far.dtype, Memory.sbuf, near.name)
    if near is dst:
        _strided(r, tile, src)
        r.inserted["copy behind a load"] += 1
        r.program.append(tensor_copy(*common(r, near.shape, dst, tile)))
    else:
        r.inserted["copy before a store"] += 1
        r.program.append(tensor_copy(*common(r, near.shape, tile, src)))
        _strided(r, dst, tile)


def _is_turned(near: View, far: View) -> bool:
    """Return whether the rows of HBM are along the partitions of a tensor on chip that the array can transpose."""
    if near.lanes != 0 or near.ndim != 2 or not transposable(near.dtype.known) or near.dtype != far.dtype:
        return False
    rows, columns = near.shape
    return rows > 1 and columns > 1 and far.element.steps[0] == 1 and far.element.steps[1] > 1


def _through_tensor_engine(r: Recording, dst: View, src: View) -> None:
    """Append a transposed copy between HBM and the chip: whole rows of HBM, which the tensor engine turns."""
    loads = dst.allocation.memory.on_chip
    near, far = (dst, src) if loads else (src, dst)
    size, space = r.program.lanes, r.program.space
    for part in cut(0, near.shape[1], size):
        own, theirs = near[:, part], far[:, part].permuted((1, 0))
        rows, width = theirs.shape
        held = r.allocate((rows, width), near.dtype, Memory.sbuf, near.name)
        r.inserted["transposition by the tensor engine"] += 1
        if loads:
            _strided(r, held, theirs)
            sums = space.psum(near.name, FP32, (rows,), width)
            transposed(r, sums, stationary_operand(r, held))
            r.program.append(tensor_copy(lanes_tensor(r, own), sums))
        else:
            sums = space.psum(near.name, FP32, (width,), rows)
            transposed(r, sums, stationary_operand(r, own))
            r.program.append(tensor_copy(lanes_tensor(r, held), sums))
            _strided(r, theirs, held)


def _strided(r: Recording, dst: View, src: View) -> None:
    """Append a copy of views of one shape: in shares that keep several DMA engines busy, if it is long."""
    for view in (dst, src):
        view.check_bounds()
    shape = dst.shape
    ends = [_end(r, view) for view in (dst, src)]
    moving = [d for d, n in enumerate(shape) if n > 1]
    counts = [shape[d] for d in moving] or [1]
    steps = [[end[1][d] for d in moving] or [1] for end in ends]
    axes = [moving.index(end[2]) if end[2] in moving else None for end in ends]
    d = 0
    while d + 1 < len(counts):
        along = any(axis in (d, d + 1) for axis in axes)
        if not along and all(own[d] == own[d + 1] * counts[d + 1] for own in steps):
            counts[d : d + 2] = [counts[d] * counts[d + 1]]
            for own in steps:
                del own[d]
            axes = [None if axis is None else axis - (axis > d) for axis in axes]
        else:
            d += 1
    if len(counts) > DIMENSIONS:
        raise ValueError(f"{dst.name}: a copy must be of at most {DIMENSIONS} dimensions, not {len(counts)} of {shape}")
    queues = r.program.stores if not dst.allocation.memory.on_chip else r.program.loads
    sizes = [end[0].format.bits // 8 for end in ends]
    for part in _shares(r, counts, axes, max(sizes)):
        few = tuple(length(one) for one in part)
        moved = [
            _from(end[0], [one.start for one in part], own, axis, size)
            for end, own, axis, size in zip(ends, steps, axes, sizes, strict=True)
        ]
        r.program.append(DmaCopy(shape=few, dst=moved[0], src=moved[1]), next(queues))


def _end(r: Recording, view: View) -> tuple[DmaTensor, tuple[int, ...], int | None]:
    """Return where a copy begins, its steps over the view's shape, and which dimension goes along partitions."""
    if not view.allocation.memory.on_chip:
        base = view.allocation.tensor(0)
        address = base.address + view.element.start * base.format.bits // 8
        place = DmaTensor(format=view.dtype.known, address=address, storage=Storage.HBM, steps=(1,))
        return place, view.element.steps, None
    lanes = view.lanes if view.lanes is not None and view.partition.steps[view.lanes] else None
    first = lanes_tensor(r, view if lanes is not None else view.unrepeated())
    place = DmaTensor(
        format=first.format, address=first.address, storage=first.storage, steps=(1,), partition=first.partition
    )
    steps = tuple(view.partition.steps[d] if d == lanes else step for d, step in enumerate(view.element.steps))
    return place, steps, lanes


def _from(place: DmaTensor, starts: list[int], steps: list[int], axis: int | None, size: int) -> DmaTensor:
    """Return an end of a share of a copy."""
    offset = sum(start * step for d, (start, step) in enumerate(zip(starts, steps, strict=True)) if d != axis)
    partition = place.partition + (0 if axis is None else starts[axis] * steps[axis])
    return replace(place, address=place.address + offset * size, steps=tuple(steps), partition=partition, axis=axis)


def _shares(r: Recording, counts: list[int], axes: list[int | None], size: int) -> list[tuple[slice, ...]]:
    """Cut a copy as the library does: the innermost dimension into shares of a row, the partitions if all stay long."""
    whole = [slice(0, n) for n in counts]
    axis = next((axis for axis in axes if axis is not None), None)
    last = len(counts) - 1
    if axis is None or axis == last:
        return [tuple(whole)]
    row = prod(n for d, n in enumerate(counts) if d != axis) * size
    pieces = min(counts[last], ceil(row / SHARE))
    widest = ceil(ceil(counts[last] / pieces) / 4) * 4
    parts = max(1, min(r.program.config.hbm_ports, beats(r.program.config, counts[axis], ceil(row / pieces)) // LONG))
    found = []
    for rows in cut(0, counts[axis], ceil(counts[axis] / parts)):
        for columns in cut(0, counts[last], widest):
            found.append(tuple(rows if d == axis else columns if d == last else one for d, one in enumerate(whole)))
    return found


def _transpose_on_chip(r: Recording, dst: View, src: View) -> None:
    """Append dst = src.T of tensors on chip, or from the chip to HBM, which is a copy with its dimensions turned."""
    if not dst.allocation.memory.on_chip:
        copy(r, dst.permuted((1, 0)), src)
        return
    if not transposable(src.dtype.known):
        r.inserted["transposition by DMA"] += 1
        r.program.append(copied(lanes_tensor(r, dst), lanes_tensor(r, src), (1, 0)), next(r.program.loads))
        return
    rows, columns = src.shape
    size = r.program.lanes
    for part in cut(0, columns, size):
        sums = r.program.space.psum(dst.name, FP32, (rows,), length(part))
        transposed(r, sums, stationary_operand(r, src[:, part]))
        r.program.append(tensor_copy(lanes_tensor(r, dst[part, :]), sums))

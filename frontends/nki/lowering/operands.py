"""Conversion of views to operands of the machine's instructions.

The machine requires contiguous stationary operands, scalars in SBUF, at most one source in PSUM, and operands in the
partitions of their lanes. Otherwise a copy is inserted and counted (`Recording.inserted`).
"""

from collections.abc import Sequence
from math import prod
from numbers import Real
from typing import Any, cast

from neuroncore_rtl.frontends.nki.indices.storage import Memory, format_in
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.engines import append_copy
from neuroncore_rtl.frontends.nki.lowering.pairing import paired
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import Tensor, dma_copy, load_stationary, multiply_moving
from neuroncore_rtl.kernels.program.instructions import affine_select, memset
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.spec.formats import FP32, INT8, Format
from neuroncore_rtl.spec.isa import AluOp, Index, Storage

__all__ = [
    "as_row", "common", "identity_tile", "in_sbuf", "is_written", "lanes_tensor", "mark_written",
    "one_source_in_psum", "ones", "scalar", "spread", "step_of",
]  # fmt: skip


def lanes_tensor(recording: Recording, view: View) -> Tensor:
    """Return a view as an operand of an instruction, without its free dimensions of one element.

    Raises:
        ValueError: if the view is not on chip, exceeds its tensor, or its partitions are not consecutive.
    """
    if not view.allocation.memory.on_chip:
        raise ValueError(f"{view.name}: an operand must be in SBUF or PSUM, not in HBM: copy it there first")
    if view.numbers is not None:
        raise ValueError(
            f"{view.name}: an operand's address must be fixed, not given by an index in memory: use tensor_copy first"
        )
    view.check_bounds()
    _fill_zeros(recording, view)
    base, fmt = view.allocation.tile(view.one_block()), format_in(view.allocation.memory, view.dtype)
    moving = [d for d, n in enumerate(view.shape) if n > 1 and d != view.lanes]
    if any(view.partition.steps[d] for d in moving):
        raise ValueError(f"{view.name}: only the partition dimension may step over partitions")
    if view.lanes is not None and view.shape[view.lanes] > 1 and view.partition.steps[view.lanes] != 1:
        rule = "partitions must be consecutive"
        raise ValueError(f"{view.name}: {rule}, not in steps of {view.partition.steps[view.lanes]}")
    if view.lanes is not None and view.shape[view.lanes] > 1 and view.element.steps[view.lanes]:
        rule = "all partitions must have the same elements"
        raise ValueError(f"{view.name}: {rule}, not ones that move with the partition, as in tile[i, i]")
    return Tensor(
        name=view.name,
        format=fmt,
        address=base.address + view.element.start * fmt.bits // 8,
        partitions=1 if view.lanes is None else view.shape[view.lanes],
        shape=tuple(view.shape[d] for d in moving) or (1,),
        partition=base.partition + view.partition.start,
        storage=base.storage,
        steps=tuple(view.element.steps[d] for d in moving) or (1,),
    )


def common(recording: Recording, shape: tuple[int, ...], *views: View, psum: bool = False) -> list[Tensor]:
    """Return views as operands of one instruction, broadcast to a shape, with dimensions merged where all allow it.

    Views of other shapes with as many elements are paired in order. With `psum` a row for all partitions may be in
    PSUM.
    """
    shape, found = paired(shape, *views)
    fitted = [spread(recording, view, psum) for view in found]
    return _merge_dimensions([_of_lanes(recording, view, shape) for view in fitted])


def _merge_dimensions(tensors: list[Tensor]) -> list[Tensor]:
    counts = list(tensors[0].shape)
    steps = [list(tensor.steps or ()) for tensor in tensors]
    d = 0
    while d + 1 < len(counts):
        if all(own[d] == own[d + 1] * counts[d + 1] for own in steps):
            counts[d : d + 2] = [counts[d] * counts[d + 1]]
            for own in steps:
                del own[d]
        else:
            d += 1
    return [_stepping(tensor, counts, own) for tensor, own in zip(tensors, steps, strict=True)]


def _of_lanes(recording: Recording, view: View, shape: tuple[int, ...]) -> Tensor:
    lanes = 0 if view.lanes is None else view.lanes
    if lanes:
        raise ValueError(f"{view.name}: the partitions must be along dimension 0 of {view.shape}, not {lanes}")
    base = lanes_tensor(recording, view)
    moving = [d for d, n in enumerate(shape) if n > 1 and d != lanes]
    counts, steps = [shape[d] for d in moving], [view.element.steps[d] for d in moving]
    return _stepping(base, counts or [1], steps or [1])


def _stepping(tensor: Tensor, counts: Sequence[int], steps: Sequence[int]) -> Tensor:
    return Tensor(
        name=tensor.name, format=tensor.format, address=tensor.address, partitions=tensor.partitions,
        shape=tuple(counts), partition=tensor.partition, storage=tensor.storage, steps=tuple(steps),
    )  # fmt: skip


def mark_written(view: View) -> View:
    """Record that the elements of a view have been written; return the view."""
    allocation = view.allocation
    allocation.count_write(view)
    if allocation.memory is Memory.psum:
        allocation.written_elements(view.one_block())[view.places()] = True
    return view


def is_written(view: View) -> bool:
    """Return whether any element of a view in PSUM has been written."""
    allocation = view.allocation
    return allocation.memory is Memory.psum and bool(allocation.written_elements(view.one_block())[view.places()].any())


def _fill_zeros(recording: Recording, view: View) -> None:
    """Append zeros for a PSUM block that was allocated as zeros, before an instruction other than a product uses it."""
    allocation = view.allocation
    block = view.one_block()
    if block in allocation.zeros:
        allocation.zeros.remove(block)
        allocation.written_elements(block)[:] = True
        recording.program.append(memset(allocation.tile(block), 0.0))


def in_sbuf(recording: Recording, tensor: Tensor, reason: str, fmt: Format | None = None, partition: int = 0) -> Tensor:
    """Return a contiguous copy of an operand in SBUF, from `partition` on."""
    fmt = tensor.format if fmt is None else fmt
    copy = recording.program.space.sbuf(tensor.name, fmt, tensor.shape, partition + tensor.partitions)
    recording.inserted[reason] += 1
    append_copy(recording, copy[partition:], tensor)
    return copy[partition:]


def as_row(tensor: Tensor) -> Tensor | None:
    """Return a tensor with one free dimension; None if its elements have no constant step."""
    try:
        return tensor.reshape(tensor.size)
    except ValueError:
        return None


def step_of(row: Tensor) -> int:
    """Return the distance in elements between adjacent elements of a tensor with one free dimension."""
    assert row.steps is not None
    return row.steps[0]


def one_source_in_psum(recording: Recording, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Return two sources; copy the second to SBUF if both are in PSUM, which has one read port."""
    if first.storage == second.storage == Storage.PSUM:
        second = in_sbuf(recording, second, "second source in PSUM")
    return first, second


def scalar(recording: Recording, given: Any, lanes: int) -> float | int | Tensor:
    """Return a scalar operand: a number, or a tensor in SBUF with one element per partition."""
    if not isinstance(given, View):
        number = given.item() if hasattr(given, "item") else given
        if not isinstance(number, Real):
            raise ValueError(f"an operand must be a number or a tensor, not {given!r}")
        return cast("float", number)
    if prod(given.shape) != (1 if given.lanes is None else given.shape[given.lanes]):
        raise ValueError(f"{given.name}: a scalar must be one element a partition, not {given.shape}")
    (tensor,) = common(recording, (lanes, 1), given.fitted((given.size, 1)))
    return tensor if tensor.storage == Storage.SBUF else in_sbuf(recording, tensor, "scalar in PSUM")


def identity_tile(recording: Recording, fmt: Format) -> Tensor:
    """Return the identity matrix of the array's size in a format; created on first use."""

    def make() -> Tensor:
        size, space = recording.program.config.rows, recording.program.space
        ones, matrix = (space.sbuf(name, fmt, (size,), size) for name in ("ones", "identity"))
        recording.inserted["identity matrix"] += 1
        recording.program.append(memset(ones, 1.0))
        recording.program.append(affine_select(matrix, ones, Index(partition=1, steps=(-1,)), AluOp.IS_EQUAL, 0.0))
        return matrix

    return recording.once(("identity", fmt.name), make)


def spread(recording: Recording, view: View, psum: bool = False) -> View:
    """Return a view unchanged, or, if it repeats one partition, a tensor with a copy of the data in every partition.

    With `psum` the first instruction that needs a copy reads FP32 values from the bank that the array wrote them to.
    The next one copies them to SBUF, to free the bank.
    """
    allocation, lanes = view.allocation, 0 if view.lanes is None else view.lanes
    if not allocation.memory.on_chip:
        return view
    if view.ndim and view.lanes is None and view.shape[0] > 1 and view.element.steps[0]:
        rule = "an operand's first dimension must be along the partitions"
        raise ValueError(f"{view.name}: {rule}, not within one partition in {view.shape}")
    if not view.ndim or view.shape[lanes] == 1 or view.partition.steps[lanes]:
        return view
    once = view[(slice(None),) * lanes + (slice(0, 1),)]
    moving = [d for d, n in enumerate(once.shape) if n > 1 and once.element.steps[d]]
    shape = tuple(once.shape[d] for d in moving) or (1,)
    steps = tuple(once.element.steps[d] for d in moving)
    key = "spread", allocation, allocation.version, once.element.start, once.block.start, shape, steps
    key = (*key, once.partition.start, view.shape[lanes], view.dtype)
    key = (*key, len(recording.program.steps)) if allocation.is_register else key

    def wide(memory: Memory) -> View:
        return recording.allocate((view.shape[lanes], *shape), view.dtype, memory, f"{view.name} in all lanes")

    def make() -> View:
        source = lanes_tensor(recording, once.picked(moving or [None]))
        direct = psum and source.format is FP32 and prod(shape) <= recording.program.config.psum_words
        found = mark_written(wide(Memory.psum if direct else Memory.sbuf))
        _to_all_lanes(recording, lanes_tensor(recording, found), source)
        return found

    known, found = key in recording.made, recording.once(key, make)
    if known and found.allocation.memory is Memory.psum:
        copy = recording.made[key] = wide(Memory.sbuf)
        append_copy(recording, lanes_tensor(recording, copy), lanes_tensor(recording, found))
        found = copy
    order = [0 if d == lanes else 1 + moving.index(d) if d in moving else None for d in range(view.ndim)]
    return found.picked(order).repeated(view.shape)


def _to_all_lanes(recording: Recording, dst: Tensor, src: Tensor) -> None:
    """Append a broadcast of the single partition of `src` to all of `dst`.

    It is a bit-exact product with a column of ones, or a DMA copy if the tensor engine cannot multiply the format.
    """
    program = recording.program
    recording.inserted["row to all partitions"] += 1
    dst, src = _merge_dimensions([dst, src])
    if src.format not in program.config.matmul_formats or src.format is INT8 or dst.partitions > program.config.columns:
        program.append(dma_copy(dst, src), next(program.loads))
        return
    if src.storage != Storage.SBUF or src.partition or len(src.shape) > 1 or step_of(src) < 0:
        if src.partition:
            copy = program.space.sbuf(src.name, src.format, src.shape, 1)
            program.append(dma_copy(copy, src), next(program.loads))
            src = copy
        else:
            src = in_sbuf(recording, src, "operand of the tensor engine")
    row = ones(recording, src.format, 1)
    flat, target = src.reshape(src.size), dst.reshape(dst.size)
    for columns in cut(0, flat.size, program.config.psum_words):
        direct, words = dst.storage == Storage.PSUM, program.config.psum_words
        sums = target if direct else program.space.psum(dst.name, FP32, (words,), dst.partitions)[:, : length(columns)]
        program.append(load_stationary(row[:, : dst.partitions]))
        for half in (0, 1) if src.format is FP32 else (0,):
            program.append(multiply_moving(sums, flat[:, columns], half=half, accumulate=half > 0))
        if not direct:
            append_copy(recording, target[:, columns], sums)


def ones(recording: Recording, fmt: Format, partitions: int) -> Tensor:
    """Return a tensor of ones: in each of `partitions` partitions, one element per partition of the machine."""

    def make() -> Tensor:
        tensor = recording.program.space.sbuf("ones", fmt, (recording.program.lanes,), partitions)
        recording.program.append(memset(tensor, 1.0))
        return tensor

    return recording.once(("ones", fmt.name, partitions), make)

"""Calls that move or reduce across partitions."""

from collections.abc import Iterable, Iterator

from neuroncore_rtl.frontends.nki.dialects.isa_move import copy
from neuroncore_rtl.frontends.nki.dialects.isa_reduce import reduced_type
from neuroncore_rtl.frontends.nki.dialects.isa_tensor import stationary_operand, transposable, transposed
from neuroncore_rtl.frontends.nki.indices.storage import Memory
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.calls import Call, instruction
from neuroncore_rtl.frontends.nki.lowering.engines import append_copy
from neuroncore_rtl.frontends.nki.lowering.integers import same_bits
from neuroncore_rtl.frontends.nki.lowering.operands import as_row, in_sbuf, lanes_tensor, ones, spread
from neuroncore_rtl.frontends.nki.lowering.operators import name_of, operation
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import Tensor, dma_copy, load_stationary, multiply_moving
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["CALLS"]

CALLS: dict[str, Call] = {}

GROUP = 32
"""Partitions per group of `nc_stream_shuffle`."""

KEPT = 255
"""Value in a shuffle mask for a partition of dst that remains unchanged."""


@instruction(CALLS, "expanded", "one DMA per run of consecutive partitions", result=None, like="src")
def nc_stream_shuffle(r: Recording, dst: View, src: View, shuffle_mask) -> None:
    """Copy, in each group of 32 partitions, partition shuffle_mask[i] of src to partition i of dst; 255: no copy."""
    dst, src = (view if view.lanes == 0 else view.picked([None, *_free(view)]) for view in (dst, src))
    mask = [int(number) for number in shuffle_mask] if isinstance(shuffle_mask, Iterable) else []
    if len(mask) != GROUP or dst.dtype != src.dtype or dst.shape[1:] != src.shape[1:]:
        rule = f"shuffle_mask must have {GROUP} numbers, dst the type and the free dimensions of src"
        given = f"{shuffle_mask!r}, {dst.dtype} {dst.shape} and {src.dtype} {src.shape}"
        raise ValueError(f"{dst.name}: {rule}, not {given}")
    if dst.allocation is src.allocation:
        held = r.allocate(src.shape, src.dtype, Memory.sbuf, src.name)
        r.inserted["copy of what is shuffled in place"] += 1
        append_copy(r, lanes_tensor(r, held), lanes_tensor(r, src))
        src = held
    for first, source, count, step in _runs(mask, dst.shape[0], src.shape[0], src.name):
        part = src[source : source + 1].repeated((count, *src.shape[1:])) if step == 0 else src[source : source + count]
        copy(r, dst[first : first + count], part)


def _free(view: View) -> list[int]:
    return [d for d in range(view.ndim) if d or view.shape[0] > 1]


def _runs(mask: list[int], partitions: int, given: int, name: str) -> Iterator[tuple[int, int, int, int]]:
    """Split a shuffle into copies of adjacent partitions.

    A copy is the first partition of dst, the first of src, the number of partitions, and the step in src: 1, or 0 to
    repeat one partition.
    """
    pairs = [(p, p - p % GROUP + mask[p % GROUP]) for p in range(partitions) if mask[p % GROUP] != KEPT]
    for _, source in pairs:
        if not 0 <= source < given:
            raise ValueError(f"shuffle_mask must select from the {given} partitions of {name}, not {source}")
    while pairs:
        first, source = pairs[0]
        step = int(len(pairs) > 1 and pairs[1] == (first + 1, source + 1))
        count = next((n for n, pair in enumerate(pairs) if pair != (first + n, source + n * step)), len(pairs))
        yield first, source, count, step
        pairs = pairs[count:]


@instruction(
    CALLS, "expanded", "sums by the tensor engine, others between two transpositions; integers by DMA to one partition",
    result=lambda given: ((1, *given["data"].shape[1:]), reduced_type(given), Memory.sbuf),
)  # fmt: skip
def tensor_partition_reduce(r: Recording, dst: View, op, data: View) -> None:
    """Reduce data over its partitions by op."""
    average = name_of(op) == "average"
    kind, data = AluOp.ADD if average else operation(op), spread(r, data)
    place, source = lanes_tensor(r, dst), lanes_tensor(r, data)
    elements = source.size
    if place.partitions != 1 or place.size != elements:
        raise ValueError(f"{dst.name}: shape must be {(1, *data.shape[1:])}, not {dst.shape}")
    if kind not in (AluOp.ADD, AluOp.MAX, AluOp.MIN, AluOp.BITWISE_OR, AluOp.BITWISE_AND):
        names = "add, average, maximum, minimum, bitwise_or or bitwise_and"
        raise ValueError(f"op must be {names}, not {kind.name.lower()}")
    target = as_row(place)
    if target is None:
        r.inserted["row to dst"] += 1
        target = r.program.space.sbuf(place.name, place.format, (elements,), 1)
    reduced = r.program.space.sbuf(target.name, FP32, (elements,), 1) if average else target
    if not transposable(data.dtype.machine_format):
        _on_one_partition(r, reduced, source, kind)
    elif kind is AluOp.ADD:
        _summed(r, reduced, stationary_operand(r, data))
    else:
        _between_transpositions(r, reduced, stationary_operand(r, data), kind)
    if average:
        r.program.append(isa.tensor_scalar(target, reduced, 1 / source.partitions, AluOp.MULTIPLY))
    if as_row(place) is None:
        append_copy(r, place, target.reshape(*place.shape))


def _summed(r: Recording, target: Tensor, source: Tensor) -> None:
    # The ones must be in the source's partitions.
    column = ones(r, source.format, source.partition + source.partitions)[source.partition :]
    for part in cut(0, source.size, r.program.config.psum_words):
        sums = r.program.space.psum(target.name, FP32, (length(part),), 1)
        r.program.append(load_stationary(column[:, :1]))
        for half in (0, 1) if source.format is FP32 else (0,):
            r.program.append(multiply_moving(sums, source[:, part], half=half, accumulate=half > 0))
        append_copy(r, target[:, part], sums)


def _between_transpositions(r: Recording, target: Tensor, source: Tensor, op: AluOp) -> None:
    """Append a reduction of source by op over its partitions: transpose, reduce, transpose the column back."""
    lanes, space = source.partitions, r.program.space
    for part in cut(0, source.size, r.program.lanes):
        turned = space.psum(target.name, FP32, (lanes,), length(part))
        transposed(r, turned, source[:, part])
        reduced = space.sbuf(target.name, source.format, (1,), length(part))
        r.program.append(isa.tensor_reduce(reduced, turned, op))
        row = space.psum(target.name, FP32, (length(part),), 1)
        transposed(r, row, reduced)
        append_copy(r, target[:, part], row)


def _on_one_partition(r: Recording, target: Tensor, source: Tensor, op: AluOp) -> None:
    lanes = source.partitions
    row = as_row(source)
    source = in_sbuf(r, source, "elements side by side").reshape(source.size) if row is None else row
    held = r.program.space.sbuf(target.name, source.format, (lanes, source.size), 1)
    r.inserted["partitions to one"] += 1
    for p in range(lanes):
        r.program.append(dma_copy(held[:, p], source[p : p + 1]), next(r.program.loads))
    target = same_bits(target, target.format, op, source.format)
    r.program.append(isa.tensor_reduce(target, held.permute(1, 0), op))

"""The DMA engines' instructions as functions: tensors in, one `DmaCopy` out. On chip the partitions are the first
dimension of a tensor."""

from dataclasses import replace

from neuroncore_rtl.kernels.program.operands import check_on_chip
from neuroncore_rtl.kernels.program.source import located
from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor
from neuroncore_rtl.spec.formats import INT32, UINT32
from neuroncore_rtl.spec.isa import DmaCopy, DmaIndex

__all__ = ["dma_copy", "dma_gather", "dma_scatter"]


@located
def dma_copy(dst: Tensor | HbmTensor, src: Tensor | HbmTensor, order: tuple[int, ...] | None = None) -> DmaCopy:
    """dst = src, cast if the formats differ.

    Arguments:
        dst, src: tensors; src is broadcast to dst by the rules of numpy.
        order: for each dimension of dst that of src which goes along it, such as (1, 0) for a transposition; None:
            the same one.
    """
    for tensor in (dst, src):
        if not isinstance(tensor, Tensor | HbmTensor):
            raise ValueError(f"what is copied must be a tensor, not {tensor!r}")
    shape, to = dst.copied()
    counts, of = src.copied()
    order = tuple(range(len(counts))) if order is None else order
    if sorted(order) != list(range(len(counts))):
        raise ValueError(f"order must be one of the {len(counts)} dimensions of {src.name} each, not {order!r}")
    counts, steps = [counts[d] for d in order], [of.steps[d] for d in order]
    missing = len(shape) - len(counts)
    if missing < 0 or any(n not in (1, m) for n, m in zip(counts, shape[missing:], strict=True)):
        raise ValueError(f"{src.name}: shape must broadcast to {shape!r} of {dst.name}, not {tuple(counts)!r}")
    steps = [0] * missing + [step if n > 1 else 0 for n, step in zip(counts, steps, strict=True)]
    axis = None if of.axis is None else missing + order.index(of.axis)
    return DmaCopy(shape=shape, dst=to, src=replace(of, steps=tuple(steps), axis=axis))


def dma_gather(dst: Tensor, table: HbmTensor, rows: Tensor, *, skip: bool = False) -> DmaCopy:
    """dst[i] = table[rows[i]].

    Arguments:
        dst: on chip.
        table: in HBM.
        rows: INT32 or UINT32, one a partition of as many partitions as dst's first dimension has.
        skip: where a number is none of a row, negative ones included, dst stays as it is; else that is an error when
            the program runs.
    """
    return _indexed(dst, table, rows, skip, gather=True)


def dma_scatter(table: HbmTensor, src: Tensor, rows: Tensor, *, skip: bool = False) -> DmaCopy:
    """table[rows[i]] = src[i]; of rows with the same number the last one stays. Arguments as of `dma_gather`."""
    return _indexed(src, table, rows, skip, gather=False)


@located
def _indexed(tensor: Tensor, table: HbmTensor, rows: Tensor, skip: bool, *, gather: bool) -> DmaCopy:
    check_on_chip(tensor)
    check_on_chip(rows)
    shape, near = tensor.copied()
    counts, far = table.copied()
    if counts[1:] != shape[1:]:
        raise ValueError(f"{table.name}: rows must have the shape {shape[1:]!r} of {tensor.name}, not {counts[1:]!r}")
    if rows.pointer().format not in (INT32, UINT32) or rows.partitions != shape[0]:
        found = f"{rows.partitions} of {rows.format.name}"
        raise ValueError(f"{rows.name}: row numbers must be {shape[0]} partitions of int32 or uint32, not {found}")
    index = DmaIndex(address=rows.address, partition=rows.partition, limit=counts[0], skip=skip)
    if gather:
        return DmaCopy(shape=shape, dst=near, src=far, gather=index)
    return DmaCopy(shape=shape, dst=far, src=near, scatter=index)

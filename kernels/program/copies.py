"""DMA instructions as functions: tensors in, one `DmaCopy` out.

The first dimension of a tensor on chip is its partitions.
"""

from dataclasses import replace

from neuroncore_rtl.kernels.program.operands import check_on_chip
from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.spec.formats import INT32, UINT32
from neuroncore_rtl.spec.isa import DmaCopy, DmaIndex

__all__ = ["dma_copy", "dma_gather", "dma_scatter"]


@located
def dma_copy(dst: Tensor | HbmTensor, src: Tensor | HbmTensor, order: tuple[int, ...] | None = None) -> DmaCopy:
    """Return `dst` = src, cast if the formats differ.

    src broadcasts to dst by numpy's rules. `order` first permutes the dimensions of src, such as (1, 0) for a
    transposition.
    """
    for tensor in (dst, src):
        if not isinstance(tensor, Tensor | HbmTensor):
            raise ValueError(f"the operands of a copy must be tensors, not {tensor!r}")
    shape, to = dst.dma_operand()
    counts, of = src.dma_operand()
    order = tuple(range(len(counts))) if order is None else order
    if sorted(order) != list(range(len(counts))):
        raise ValueError(f"order must be a permutation of the {len(counts)} dimensions of {src.name}, not {order!r}")
    counts, steps = [counts[d] for d in order], [of.steps[d] for d in order]
    missing = len(shape) - len(counts)
    if missing < 0 or any(n not in (1, m) for n, m in zip(counts, shape[missing:], strict=True)):
        raise ValueError(f"{src.name}: shape must broadcast to {shape!r} of {dst.name}, not {tuple(counts)!r}")
    steps = [0] * missing + [step if n > 1 else 0 for n, step in zip(counts, steps, strict=True)]
    axis = None if of.axis is None else missing + order.index(of.axis)
    return DmaCopy(shape=shape, dst=to, src=replace(of, steps=tuple(steps), axis=axis))


@located
def dma_gather(dst: Tensor, table: HbmTensor, rows: Tensor, *, skip: bool = False) -> DmaCopy:
    """Return `dst`[i] = table[rows[i]].

    The row numbers, INT32 or UINT32, are one per partition of dst. If one is out of range, `skip` keeps dst[i];
    otherwise it is a run-time error.
    """
    return _indexed(dst, table, rows, skip, gather=True)


@located
def dma_scatter(table: HbmTensor, src: Tensor, rows: Tensor, *, skip: bool = False) -> DmaCopy:
    """Return `table`[rows[i]] = src[i]; the last write to a row remains.

    Row numbers and `skip` are as in `dma_gather`.
    """
    return _indexed(src, table, rows, skip, gather=False)


@located
def _indexed(tensor: Tensor, table: HbmTensor, rows: Tensor, skip: bool, *, gather: bool) -> DmaCopy:
    check_on_chip(tensor)
    check_on_chip(rows)
    shape, near = tensor.dma_operand()
    counts, far = table.dma_operand()
    if counts[1:] != shape[1:]:
        raise ValueError(f"{table.name}: rows must have the shape {shape[1:]!r} of {tensor.name}, not {counts[1:]!r}")
    if rows.pointer().format not in (INT32, UINT32) or rows.partitions != shape[0]:
        found = f"{rows.partitions} of {rows.format.name}"
        raise ValueError(f"{rows.name}: row numbers must be {shape[0]} partitions of int32 or uint32, not {found}")
    index = DmaIndex(address=rows.address, partition=rows.partition, limit=counts[0], skip=skip)
    if gather:
        return DmaCopy(shape=shape, dst=near, src=far, gather=index)
    return DmaCopy(shape=shape, dst=far, src=near, scatter=index)

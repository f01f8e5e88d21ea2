"""Calls that look up on-chip elements by indices in SBUF: DMA engines gather them from a copy of the tensor in HBM."""

from neuroncore_rtl.frontends.nki.dialects.isa_move import copy
from neuroncore_rtl.frontends.nki.indices.affine import Affine
from neuroncore_rtl.frontends.nki.indices.dtypes import DTYPES
from neuroncore_rtl.frontends.nki.indices.numbers import Numbers
from neuroncore_rtl.frontends.nki.indices.storage import Memory
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.calls import Call, instruction, like
from neuroncore_rtl.frontends.nki.lowering.engines import append_copy
from neuroncore_rtl.frontends.nki.lowering.operands import common, lanes_tensor, scalar
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import dma_copy
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.isa import AluOp, Index

__all__ = ["CALLS"]

CALLS: dict[str, Call] = {}

GROUP = 16
"""Partitions that share their indices in `local_gather`."""

WIDTHS = (1, 2, 4, 8, 16, 32)


def _as_indices(given: dict) -> tuple:
    return given["indices"].shape, given["data"].dtype, Memory.sbuf


@instruction(
    CALLS, "expanded", "through a table in HBM, one DMA gather per column of indices", result=_as_indices,
    like="indices", rows=("data",),
)  # fmt: skip
def nc_n_gather(r: Recording, dst: View, data: View, indices: View) -> None:
    """Gather, in each partition, the elements of data at that partition's indices."""
    _gathered(r, dst, data, _whole_numbers(r, indices), 1)


def _of_groups(given: dict) -> tuple:
    index, width = given["index"], given.get("num_elem_per_idx", 1)
    count = given.get("num_valid_indices")
    whole = count is None or count * index.shape[0] == GROUP * index.size
    free = (*index.shape[1:], GROUP) if whole else (count,)
    return (index.shape[0], *free, width), given["src_buffer"].dtype, Memory.sbuf


@instruction(
    CALLS, "expanded", "through a table in HBM, one DMA gather per index of a group", result=_of_groups,
    like="src_buffer",
)  # fmt: skip
def local_gather(
    r: Recording, dst: View, src_buffer: View, index: View, num_elem_per_idx=1, num_valid_indices=None
) -> None:
    """Gather, in each partition of a group of 16, the elements at the indices of all 16 partitions, in their order."""
    rows, columns = index.shape[0], index.size // index.shape[0]
    if rows % GROUP or src_buffer.shape[0] != rows:
        rule = f"partitions must be a multiple of {GROUP}, and equal to those of {src_buffer.name}"
        raise ValueError(f"{index.name}: {rule}, not {rows} and {src_buffer.shape[0]}")
    if num_elem_per_idx not in WIDTHS:
        raise ValueError(f"{index.name}: num_elem_per_idx must be one of {WIDTHS}, not {num_elem_per_idx}")
    count = GROUP * columns if num_valid_indices is None else num_valid_indices
    if not 0 < count <= GROUP * columns:
        raise ValueError(f"{index.name}: num_valid_indices must be from 1 to {GROUP * columns}, not {count}")
    own = _whole_numbers(r, index)
    spread = r.allocate((rows, GROUP * columns), own.dtype, Memory.sbuf, f"{index.name} in each partition")
    r.inserted["indices to each partition of a group"] += rows // GROUP
    for first in range(0, rows, GROUP):
        near, far = (lanes_tensor(r, view[first : first + GROUP]) for view in (spread, own))
        r.program.append(dma_copy(near.reshape(columns, GROUP), far, (1, 0)), next(r.program.loads))
    _gathered(r, dst, src_buffer, spread[:, :count], num_elem_per_idx)


@instruction(CALLS, "expanded", "tensor_copy with an index in memory, through a table in HBM", result=like("src"),
             like="src")  # fmt: skip
def tensor_copy_dynamic_src(r: Recording, dst: View, src: View) -> None:
    """Copy to dst the part of src that an index in memory selects at run time."""
    copy(r, dst, src)


@instruction(CALLS, "expanded", "tensor_copy with an index in memory, through a table in HBM", result=None, like="src")
def tensor_copy_dynamic_dst(r: Recording, dst: View, src: View) -> None:
    """Copy src to the part of dst that an index in memory selects at run time."""
    copy(r, dst, src)


def _whole_numbers(r: Recording, indices: View) -> View:
    if indices.dtype.is_float:
        raise ValueError(f"{indices.name}: indices must be integers, not {indices.dtype}")
    whole = r.allocate(indices.shape, DTYPES["int32"], Memory.sbuf, indices.name)
    r.inserted["indices of 32 bits"] += 1
    append_copy(r, *common(r, indices.shape, whole, indices))
    return whole.reshape(indices.shape[0], -1)


def _gathered(r: Recording, dst: View, data: View, indices: View, width: int) -> None:
    """Append dst = `width` elements from each index on, in each partition of data.

    The table in HBM contains one partition after the other, so the start of each partition is added to its indices.
    """
    rows, count = indices.shape
    each = data.size // data.shape[0]
    if not data.allocation.memory.on_chip or data.shape[0] != rows or dst.size != rows * count * width:
        rule = f"must be on chip with {rows} partitions, and dst must have {count * width} elements per partition"
        raise ValueError(f"{data.name}: the table {rule}, not {data.shape} and {dst.shape}")
    table = r.allocate(data.shape, data.dtype, Memory.private_hbm, f"{data.name} in HBM")
    copy(r, table, data)
    begin, places = (r.allocate((rows, n), indices.dtype, Memory.sbuf, "rows of the table") for n in (1, count))
    r.program.append(isa.iota(lanes_tensor(r, begin), Index(partition=each, steps=(0,))))
    target, source = common(r, indices.shape, places, indices)
    r.program.append(isa.tensor_scalar(target, source, scalar(r, begin, rows), AluOp.ADD))
    r.inserted["table in HBM"] += 1
    shape = rows, count, width
    flat = Affine(shape, (0, 0, 0))
    numbers = Numbers(places.picked([0, 1, None]).repeated(shape), 1, rows * each - width + 1)
    found = r.tensor(
        allocation=table.allocation, dtype=table.dtype, shape=shape, element=Affine(shape, (0, 0, 1)), partition=flat,
        block=flat, numbers=numbers,
    )  # fmt: skip
    try:
        near = dst.reshape(shape)
    except ValueError:
        # dst has no constant step: gather to a tile, which an engine then copies.
        tile = r.allocate(dst.shape, dst.dtype, Memory.sbuf, dst.name)
        copy(r, tile.reshape(shape), found)
        append_copy(r, *common(r, dst.shape, dst, tile))
    else:
        copy(r, near, found)

"""Calls of the DMA engines."""

import numpy as np

from neuroncore_rtl.frontends.nki.dialects.isa_tensor import stationary_operand, transposable, transposed
from neuroncore_rtl.frontends.nki.indices.dtypes import DTYPES, promoted
from neuroncore_rtl.frontends.nki.indices.storage import Memory
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.arithmetic import append_operations
from neuroncore_rtl.frontends.nki.lowering.calls import Call, at_least_2d, instruction
from neuroncore_rtl.frontends.nki.lowering.engines import append_copy
from neuroncore_rtl.frontends.nki.lowering.integers import Step
from neuroncore_rtl.frontends.nki.lowering.operands import common, lanes_tensor, one_source_in_psum, spread
from neuroncore_rtl.frontends.nki.lowering.operators import operation
from neuroncore_rtl.frontends.nki.lowering.pairing import paired_for_dma
from neuroncore_rtl.frontends.nki.lowering.strided import strided
from neuroncore_rtl.frontends.nki.lowering.tables import in_table, table_of, whole_block
from neuroncore_rtl.frontends.nki.lowering.truth import truth_of
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import dma_copy as copied
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["CALLS", "combine", "copy", "skips"]

CALLS: dict[str, Call] = {}

TURNED = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}
"""Source dimension of each dimension of a transposed tensor, by rank."""


@instruction(
    CALLS, "expanded", "one copy per KiB of a partition; a transposed copy by the tensor engine",
    result=lambda given: (at_least_2d(given["src"].shape), given["src"].dtype, Memory.sbuf), like="src",
)  # fmt: skip
def dma_copy(r: Recording, dst: View, src: View, dst_rmw_op=None, unique_indices=True, oob_mode=None) -> None:
    """Copy src to dst between HBM, SBUF and PSUM with a cast; or compute dst = dst_rmw_op(dst, src).

    With dst_rmw_op and indices in memory, the indices must be unique.
    """
    if dst_rmw_op is None:
        copy(r, dst, src, skip=skips(oob_mode))
    else:
        combine(r, dst, [dst, src], operation(dst_rmw_op), skips(oob_mode))


@instruction(
    CALLS, "expanded", "loads, tensor_tensor, a store; indices as for atomic_rmw",
    result=None, like="dst",
)  # fmt: skip
def dma_compute(r: Recording, dst: View, srcs, reduce_op, scales=None, unique_indices=True, oob_mode=None) -> None:
    """Compute dst = the sum of the tensors srcs, in HBM or SBUF."""
    if operation(reduce_op) is not AluOp.ADD or not unique_indices or any(scale != 1 for scale in scales or ()):
        rule = "reduce_op must be add, scales 1.0, and indices unique"
        raise ValueError(f"{dst.name}: {rule}, not {operation(reduce_op).name.lower()}, {scales}, {unique_indices}")
    if isinstance(srcs, View) or not srcs:
        raise ValueError(f"{dst.name}: srcs must be one tensor or more, not {srcs!r}")
    combine(r, dst, [r.resolved(src) for src in srcs], AluOp.ADD, skips(oob_mode))


def _turned(given: dict) -> tuple:
    src = given["src"]
    return tuple(src.shape[d] for d in _order(src, given.get("axes"))), src.dtype, Memory.sbuf


@instruction(
    CALLS, "expanded", "by the tensor engine, one tile per index of the middle dimensions; integers by DMA",
    result=_turned, like="src",
    along=lambda given, dst: _order(given["src"], given.get("axes")),
)  # fmt: skip
def dma_transpose(r: Recording, dst: View, src: View, axes=None, oob_mode=None) -> None:
    """Copy src to dst with the first and the last dimension exchanged."""
    if src.is_indirect():
        raise ValueError(f"{src.name}: NeuronCore-v2 cannot transpose indexed rows: gather them by dma_copy")
    order = _order(src, axes)
    if dst.shape != tuple(src.shape[d] for d in order):
        raise ValueError(f"{dst.name}: shape must be {src.shape} permuted by {order}, not {dst.shape}")
    for between in np.ndindex(src.shape[1:-1]):
        part = (slice(None), *between, slice(None))
        near = src[part] if src.lanes is not None else src[part].permuted((1, 0))
        copy(r, dst[part], near, turned=src.lanes is not None)


def _order(src: View, axes) -> tuple[int, ...]:
    order = TURNED.get(src.ndim)
    if order is None or (axes is not None and tuple(axes) != order):
        rule = "a transposed tensor must have 2, 3 or 4 dimensions, axes (1, 0), (2, 1, 0) or (3, 1, 2, 0)"
        raise ValueError(f"{src.name}: {rule}, not {src.shape}, {axes}")
    return order


def skips(mode) -> bool:
    """Return whether `oob_mode` skips indices out of bounds; otherwise they are run-time errors."""
    name = getattr(mode, "value", mode)
    if name not in (None, "error", "skip"):
        raise ValueError(f"oob_mode must be error or skip, not {mode!r}")
    return name == "skip"


def combine(r: Recording, dst: View, srcs: list[View], op: AluOp, skip: bool = False) -> None:
    """Append dst = op(op(srcs[0], srcs[1]), ...) on chip; operands and dst in HBM are loaded and stored."""
    shape = at_least_2d(dst.shape)
    if shape[0] > r.program.lanes and not any(view.is_indirect() for view in (dst, *srcs)):
        dst, *srcs = (view.fitted(shape) for view in (dst, *srcs))
        for rows in cut(0, shape[0], r.program.lanes):
            combine(r, dst[rows], [src[rows] for src in srcs], op, skip)
        return
    is_direct = dst.allocation.memory.on_chip and not dst.dtype.is_truth
    total, *terms = (_on_chip(r, src, shape, skip) for src in srcs)
    for number, term in enumerate(terms, start=1):
        types = [view.dtype for view in (dst, total, term)]
        wide = DTYPES["float32" if any(dtype.is_float for dtype in types) else "uint32"]
        dtype = dst.dtype if number == len(terms) and not dst.dtype.is_truth else promoted(*types, wide)
        is_dst = is_direct and number == len(terms)
        target = dst.fitted(shape) if is_dst else r.allocate(shape, dtype, Memory.sbuf, dst.name)
        into, a, b = common(r, shape, target, total, term)
        a, b = one_source_in_psum(r, a, b)
        append_operations(r, target, into, a, Step(op, b, whole=True))
        total = target
    if not (terms and is_direct):
        copy(r, dst, total, skip=skip)


def _on_chip(r: Recording, src: View, shape: tuple[int, ...], skip: bool) -> View:
    if src.allocation.memory.on_chip:
        return src.fitted(shape)
    tile = r.allocate(shape, src.dtype, Memory.sbuf, src.name)
    r.inserted["copy to combine"] += 1
    copy(r, tile, src, skip=skip)
    return tile


def copy(r: Recording, dst: View, src: View, turned: bool = False, skip: bool = False) -> None:
    """Append dst = src, or src.T on chip if `turned`; if `skip`, skip indices out of bounds."""
    if turned:
        _transpose_on_chip(r, dst, src)
        return
    if dst.size < src.size or (dst.size == src.size and len(dst.shape) != len(src.shape)):
        shape = dst.shape if dst.lanes is not None else src.shape
    else:
        shape = dst.shape
    dst, src = paired_for_dma(shape, dst, src)
    if dst.dtype.is_truth and src.allocation.memory.on_chip and not src.is_indirect():
        src = truth_of(r, src)
    if dst.dtype.is_truth and not dst.allocation.memory.on_chip and not src.dtype.is_truth:
        raise ValueError(f"{dst.name}: a bool_ tensor in HBM must get {src.dtype} from a tile: load {src.name} first")
    on_chip = [view for view in (dst, src) if view.allocation.memory.on_chip]
    if any(view.is_indirect() for view in on_chip):
        _by_way_of_hbm(r, dst, src, skip)
    elif skip and src.is_indirect() and dst.allocation.memory.on_chip:
        _skipping(r, dst, src)
    elif len(on_chip) == 1 and _is_turned(on_chip[0], dst if on_chip[0] is src else src):
        _through_tensor_engine(r, dst, src)
    elif len(on_chip) == 1 and _is_slow(r, on_chip[0], dst if on_chip[0] is src else src):
        _through_vector_engine(r, dst, src, skip)
    else:
        strided(r, dst, src, skip)


def _skipping(r: Recording, dst: View, src: View) -> None:
    """Append a load that skips rows with an index out of bounds; a new dst is zeroed first.

    A tensor from before a loop is not zeroed, because later iterations keep what earlier ones have loaded.
    """
    block = dst.one_block()
    if dst.allocation.is_new(block) and not _is_before_loop(r, dst):
        r.inserted["zeros behind skipped rows"] += 1
        dst.allocation.zeros.add(block)
    strided(r, dst, src, skip=True)


def _by_way_of_hbm(r: Recording, dst: View, src: View, skip: bool) -> None:
    if src.is_indirect() and src.allocation.memory.on_chip:
        copy(r, dst, in_table(src, table_of(r, src)), skip=skip)
        return
    if dst.allocation.is_new(dst.one_block()):
        if _is_before_loop(r, dst):
            rule = "a tensor written at an index in memory must be written before the loop, such as by nisa.memset"
            raise ValueError(f"{dst.name}: {rule}")
        dst.allocation.zeros.add(dst.one_block())
    table = table_of(r, dst)
    copy(r, in_table(dst, table), src, skip=skip)
    copy(r, whole_block(r, dst), table)


def _is_before_loop(r: Recording, view: View) -> bool:
    return bool(r.loops) and view.allocation in r.loops[-1].outside


def _is_slow(r: Recording, near: View, far: View) -> bool:
    """Return whether a DMA copy would move one element per cycle, so that a prior copy by the vector engine is faster.

    This holds for PSUM, for conversions, and for elements that are not contiguous.
    """
    if near.lanes != 0 or near.ndim < 2 or near.shape[0] == 1 or near.partition.start % r.program.config.quadrant:
        return False
    inner = [step for n, step in zip(near.shape[1:], near.element.steps[1:], strict=True) if n > 1]
    if not inner or not near.partition.steps[0]:
        return False
    return near.allocation.memory is Memory.psum or near.dtype != far.dtype or inner[-1] != 1


def _through_vector_engine(r: Recording, dst: View, src: View, skip: bool) -> None:
    """Append a copy between HBM and the chip through an SBUF tile with the type and order of the HBM tensor."""
    near, far = (dst, src) if dst.allocation.memory.on_chip else (src, dst)
    tile = r.allocate(near.shape, far.dtype, Memory.sbuf, near.name)
    if near is dst:
        strided(r, tile, src)
        r.inserted["copy behind a load"] += 1
        append_copy(r, *common(r, near.shape, dst, tile))
    else:
        r.inserted["copy before a store"] += 1
        append_copy(r, *common(r, near.shape, tile, src))
        strided(r, dst, tile, skip)


def _is_turned(near: View, far: View) -> bool:
    """Return whether a copy is efficient only with a transposition: the partitions of `near` are along rows of HBM."""
    if near.lanes != 0 or near.ndim != 2 or not all(transposable(view.dtype.machine_format) for view in (near, far)):
        return False
    if far.is_indirect():
        return False
    rows, columns = near.shape
    return rows > 1 and columns > 1 and far.element.steps[0] == 1 and far.element.steps[1] > 1


def _through_tensor_engine(r: Recording, dst: View, src: View) -> None:
    """Append a copy of whole rows between HBM and the chip, which the tensor engine transposes."""
    loads = dst.allocation.memory.on_chip
    near, far = (dst, src) if loads else (src, dst)
    size, space = r.program.lanes, r.program.space
    for part in cut(0, near.shape[1], size):
        own, theirs = near[:, part], far[:, part].permuted((1, 0))
        rows, width = theirs.shape
        held = r.allocate((rows, width), far.dtype, Memory.sbuf, near.name)
        r.inserted["transposition by the tensor engine"] += 1
        if loads:
            strided(r, held, theirs)
            sums = space.psum(near.name, FP32, (rows,), width)
            transposed(r, sums, stationary_operand(r, held))
            append_copy(r, lanes_tensor(r, own), sums)
        else:
            sums = space.psum(near.name, FP32, (width,), rows)
            transposed(r, sums, stationary_operand(r, own))
            append_copy(r, lanes_tensor(r, held), sums)
            strided(r, theirs, held)


def _transpose_on_chip(r: Recording, dst: View, src: View) -> None:
    if not dst.allocation.memory.on_chip:
        copy(r, dst.permuted((1, 0)), src)
        return
    if not transposable(src.dtype.machine_format):
        r.inserted["transposition by DMA"] += 1
        source = lanes_tensor(r, spread(r, src))
        r.program.append(copied(lanes_tensor(r, dst), source, (1, 0)), next(r.program.loads))
        return
    rows, columns = src.shape
    size = r.program.lanes
    for part in cut(0, columns, size):
        sums = r.program.space.psum(dst.name, FP32, (rows,), length(part))
        transposed(r, sums, stationary_operand(r, src[:, part]))
        append_copy(r, lanes_tensor(r, dst[part, :]), sums)

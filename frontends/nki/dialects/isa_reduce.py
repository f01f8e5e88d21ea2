"""Calls of the vector engine over many elements: reductions, statistics, searches."""

from math import prod
from numbers import Integral
from typing import Any

from neuroncore_rtl.frontends.nki.indices.dtypes import DTYPES, DType
from neuroncore_rtl.frontends.nki.indices.storage import Memory
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.calls import Call, instruction, like
from neuroncore_rtl.frontends.nki.lowering.engines import append_copy
from neuroncore_rtl.frontends.nki.lowering.integers import Step, append_integers, same_bits
from neuroncore_rtl.frontends.nki.lowering.operands import common, mark_written, one_source_in_psum
from neuroncore_rtl.frontends.nki.lowering.operators import name_of, operation
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.formats import UINT32
from neuroncore_rtl.spec.isa.alu import AluOp
from neuroncore_rtl.spec.isa.elementwise.opcode import STATS_ELEMENTS

__all__ = ["CALLS", "axes_of", "kept_shape", "reduced_type"]

CALLS: dict[str, Call] = {}


def axes_of(view: View, axis) -> tuple[int, ...]:
    """Return the reduced dimensions, ascending; ValueError if they are not free dimensions."""
    axes = sorted({int(a) % view.ndim if -view.ndim <= a < view.ndim else -1 for a in _several(axis)})
    if not axes or axes[0] < 1:
        raise ValueError(f"{view.name}: axis must be of the free dimensions, 1 to {view.ndim - 1}, not {axis!r}")
    return tuple(axes)


def kept_shape(view: View, axis, keepdims: bool = False) -> tuple[int, ...]:
    """Return the shape of a reduction's result, at least [partitions, 1]."""
    axes = axes_of(view, axis)
    shape = tuple(1 if d in axes else n for d, n in enumerate(view.shape))
    if keepdims:
        return shape
    left = tuple(n for d, n in enumerate(shape) if d not in axes)
    return (*left, 1) if len(left) == 1 else left


def _several(axis) -> tuple[int, ...]:
    axes: tuple[Any, ...] = (axis,) if isinstance(axis, Integral) else tuple(axis)
    return axes


def _reduced(given: dict) -> tuple:
    shape = kept_shape(given["data"], given["axis"], given.get("keepdims", False))
    return shape, reduced_type(given), Memory.sbuf


def reduced_type(given: dict) -> DType:
    """Return the type of a reduction's result: int32 for sums, products and negatives of truth values."""
    dtype, counts = given["data"].dtype, given.get("negate") or name_of(given["op"]) in ("add", "multiply")
    return DTYPES["int32"] if dtype.is_truth and counts else dtype


def _dst_axes(given: dict, dst: View) -> tuple[int | None, ...] | None:
    """Return, for each dimension of dst, the corresponding dimension of data; None for a dimension of one element."""
    data = given["data"]
    axes = axes_of(data, given["axis"])
    if dst.ndim == data.ndim and all(dst.shape[d] == 1 for d in axes):
        return tuple(None if d in axes else d for d in range(data.ndim))
    kept = tuple(d for d in range(data.ndim) if d not in axes)
    return (*kept, *(None,) * (dst.ndim - len(kept))) if dst.ndim >= len(kept) else None


@instruction(CALLS, result=_reduced, along=_dst_axes)
def tensor_reduce(r: Recording, dst: View, op, data: View, axis, negate=False, keepdims=False) -> None:
    """Reduce the free dimensions `axis` of data by op; `negate` inverts the sign of the result."""
    axes = axes_of(data, axis)
    kept = [d for d in range(data.ndim) if d not in axes]
    turned = data.permuted((*kept, *axes))
    shape = tuple(data.shape[d] for d in kept)
    wide = dst.fitted((*shape, *(1,) * len(axes))).repeated(turned.shape)
    target, source = common(r, turned.shape, wide, turned)
    count, inner = prod(data.shape[d] for d in axes), 1
    depth = len(source.shape)
    while inner < count:
        depth -= 1
        inner *= source.shape[depth]
    if inner != count:
        raise ValueError(f"{data.name}: reduced dimensions must be separable from the others, not {axes}")
    few = max(1, len(source.shape) - depth)
    result = target[(slice(None), *(slice(None),) * depth, *(0,) * (len(source.shape) - depth))]
    if count == 1:
        source = source.reshape(*source.shape, 1)
    if negate and source.format is UINT32 and not result.format.is_float:
        result = result.reshape(*result.shape, *(1,) * few)
        whole = r.program.space.sbuf(dst.name, UINT32, result.shape, result.partitions)
        r.program.append(isa.tensor_reduce(whole, source, operation(op), few))
        r.inserted["negative of an unsigned result"] += 1
        append_integers(r, result, dst.dtype.machine_format, whole, Step(AluOp.MULTIPLY, -1))
        return
    result = same_bits(result, dst.dtype.machine_format, operation(op), source.format)
    r.program.append(isa.tensor_reduce(result, source, operation(op), few, negate=bool(negate)))


@instruction(CALLS, result=lambda given: ((given["data"].shape[0], 6), DTYPES["float32"], Memory.sbuf), rows=("dst",))
def bn_stats(r: Recording, dst: View, data: View) -> None:
    """Write count, mean, variance * count of the even elements of data to dst[0:3], and of the odd ones to dst[3:6]."""
    if prod(data.shape[1:]) > STATS_ELEMENTS:
        raise ValueError(f"{data.name}: elements must be at most {STATS_ELEMENTS}, not {prod(data.shape[1:])}")
    (target,), (source,) = common(r, dst.shape, dst), common(r, data.shape, data)
    r.program.append(isa.bn_stats(target, source))


@instruction(CALLS, result=lambda given: ((given["data"].shape[0], 2), given["data"].dtype, Memory.sbuf), rows=("dst",))
def bn_aggr(r: Recording, dst: View, data: View) -> None:
    """Write to dst[0:2] the mean and variance of all elements that triples in data summarise, see `bn_stats`."""
    (target,), (source,) = common(r, dst.shape, dst), common(r, data.shape, data)
    r.program.append(isa.bn_aggr(target, source))


@instruction(
    CALLS, result=lambda given: ((given["src"].shape[0], 8), given["src"].dtype, Memory.sbuf), like="src", rows=("dst",)
)
def max8(r: Recording, dst: View, src: View) -> None:
    """Write the largest 8 elements of src, descending, to dst[0:8]."""
    (target,), (source,) = common(r, dst.shape, dst), common(r, src.shape, src)
    r.program.append(isa.max8(target, source))


@instruction(
    CALLS, result=lambda given: ((given["data"].shape[0], 8), DTYPES["uint32"], Memory.sbuf), rows=("dst", "vals")
)
def nc_find_index8(r: Recording, dst: View, data: View, vals: View) -> None:
    """Write the position in data of vals[k] to dst[k], or a word with all bits 1 if data does not contain it."""
    (source,), (values,) = (common(r, view.shape, view) for view in (data, vals))
    _find(r, dst, *one_source_in_psum(r, source, values))


def _find(r: Recording, dst: View, source: Tensor, values: Tensor, step: int = 1) -> None:
    (target,), fmt = common(r, dst.shape, dst), dst.dtype.machine_format
    # PSUM's words are INT32, so a narrower type would lose the all-ones code of a missing position.
    held = target if target.format is fmt else r.program.space.sbuf(dst.name, fmt, target.shape, target.partitions)
    r.program.append(isa.find_index8(held[:, ::step], source, values[:, ::step]))
    if held is not target:
        r.inserted["positions to PSUM"] += 1
        append_copy(r, target, held)


@instruction(
    CALLS, "differs", "dst_idx by a separate search before, -1 for a missing value", result=like("data"),
    rows=("vals", "dst_idx"),
)  # fmt: skip
def nc_match_replace8(r: Recording, dst: View, data: View, vals: View, imm, dst_idx: View | None = None) -> None:
    """Replace, for each of vals, the first equal element of data by imm; write the positions of these to dst_idx."""
    target, source = common(r, dst.shape, dst, data)
    (values,) = common(r, vals.shape, vals)
    source, values = one_source_in_psum(r, source, values)
    if dst_idx is not None:
        # Search the values in reverse order: the last of several equal values must get the first position.
        _find(r, dst_idx, source, values, step=-1)
        mark_written(dst_idx)
    r.program.append(isa.match_replace8(target, source, values, imm))

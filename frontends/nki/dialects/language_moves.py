"""Functions of `nki.language` that move tiles, and assignment to parts of tensors."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Number

from neuroncore_rtl.frontends.nki.dialects.isa_elementwise import CALLS as ELEMENTWISE
from neuroncore_rtl.frontends.nki.dialects.isa_gather import CALLS as GATHER
from neuroncore_rtl.frontends.nki.dialects.isa_move import CALLS as MOVE
from neuroncore_rtl.frontends.nki.dialects.isa_move import copy as dma
from neuroncore_rtl.frontends.nki.dialects.isa_move import skips
from neuroncore_rtl.frontends.nki.dialects.language_functions import entering, is_column, isa_call
from neuroncore_rtl.frontends.nki.dialects.language_memory import full
from neuroncore_rtl.frontends.nki.indices.affine import Mask
from neuroncore_rtl.frontends.nki.indices.dtypes import dtype_of
from neuroncore_rtl.frontends.nki.indices.lines import from_kernel, kernel_line
from neuroncore_rtl.frontends.nki.indices.numpy_calls import NumpyCalls
from neuroncore_rtl.frontends.nki.indices.registers import VirtualRegister
from neuroncore_rtl.frontends.nki.indices.storage import Memory
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.calls import at_least_2d
from neuroncore_rtl.frontends.nki.lowering.loops import check_first_product
from neuroncore_rtl.frontends.nki.lowering.operands import mark_written
from neuroncore_rtl.frontends.nki.lowering.operators import operation
from neuroncore_rtl.frontends.nki.trace.recording import recording
from neuroncore_rtl.frontends.nki.trace.results import Pending
from neuroncore_rtl.kernels.source import SourceLine
from neuroncore_rtl.spec.isa import AluOp
from neuroncore_rtl.spec.isa.access import allowed_start

__all__ = ["MOVES_EXPANDED", "MOVE_FUNCTIONS", "accumulate_tile", "assign"]

MOVE_FUNCTIONS: dict[str, Callable] = {}

MOVES_EXPANDED: dict[str, str] = {}
"""Names of the instructions by function, for functions that become several instructions."""

_language = entering(MOVE_FUNCTIONS, MOVES_EXPANDED)

_copy, _dma_copy = isa_call(ELEMENTWISE["tensor_copy"]), isa_call(MOVE["dma_copy"])


@_language
def broadcast_to(x: View, shape, dtype=None):
    wide = x.broadcast_to(shape)
    if dtype is not None:
        return _copy(wide, dtype=dtype)
    simple = wide.ndim == 2 and wide.lanes == 0 and not wide.is_indirect()
    return recording().copied(wide) if simple and wide.allocation.memory.on_chip else wide


@_language
def expand_dims(x: View, axis):
    return x.expand_dim(axis)


@_language
def load(src: View, dtype=None, mask=None, mode=None):
    return _dma_copy(src, dtype=dtype, mask=mask, oob_mode=mode)


def _load_transpose2d(src: View, dtype=None, mask=None):
    current = recording()
    if src.ndim != 2:
        raise ValueError(f"{src.name}: a transposed tensor must have 2 dimensions, not {src.shape}")
    dtype = src.dtype if dtype is None else dtype_of(dtype)
    # The tensor engine transposes floating-point numbers exactly; the copy from PSUM casts.
    own = dtype if dtype.is_float and src.dtype.is_float else src.dtype
    shape = tuple(reversed(src.shape))
    result = current.allocate(shape, own, Memory.sbuf)
    part = src.masked(mask)

    def append(target: View) -> None:
        current.own(target, everything=False)
        target = target.fitted(shape)
        if target.allocation is result.allocation and (part is None or part.shape != src.shape):
            current.inserted["zeros beside a mask"] += 1
            target.allocation.zeros.add(target.one_block())
        if part is not None:
            rows, columns = (slice(0, n) for n in src.shape) if mask is None else mask.rectangle(src.shape)
            dma(current, target[columns, rows], part.permuted((1, 0)))
        mark_written(target)

    current.pending = Pending(
        result, append, kernel_line(), reads=(src,), whole=part is not None and part.shape == src.shape
    )
    return result if dtype == own else _copy(result, dtype=dtype)


_language(_load_transpose2d, "load_transpose2d", "dma_copy of rows, transposition by the tensor engine, copy from PSUM")


@_language
def store(dst: View, value, mask=None, mode=None):
    shape = dst.shape
    if not dst.size and (isinstance(value, Number) or value.shape == shape):
        return
    if isinstance(value, Number):
        tile = recording().allocate(at_least_2d(shape), dst.dtype, Memory.sbuf)
        ELEMENTWISE["memset"].run(tile, {"value": value}, None, None)
        value = tile
    if not isinstance(value, View):
        raise ValueError(f"value must be a tile or a number, not {value!r}")
    part, value = dst.masked(mask), value.fitted(shape).masked(mask, shape)
    if part is not None and value is not None:
        dma(recording(), part, value, skip=skips(mode))
        mark_written(part)


def _atomic_rmw(dst: View, value: View, op, mask=None):
    MOVE["dma_copy"].run(dst, {"src": value, "dst_rmw_op": op}, None, mask)


_language(_atomic_rmw, "atomic_rmw", "load, op, store: of rows with the same index only the last one has an effect")


def _gather_flattened(data: View, indices: View, axis=0, dtype=None):
    if axis != 0:
        raise ValueError(f"axis must be 0, not {axis!r}")
    result = recording().allocate(indices.shape, data.dtype, Memory.sbuf)
    GATHER["nc_n_gather"].run(result, {"data": data, "indices": indices}, None, None)
    return result if dtype is None or dtype_of(dtype) == data.dtype else _copy(result, dtype=dtype)


_language(_gather_flattened, "gather_flattened", "nc_n_gather")


@dataclass(frozen=True, eq=False, repr=False)
class LoopReduction(NumpyCalls):
    """Result of `nl.loop_reduce`: an assignment combines `term`, where `mask` holds, with its target by `op`.

    `indices` are those of the loops, `source` the kernel's line: an assignment with indices that this line has already
    combined with the same target starts a new reduction. `version` is that of the term's tensor.
    """

    term: View
    op: AluOp
    mask: Mask | None
    indices: tuple[int | VirtualRegister, ...]
    source: SourceLine
    version: int

    _way = "tile[...] = nl.loop_reduce(...), and then the tile"

    def combine(self, target: View) -> None:
        if self.term.allocation.version != self.version:
            raise ValueError(f"{self.term.name}: the term of a loop_reduce must not be written before the assignment")
        combined = recording().once(
            ("loop reduction", self.source, target.allocation, target.shape, *_place(target)), set
        )
        again = self.indices in combined
        is_first = again or not combined
        if again:
            combined.clear()
        combined.add(self.indices)
        if self.op is AluOp.ADD:
            self._add(target, again)
        elif is_first:
            assign(target, self.term)
        else:
            recording().flush()
            arguments = {"data1": target, "data2": recording().resolved(self.term), "op": self.op}
            ELEMENTWISE["tensor_tensor"].run(target, arguments, None, None)

    def _add(self, target: View, again: bool) -> None:
        current, block = recording(), target.one_block()
        if again and self.mask is None:
            assign(target, self.term)
            return
        if again:
            assign(target, 0)
        elif target.allocation.is_new(block) and block not in target.allocation.zeros:
            check_first_product(current, target.allocation, None, is_new=True)
            current.inserted["zeros of a sum over a loop"] += 1
            target.allocation.zeros.add(block)
        part, term = target.masked(self.mask, self.term.shape), self.term.masked(self.mask)
        if part is not None and term is not None:
            accumulate_tile(part, term)


def _loop_reduce(x: View, op, loop_indices, dtype=None, mask=None):
    op, mask = operation(op), None if mask is True else mask
    if op is not AluOp.ADD and (op not in (AluOp.MAX, AluOp.MIN) or mask is not None):
        rule = "op must be add, or max or min without a mask"
        raise ValueError(f"{rule}, not {op.name.lower()}" + f" with {mask!r}" * (mask is not None))
    indices = tuple(loop_indices)
    if op is not AluOp.ADD and not all(isinstance(index, Integral) for index in indices):
        raise ValueError(f"loop_indices of max or min must be integers, of loops with known bounds, not {indices!r}")
    return LoopReduction(x, op, mask, indices, kernel_line(), x.allocation.version)


_language(_loop_reduce, "loop_reduce", "an addition to the assignment's target, which starts from zero")


@from_kernel
def assign(target: View, value) -> None:
    """Write a value to a view: a pending result directly, any other value by a copy."""
    current = recording()
    target = current.with_index(target)
    if isinstance(value, LoopReduction):
        current.own(target, everything=False)
        value.combine(target)
        return
    if isinstance(value, View):
        if _are_same(target, value) or current.assign(target, value):
            return
        current.flush()
        value = current.resolved(value)
        if _are_same(target, value):
            return
        near = all(view.allocation.memory.on_chip for view in (target, value))
        if not (near and _starts_quadrant(target) and _starts_quadrant(value)):
            current.own(target, everything=True)
            dma(current, target, value)
            mark_written(target)
            return
        ELEMENTWISE["tensor_copy"].run(target, {"src": value}, None, None)
    elif _starts_quadrant(target):
        ELEMENTWISE["memset"].run(target, {"value": value}, None, None)
    else:
        assign(target, full(at_least_2d(target.shape), value, target.dtype))


def _are_same(one: View, other: View) -> bool:
    same = one.allocation is other.allocation and one.numbers is other.numbers
    return same and (one.shape, one.dtype, _place(one)) == (other.shape, other.dtype, _place(other))


def _place(view: View) -> tuple:
    return tuple((axis.start, axis.steps) for axis in (view.element, view.partition, view.block))


def _starts_quadrant(view: View) -> bool:
    """Return whether an engine can access a view: its first partition starts a quadrant. Otherwise DMA must copy."""
    config, first = recording().program.config, view.partition.start
    count = 1 if view.lanes is None else view.shape[view.lanes]
    return first % config.quadrant == 0 and allowed_start(first, count, config.quadrant) is None


@from_kernel
def accumulate_tile(target: View, value) -> View:
    """Add a value to a view: a pending product accumulates directly, other values need an instruction."""
    current = recording()
    target = current.with_index(target)
    if target.repeats_partition():
        return current.calls["add"](target, value)  # as the new tile that nl.broadcast_to returns
    in_psum = target.allocation.memory is Memory.psum
    if isinstance(value, View) and in_psum and current.assign(target, value, accumulate=True):
        return target
    current.flush()
    if not isinstance(value, View) or is_column(value, target):
        ELEMENTWISE["tensor_scalar"].run(target, {"data": target, "op0": "add", "operand0": value}, None, None)
    else:
        arguments = {"data1": target, "data2": current.resolved(value), "op": "add"}
        ELEMENTWISE["tensor_tensor"].run(target, arguments, None, None)
    return target

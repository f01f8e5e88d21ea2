"""Functions of `nki.language` on tiles: each becomes the instruction that does the same."""

import operator as python
from collections.abc import Callable
from dataclasses import dataclass
from math import fmod, prod
from numbers import Number

from neuroncore_rtl.frontends.nki.dialects.isa_elementwise import CALLS as ELEMENTWISE
from neuroncore_rtl.frontends.nki.dialects.isa_gather import CALLS as GATHER
from neuroncore_rtl.frontends.nki.dialects.isa_generate import CALLS as GENERATE
from neuroncore_rtl.frontends.nki.dialects.isa_move import CALLS as MOVE
from neuroncore_rtl.frontends.nki.dialects.isa_move import copy as dma
from neuroncore_rtl.frontends.nki.dialects.isa_move import skips
from neuroncore_rtl.frontends.nki.dialects.isa_random import CALLS as RANDOM
from neuroncore_rtl.frontends.nki.dialects.isa_reduce import CALLS as REDUCE
from neuroncore_rtl.frontends.nki.dialects.isa_reduce import axes_of
from neuroncore_rtl.frontends.nki.dialects.isa_running import CALLS as RUNNING
from neuroncore_rtl.frontends.nki.dialects.isa_tensor import CALLS as TENSOR
from neuroncore_rtl.frontends.nki.dialects.language_memory import full, ndarray
from neuroncore_rtl.frontends.nki.indices.affine import Mask
from neuroncore_rtl.frontends.nki.indices.dtypes import dtype_of, promoted
from neuroncore_rtl.frontends.nki.indices.lines import from_kernel, kernel_line
from neuroncore_rtl.frontends.nki.indices.storage import Memory
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.calls import Call, at_least_2d, returned, together
from neuroncore_rtl.frontends.nki.lowering.loops import check_first_product
from neuroncore_rtl.frontends.nki.lowering.operands import written
from neuroncore_rtl.frontends.nki.lowering.operators import ACTIVATIONS, OPERATIONS, ROUNDINGS, operation
from neuroncore_rtl.frontends.nki.trace.recording import Pending, recording
from neuroncore_rtl.spec.isa import AluOp
from neuroncore_rtl.spec.isa.access import allowed_start

__all__ = ["EXPANDED", "FUNCTIONS"]

FUNCTIONS: dict[str, Callable] = {}
"""The functions of this module by their names in `nki.language`."""

EXPANDED: dict[str, str] = {}
"""Of those that become several instructions, which."""


def _isa(call: Call) -> Callable:
    return call.function(older=True)


_copy, _tensor_tensor, _tensor_scalar, _activation, _reciprocal, _scalar_tensor_tensor = (
    _isa(ELEMENTWISE[name])
    for name in ("tensor_copy", "tensor_tensor", "tensor_scalar", "activation", "reciprocal", "scalar_tensor_tensor")
)
_reduce, _matmul, _dma_copy = _isa(REDUCE["tensor_reduce"]), _isa(TENSOR["nc_matmul"]), _isa(MOVE["dma_copy"])
_drop = _isa(GENERATE["dropout"])

PLAIN = {
    "add": python.add, "subtract": python.sub, "multiply": python.mul, "divide": python.truediv, "maximum": max,
    "minimum": min, "power": python.pow, "equal": python.eq, "not_equal": python.ne, "less": python.lt,
    "less_equal": python.le, "greater": python.gt, "greater_equal": python.ge, "mod": python.mod, "fmod": fmod,
}  # fmt: skip
"""What operations do to numbers."""


def _language(function: Callable, name: str = "", expanded: str = "") -> Callable:
    name = name or function.__name__.rstrip("_")
    function.__name__ = function.__qualname__ = name
    FUNCTIONS[name] = returned(function)
    if expanded:
        EXPANDED[name] = expanded
    return FUNCTIONS[name]


def _is_column(x: View, other: View) -> bool:
    """Return whether a tile has one element a partition, where another one has several."""
    lanes = x.lanes is not None and x.shape[0] == other.shape[0] and x.partition.steps[x.lanes] == 1
    return lanes and x.lanes == 0 and prod(x.shape[1:]) == 1 and prod(other.shape[1:]) > 1


def _binary(name: str) -> None:
    def function(x, y, dtype=None, mask=None):
        if not isinstance(x, View) and not isinstance(y, View):
            return PLAIN[name](x, y)
        for operand in (x, y):
            if isinstance(operand, View) and not operand.allocation.memory.on_chip:
                raise ValueError(f"{operand.name}: an operand must be on chip, not in HBM: load it first")
        if name == "divide" and dtype is None and not any(v.dtype.is_float for v in (x, y) if isinstance(v, View)):
            # As numpy's.
            dtype = "float32"
        if not isinstance(y, View) or (isinstance(x, View) and _is_column(y, x)):
            return _tensor_scalar(x, name, y, dtype=dtype, mask=mask)
        if not isinstance(x, View) or _is_column(x, y):
            return _tensor_scalar(y, name, x, reverse0=True, dtype=dtype, mask=mask)
        if x.shape != (shape := together(x, y)):
            x = x.fitted(shape)
        return _tensor_tensor(x, y, name, dtype=dtype, mask=mask)

    _language(function, name)


def _unary(name: str) -> None:
    def function(x, dtype=None, mask=None):
        return _activation(name, x, dtype=dtype, mask=mask)

    _language(function, name)


def _rounding(name: str) -> None:
    def function(x, dtype=None, mask=None):
        if not x.dtype.is_float:
            return _copy(x, dtype=dtype, mask=mask)
        return _tensor_scalar(x, name, 0.0, dtype=dtype, mask=mask)

    _language(function, name)


for _name in OPERATIONS:
    if _name != "bypass":
        _binary(_name)
for _name in ACTIVATIONS:
    if _name not in ("copy", "identity", "reciprocal"):
        _unary(_name)
for _name in ROUNDINGS:
    _rounding(_name)


@_language
def copy(x, dtype=None, mask=None):
    return _copy(x, dtype=dtype, mask=mask)


_language(lambda x, dtype=None, mask=None: _copy(x, dtype=dtype, mask=mask), "static_cast")


def _tan(x, dtype=None, mask=None):
    sine, cosine = (_activation(name, x, dtype="float32", mask=mask) for name in ("sin", "cos"))
    return _tensor_tensor(sine, cosine, "divide", dtype=dtype or x.dtype, mask=mask)


_language(_tan, "tan", "sin, cos, divide")


@_language
def reciprocal(x, dtype=None, mask=None):
    return _reciprocal(x, dtype=dtype, mask=mask)


@_language
def negative(x, dtype=None, mask=None):
    return _tensor_scalar(x, "multiply", -1, dtype=dtype, mask=mask)


@_language
def invert(x, dtype=None, mask=None):
    return _tensor_scalar(x, "bitwise_xor", -1 if x.dtype.signed else x.dtype.known.max, dtype=dtype, mask=mask)


@_language
def logical_not(x, dtype=None, mask=None):
    return _tensor_scalar(x, "equal", 0, dtype=dtype, mask=mask)


def _where(condition, x, y, dtype=None, mask=None):
    current = recording()
    shape = at_least_2d(together(*(value for value in (condition, x, y) if isinstance(value, View))))
    tiles = [value for value in (x, y) if isinstance(value, View)] or [condition]
    dtype = promoted(*(tile.dtype for tile in tiles)) if dtype is None else dtype_of(dtype)
    result = current.allocate(shape, dtype, Memory.sbuf)

    def is_tile(value) -> bool:
        return isinstance(value, View) and not _is_column(value, result)

    def spread(value: View) -> View:
        if _is_column(value, result):
            value = value.fitted((shape[0], *(1,) * (len(shape) - 1)))
        return value.fitted(shape)

    both, condition = is_tile(x) and is_tile(y), condition.fitted(shape)
    other = is_tile(y) or not isinstance(x, View)
    x, y = (y, x) if other and not both else (x, y)
    if not isinstance(x, View):
        x = full(shape, x, result.dtype)
    x = spread(x)

    def append(target: View) -> None:
        target = current.resolved(target).fitted(shape)
        part = target.masked(mask)
        if target.allocation is result.allocation and (part is None or part.shape != shape):
            current.inserted["zeros beside a mask"] += 1
            target.allocation.zeros.add(target.one_block())
        if not both:
            options = {"on_true": x, "on_false": y, "predicate": condition, "reverse_pred": other}
            RUNNING["select_reduce"].run(target, options, None, mask)
            return
        # What is copied first must not be where the others are.
        apart = target.allocation not in (x.allocation, condition.allocation)
        chosen = target if apart else current.allocate(shape, dtype, Memory.sbuf)
        ELEMENTWISE["tensor_copy"].run(chosen, {"src": y.fitted(shape)}, None, mask)
        ELEMENTWISE["tensor_copy_predicated"].run(chosen, {"src": x, "predicate": condition}, None, mask)
        if not apart:
            ELEMENTWISE["tensor_copy"].run(target, {"src": chosen}, None, mask)

    current.pending = Pending(result, append, kernel_line())
    return result


_language(_where, "where", "select, or a copy and a predicated one; a number instead of x: not, first")


def _dropout(x, rate, dtype=None, mask=None):
    return _drop(x, rate, dtype=dtype, mask=mask)


_language(_dropout, "dropout")


def _rand(shape, dtype="float32", buffer=Memory.sbuf, name="", mask=None):
    result = ndarray(shape, dtype, buffer, name)
    RANDOM["rand2"].run(result, {"min": 0.0, "max": 1.0}, None, None)
    return result


_language(_rand, "rand", "nisa.rand2 from 0 to 1: an instruction for each of 24 bits")


def _reduction(name: str, op: str) -> None:
    def function(x, axis, dtype=None, keepdims=False, mask=None):
        return _reduce(op, x, axis, keepdims=keepdims, dtype=dtype, mask=mask)

    _language(function, name)


for _name, _op in (("sum", "add"), ("max", "maximum"), ("min", "minimum"), ("prod", "multiply")):
    _reduction(_name, _op)


def _count(x: View, axis) -> int:
    return prod(x.shape[d] for d in axes_of(x, axis))


def _mean(x, axis, dtype=None, keepdims=False, mask=None):
    total = _reduce("add", x, axis, keepdims=keepdims, dtype="float32", mask=mask)
    return _tensor_scalar(total, "multiply", 1 / _count(x, axis), dtype=dtype or x.dtype)


_language(_mean, "mean", "sum, and a product with 1 / n")


def _var(x, axis, dtype=None, keepdims=False, mask=None):
    mean = _mean(x, axis, dtype="float32", keepdims=True, mask=mask)
    centred = FUNCTIONS["subtract"](x, mean, dtype="float32", mask=mask)
    return _mean(_activation("square", centred, mask=mask), axis, dtype=dtype or x.dtype, keepdims=keepdims, mask=mask)


_language(_var, "var", "mean, difference, square, mean")


def _all(x, axis, dtype=None, mask=None):
    return _reduce("minimum", _tensor_scalar(x, "not_equal", 0, mask=mask), axis, dtype=dtype, mask=mask)


_language(_all, "all", "not_equal, min")


def _softmax(x, axis=-1, dtype=None, mask=None):
    least = _reduce("maximum", x, axis, negate=True, keepdims=True, dtype="float32", mask=mask)
    if least.size == least.shape[0]:
        powers = _activation("exp", x, bias=least, dtype="float32", mask=mask)
    else:
        powers = _activation("exp", FUNCTIONS["add"](x, least, dtype="float32", mask=mask), mask=mask)
    share = _reciprocal(_reduce("add", powers, axis, keepdims=True, mask=mask))
    return FUNCTIONS["multiply"](powers, share, dtype=dtype or x.dtype, mask=mask)


_language(_softmax, "softmax", "max, exp, sum, reciprocal, product")


def _rms_norm(x, w, axis, n, epsilon=1e-6, dtype=None, compute_dtype=None, mask=None):
    squares = _activation("square", x, dtype="float32", mask=mask)
    total = _reduce("add", squares, axis, mask=mask)
    root = _activation("rsqrt", total, scale=1 / n, bias=epsilon, mask=mask)
    return _scalar_tensor_tensor(x, "multiply", root, "multiply", w, dtype=dtype or x.dtype, mask=mask)


_language(_rms_norm, "rms_norm", "square, sum, rsqrt, product")


def _transpose(x, dtype=None, mask=None):
    return TENSOR["nc_transpose"].run(None, {"data": x}, dtype, mask, Memory.sbuf)


_language(_transpose, "transpose", "nc_transpose, and from PSUM")


def _matmul_of_tiles(x, y, transpose_x=False, mask=None):
    stationary = x if transpose_x else _transpose(x)
    return _matmul(stationary, y, mask=mask)


_language(_matmul_of_tiles, "matmul", "transpose unless transpose_x, nc_matmul")


@_language
def broadcast_to(x, shape, dtype=None):
    shape = tuple(int(n) for n in shape)
    return x.repeated(shape) if dtype is None else _copy(x.repeated(shape), dtype=dtype)


@_language
def expand_dims(x, axis):
    axis = axis % (x.ndim + 1)
    return x[(slice(None),) * axis + (None,)]


@_language
def load(src, dtype=None, mask=None, mode=None):
    return _dma_copy(src, dtype=dtype, mask=mask, oob_mode=mode)


def _load_transpose2d(src, dtype=None, mask=None):
    current = recording()
    if src.ndim != 2:
        raise ValueError(f"{src.name}: what is transposed must be of 2 dimensions, not {src.shape}")
    dtype = src.dtype if dtype is None else dtype_of(dtype)
    # The tensor engine turns floating-point numbers exactly, and what leaves PSUM is cast.
    own = dtype if dtype.is_float and src.dtype.is_float else src.dtype
    shape = tuple(reversed(src.shape))
    result = current.allocate(shape, own, Memory.sbuf)
    part = src.masked(mask)

    def append(target: View) -> None:
        target = current.resolved(target).fitted(shape)
        if target.allocation is result.allocation and (part is None or part.shape != src.shape):
            current.inserted["zeros beside a mask"] += 1
            target.allocation.zeros.add(target.one_block())
        if part is not None:
            rows, columns = (slice(0, n) for n in src.shape) if mask is None else mask.rectangle(src.shape)
            dma(current, target[columns, rows], part.permuted((1, 0)))
        written(target)

    current.pending = Pending(result, append, kernel_line())
    return result if dtype == own else _copy(result, dtype=dtype)


_language(_load_transpose2d, "load_transpose2d", "dma_copy of rows, turned by the tensor engine, and from PSUM")


def _store(dst, value, mask=None, mode=None):
    shape = dst.shape
    if isinstance(value, Number):
        tile = recording().allocate(at_least_2d(shape), dst.dtype, Memory.sbuf)
        ELEMENTWISE["memset"].run(tile, {"value": value}, None, None)
        value = tile
    if not isinstance(value, View):
        raise ValueError(f"value must be a tile or a number, not {value!r}")
    dst, value = dst.masked(mask), value.fitted(shape).masked(mask, shape)
    if dst is not None and value is not None:
        dma(recording(), dst, value, skip=skips(mode))
        written(dst)


_language(_store, "store")


def _atomic_rmw(dst, value, op, mask=None):
    MOVE["dma_copy"].run(dst, {"src": value, "dst_rmw_op": op}, None, mask)


_language(_atomic_rmw, "atomic_rmw", "load, op, store: of rows with the same index the last one alone has its effect")


def _gather_flattened(data, indices, axis=0, dtype=None):
    if axis != 0:
        raise ValueError(f"axis must be 0, not {axis!r}")
    result = recording().allocate(indices.shape, data.dtype, Memory.sbuf)
    GATHER["nc_n_gather"].run(result, {"data": data, "indices": indices}, None, None)
    return result if dtype is None or dtype_of(dtype) == data.dtype else _copy(result, dtype=dtype)


_language(_gather_flattened, "gather_flattened", "nc_n_gather")


@dataclass(frozen=True)
class LoopSum:
    """What `nl.loop_reduce` returns: a term of a sum over loops, which is added to what it is assigned to.

    Arguments:
        term: a tile.
        mask: where it is added; None: everywhere.
    """

    term: View
    mask: Mask | None


@dataclass(frozen=True)
class LoopExtreme:
    """What `nl.loop_reduce` by max or min returns.

    Arguments:
        term: a tile.
        op: max or min.
        is_first: whether the loops are in their first round.
    """

    term: View
    op: AluOp
    is_first: bool


def _loop_reduce(x, op, loop_indices, dtype=None, mask=None):
    if operation(op) in (AluOp.MAX, AluOp.MIN) and mask in (None, True):
        return LoopExtreme(x, operation(op), not any(loop_indices))
    if operation(op) is not AluOp.ADD:
        rule = "op must be add, or max or min without a mask"
        raise ValueError(f"{rule}, not {operation(op).name.lower()}" + f" with {mask!r}" * (mask not in (None, True)))
    return LoopSum(x, mask)


_language(_loop_reduce, "loop_reduce", "an addition to what it is assigned to; from zero if that is new")


@from_kernel
def assign(target: View, value) -> None:
    """Write a value to a view: a call's result at once, anything else by a copy."""
    current = recording()
    target = current.resolved(target)
    if isinstance(value, LoopExtreme):
        if value.is_first:
            assign(target, value.term)
        else:
            current.flush()
            arguments = {"data1": target, "data2": current.resolved(value.term), "op": value.op}
            ELEMENTWISE["tensor_tensor"].run(target, arguments, None, None)
        return
    if isinstance(value, LoopSum):
        block = target.one_block()
        if target.allocation.is_new(block) and block not in target.allocation.zeros:
            check_first_product(current, target.allocation, None, is_new=True)
            current.inserted["zeros of a sum over a loop"] += 1
            target.allocation.zeros.add(block)
        part, term = target.masked(value.mask, value.term.shape), value.term.masked(value.mask)
        if part is not None and term is not None:
            accumulate(part, term)
        return
    if isinstance(value, View):
        same = target.allocation is value.allocation and target.shape == value.shape
        if (
            same
            and target.numbers is value.numbers
            and all(
                (getattr(target, name).start, getattr(target, name).steps)
                == (getattr(value, name).start, getattr(value, name).steps)
                for name in ("element", "partition", "block")
            )
        ):
            return
        if current.assign(target, value):
            return
        current.flush()
        value = current.resolved(value)
        near = all(view.allocation.memory.on_chip for view in (target, value))
        if not (near and _starts_quadrant(target) and _starts_quadrant(value)):
            dma(current, target, value)
            written(target)
            return
        ELEMENTWISE["tensor_copy"].run(target, {"src": value}, None, None)
    elif _starts_quadrant(target):
        ELEMENTWISE["memset"].run(target, {"value": value}, None, None)
    else:
        assign(target, full(at_least_2d(target.shape), value, target.dtype))


def _starts_quadrant(view: View) -> bool:
    """Return whether an engine's lanes can start where a tensor on chip does; else a DMA engine copies it."""
    config, first = recording().program.config, view.partition.start
    count = 1 if view.lanes is None else view.shape[view.lanes]
    return first % config.quadrant == 0 and allowed_start(first, count, config.quadrant) is None


@from_kernel
def accumulate(target: View, value) -> View:
    """Add to a view: a product that waits at once, anything else by an instruction."""
    current = recording()
    target = current.resolved(target)
    in_psum = target.allocation.memory is Memory.psum
    if isinstance(value, View) and in_psum and current.assign(target, value, accumulate=True):
        return target
    current.flush()
    if not isinstance(value, View) or _is_column(value, target):
        ELEMENTWISE["tensor_scalar"].run(target, {"data": target, "op0": "add", "operand0": value}, None, None)
    else:
        arguments = {"data1": target, "data2": current.resolved(value), "op": "add"}
        ELEMENTWISE["tensor_tensor"].run(target, arguments, None, None)
    return target

"""Functions of `nki.language` that compute with tiles."""

import operator as python
from collections.abc import Callable
from math import fmod, prod

import numpy as np

from neuroncore_rtl.frontends.nki.dialects.isa_elementwise import CALLS as ELEMENTWISE
from neuroncore_rtl.frontends.nki.dialects.isa_generate import CALLS as GENERATE
from neuroncore_rtl.frontends.nki.dialects.isa_generate import predicate
from neuroncore_rtl.frontends.nki.dialects.isa_random import CALLS as RANDOM
from neuroncore_rtl.frontends.nki.dialects.isa_reduce import CALLS as REDUCE
from neuroncore_rtl.frontends.nki.dialects.isa_reduce import axes_of
from neuroncore_rtl.frontends.nki.dialects.isa_running import CALLS as RUNNING
from neuroncore_rtl.frontends.nki.dialects.isa_tensor import CALLS as TENSOR
from neuroncore_rtl.frontends.nki.dialects.language_functions import entering, is_column, isa_call
from neuroncore_rtl.frontends.nki.dialects.language_memory import full, ndarray, zeros
from neuroncore_rtl.frontends.nki.indices.affine import Mask
from neuroncore_rtl.frontends.nki.indices.dtypes import DType, dtype_of, promoted, type_of_numbers
from neuroncore_rtl.frontends.nki.indices.lines import kernel_line
from neuroncore_rtl.frontends.nki.indices.storage import Memory
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.calls import at_least_2d, together
from neuroncore_rtl.frontends.nki.lowering.operators import ACTIVATIONS, OPERATOR_CALLS, ROUNDINGS
from neuroncore_rtl.frontends.nki.trace.recording import recording
from neuroncore_rtl.frontends.nki.trace.results import Pending

__all__ = ["MATH_EXPANDED", "MATH_FUNCTIONS"]

MATH_FUNCTIONS: dict[str, Callable] = {}

MATH_EXPANDED: dict[str, str] = {}
"""Names of the instructions by function, for functions that become several instructions."""

_language = entering(MATH_FUNCTIONS, MATH_EXPANDED)

_copy, _tensor_tensor, _tensor_scalar, _activation, _reciprocal, _scalar_tensor_tensor = (
    isa_call(ELEMENTWISE[name])
    for name in ("tensor_copy", "tensor_tensor", "tensor_scalar", "activation", "reciprocal", "scalar_tensor_tensor")
)
_reduce, _matmul = isa_call(REDUCE["tensor_reduce"]), isa_call(TENSOR["nc_matmul"])
_drop = isa_call(GENERATE["dropout"])

PLAIN = {
    "add": python.add, "subtract": python.sub, "multiply": python.mul, "divide": python.truediv, "maximum": max,
    "minimum": min, "power": python.pow, "equal": python.eq, "not_equal": python.ne, "less": python.lt,
    "less_equal": python.le, "greater": python.gt, "greater_equal": python.ge, "mod": python.mod, "fmod": fmod,
}  # fmt: skip


def _binary(name: str) -> None:
    def function(x, y, dtype=None, mask=None):
        if not isinstance(x, View) and not isinstance(y, View):
            return (PLAIN.get(name) or getattr(np, name))(x, y)
        for operand in (x, y):
            if isinstance(operand, View) and not operand.allocation.memory.on_chip:
                raise ValueError(f"{operand.name}: an operand must be on chip, not in HBM: load it first")
        if name == "divide" and dtype is None and not any(v.dtype.is_float for v in (x, y) if isinstance(v, View)):
            # As in numpy.
            dtype = "float32"
        if not isinstance(y, View) or (isinstance(x, View) and is_column(y, x)):
            return _tensor_scalar(x, name, y, dtype=dtype, mask=mask)
        if not isinstance(x, View) or is_column(x, y):
            return _tensor_scalar(y, name, x, reverse0=True, dtype=dtype, mask=mask)
        if x.shape != (shape := together(x, y)):
            x = x.fitted(shape)
        y.fitted(at_least_2d(shape))  # instructions also pair elements of shapes that do not broadcast
        return _tensor_tensor(x, y, name, dtype=dtype, mask=mask)

    _language(function, name)


def _is_rounded(name: str, x: View, dtype) -> bool:
    """Return whether the scalar engine's FP32 rounds a function of integers that an operation computes exactly."""
    if x.dtype.is_float or (dtype is not None and dtype_of(dtype).is_float):
        return False
    return name in ("abs", "relu", "square") and x.dtype.machine_format.bits > (8 if name == "square" else 16)


def _unary(name: str) -> None:
    def function(x: View, dtype=None, mask=None):
        if _is_rounded(name, x, dtype):
            return _tensor_scalar(x, name, None, dtype=dtype, mask=mask)
        return _activation(name, x, dtype=dtype, mask=mask)

    _language(function, name)


def _rounding(name: str) -> None:
    def function(x: View, dtype=None, mask=None):
        if not x.dtype.is_float:
            return _copy(x, dtype=dtype, mask=mask)
        return _tensor_scalar(x, name, 0.0, dtype=dtype, mask=mask)

    _language(function, name)


for _name in OPERATOR_CALLS:
    if _name != "bypass":
        _binary(_name)
for _name in ACTIVATIONS:
    if _name not in ("copy", "identity", "reciprocal"):
        _unary(_name)
for _name in ROUNDINGS:
    _rounding(_name)


def _same(x: View, dtype=None, mask=None):
    return _copy(x, dtype=dtype, mask=mask)


_language(_same, "copy")
_language(_same, "static_cast")


def _number_type(x: View, dtype: object) -> DType | object:
    """Return the type of a composed function's result: `dtype` if given, float32 for truth values, else that of x."""
    return dtype or ("float32" if x.dtype.is_truth else x.dtype)


def _tan(x: View, dtype=None, mask=None):
    sine, cosine = (_activation(name, x, dtype="float32", mask=mask) for name in ("sin", "cos"))
    return _tensor_tensor(sine, cosine, "divide", dtype=_number_type(x, dtype), mask=mask)


_language(_tan, "tan", "sin, cos, divide")


@_language
def reciprocal(x: View, dtype=None, mask=None):
    return _reciprocal(x, dtype=dtype, mask=mask)


@_language
def negative(x: View, dtype=None, mask=None):
    return _tensor_scalar(x, "multiply", -1, dtype=dtype, mask=mask)


@_language
def invert(x: View, dtype=None, mask=None):
    if x.dtype.is_truth:
        return MATH_FUNCTIONS["logical_not"](x, dtype=dtype, mask=mask)
    return _tensor_scalar(
        x, "bitwise_xor", -1 if x.dtype.signed else x.dtype.machine_format.max, dtype=dtype, mask=mask
    )


@_language
def logical_not(x: View, dtype=None, mask=None):
    return _tensor_scalar(x, "equal", 0, dtype=dtype, mask=mask)


def _where(condition: View | Mask, x, y, dtype=None, mask=None):
    current = recording()
    tiles = [value for value in (condition, x, y) if isinstance(value, View)]
    if not isinstance(condition, View | Mask) or not tiles:
        raise ValueError(f"nl.where: condition must be a tensor, or a mask beside a tensor, not {condition!r}")
    shape = at_least_2d(together(*tiles))
    if isinstance(condition, Mask):
        condition = predicate(current, condition, shape)
    types = [value.dtype for value in (x, y) if isinstance(value, View)]
    if all(own.is_truth for own in types):
        types.append(type_of_numbers(*(value for value in (x, y) if not isinstance(value, View))))
    dtype = promoted(*types) if dtype is None else dtype_of(dtype)
    result = current.allocate(shape, dtype, Memory.sbuf)

    def is_tile(value) -> bool:
        return isinstance(value, View) and not is_column(value, result)

    def spread(value: View) -> View:
        if is_column(value, result):
            value = value.fitted((shape[0], *(1,) * (len(shape) - 1)))
        return value.fitted(shape)

    both, condition = is_tile(x) and is_tile(y), condition.fitted(shape)
    other = is_tile(y) or not isinstance(x, View)
    x, y = (y, x) if other and not both else (x, y)
    if not isinstance(x, View):
        x = full(shape, x, result.dtype)
    x = spread(x)

    def append(target: View) -> None:
        current.own(target, everything=False)
        target = target.fitted(shape)
        part = target.masked(mask)
        if target.allocation is result.allocation and (part is None or part.shape != shape):
            current.inserted["zeros beside a mask"] += 1
            target.allocation.zeros.add(target.one_block())
        if not both:
            options = {"on_true": x, "on_false": y, "predicate": condition, "reverse_pred": other}
            RUNNING["select_reduce"].run(target, options, None, mask)
            return
        # The copy executed first must not overwrite the other operands.
        apart = target.allocation not in (x.allocation, condition.allocation)
        chosen = target if apart else current.allocate(shape, dtype, Memory.sbuf)
        ELEMENTWISE["tensor_copy"].run(chosen, {"src": y.fitted(shape)}, None, mask)
        ELEMENTWISE["tensor_copy_predicated"].run(chosen, {"src": x, "predicate": condition}, None, mask)
        if not apart:
            ELEMENTWISE["tensor_copy"].run(target, {"src": chosen}, None, mask)

    reads = tuple(value for value in (condition, x, y) if isinstance(value, View))
    current.pending = Pending(result, append, kernel_line(), reads=reads, whole=mask is None)
    return result


_language(
    _where,
    "where",
    "select, or a copy and a predicated copy; a mask becomes a tile; if x is a number, the condition is inverted first",
)


@_language
def dropout(x: View, rate, dtype=None, mask=None):
    return _drop(x, rate, dtype=dtype, mask=mask)


def _rand(shape, dtype="float32", buffer=Memory.sbuf, name="", mask=None):
    result = (ndarray if mask is None else zeros)(shape, dtype, buffer, name)
    RANDOM["rand2"].run(result, {"min": 0.0, "max": 1.0}, None, mask)
    return result


_language(_rand, "rand", "nisa.rand2 from 0 to 1: one instruction per bit, 24 bits")


def _reduction(name: str, op: str) -> None:
    def function(x: View, axis, dtype=None, keepdims=False, mask=None):
        return _reduce(op, x, axis, keepdims=keepdims, dtype=dtype, mask=mask)

    _language(function, name)


for _name, _op in (("sum", "add"), ("max", "maximum"), ("min", "minimum"), ("prod", "multiply")):
    _reduction(_name, _op)


def _count(x: View, axis, mask: Mask | None) -> int:
    """Return the number of elements in each sum over `axis`: those that a mask selects; 1 if there are none."""
    counts = x.shape if mask is None else [part.stop - part.start for part in mask.rectangle(x.shape)]
    return max(1, prod(counts[d] for d in axes_of(x, axis)))


def _mean(x: View, axis, dtype=None, keepdims=False, mask=None):
    total = _reduce("add", x, axis, keepdims=keepdims, dtype="float32", mask=mask)
    return _tensor_scalar(total, "multiply", 1 / _count(x, axis, mask), dtype=_number_type(x, dtype))


_language(_mean, "mean", "sum, product with 1 / n")


def _var(x: View, axis, dtype=None, keepdims=False, mask=None):
    mean = _mean(x, axis, dtype="float32", keepdims=True, mask=mask)
    centred = MATH_FUNCTIONS["subtract"](x, mean, dtype="float32", mask=mask)
    squares = _activation("square", centred, mask=mask)
    return _mean(squares, axis, dtype=_number_type(x, dtype), keepdims=keepdims, mask=mask)


_language(_var, "var", "mean, difference, square, mean")


def _all(x: View, axis, dtype=None, mask=None):
    return _reduce("minimum", _tensor_scalar(x, "not_equal", 0, mask=mask), axis, dtype=dtype, mask=mask)


_language(_all, "all", "not_equal, min")


def _softmax(x: View, axis=-1, dtype=None, mask=None):
    least = _reduce("maximum", x, axis, negate=True, keepdims=True, dtype="float32", mask=mask)
    if least.size == least.shape[0]:
        powers = _activation("exp", x, bias=least, dtype="float32", mask=mask)
    else:
        powers = _activation("exp", MATH_FUNCTIONS["add"](x, least, dtype="float32", mask=mask), mask=mask)
    share = _reciprocal(_reduce("add", powers, axis, keepdims=True, mask=mask))
    return MATH_FUNCTIONS["multiply"](powers, share, dtype=_number_type(x, dtype), mask=mask)


_language(_softmax, "softmax", "max, exp, sum, reciprocal, product")


def _rms_norm(x: View, w: View, axis, n, epsilon=1e-6, dtype=None, compute_dtype=None, mask=None):
    squares = _activation("square", x, dtype="float32", mask=mask)
    total = _reduce("add", squares, axis, mask=mask)
    root = _activation("rsqrt", total, scale=1 / n, bias=epsilon)
    return _scalar_tensor_tensor(x, "multiply", root, "multiply", w, dtype=_number_type(x, dtype), mask=mask)


_language(_rms_norm, "rms_norm", "square, sum, rsqrt, product")


def _transpose(x: View, dtype=None, mask=None):
    return TENSOR["nc_transpose"].run(None, {"data": x}, dtype, mask, Memory.sbuf)


_language(_transpose, "transpose", "nc_transpose, copy from PSUM")


def _matmul_of_tiles(x: View, y: View, transpose_x=False, mask=None):
    stationary = x if transpose_x else _transpose(x)
    return _matmul(stationary, y, mask=mask)


_language(_matmul_of_tiles, "matmul", "transpose unless transpose_x, nc_matmul")

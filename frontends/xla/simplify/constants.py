"""Constant folding of small and of 64-bit values, which the machine does not have.

Integer arithmetic is numpy's, exact modulo the type's range. So are sums, products and comparisons of FP32 numbers that
are zero or normal, where the machine rounds as numpy does; other arithmetic of floats is the machine's.
"""

from collections.abc import Callable

import numpy as np

from neuroncore_rtl.frontends.xla.graph import operations as graph
from neuroncore_rtl.frontends.xla.graph.types import ElementType
from neuroncore_rtl.spec.formats import FP32, TF32

__all__ = ["fold"]

_LARGEST = 1 << 12
"""Maximum elements of a folded array that the machine could compute too."""


def _shift(shift: Callable) -> Callable:
    def shifted(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        bits = 8 * a.itemsize
        count = b.view(f"u{b.itemsize}")
        unsigned = a.view(f"u{a.itemsize}")
        return (
            np.where(count < bits, shift(unsigned, np.minimum(count, bits - 1)), 0).astype(unsigned.dtype).view(a.dtype)
        )

    return shifted


_FUNCTIONS: dict[str, Callable] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "maximum": np.maximum, "minimum": np.minimum, "negate": np.negative, "not": np.invert,
    "shift_left": _shift(np.left_shift), "shift_right_logical": _shift(np.right_shift), "equal": np.equal,
    "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
    "greater_equal": np.greater_equal, "select": np.where,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
}  # fmt: skip
_FLOATS = ("add", "subtract", "multiply", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def fold(block: graph.Graph) -> None:
    """Replace operations on constants by constants, in the block and the blocks inside it."""
    _fold(block, {})


def _fold(block: graph.Graph, known: dict[graph.Value, np.ndarray]) -> None:
    for place, operation in enumerate(block.operations):
        for inner in operation.blocks:
            _fold(inner, known)
        if isinstance(operation, graph.Constant):
            known[operation.result] = operation.array
        elif len(operation.results) == 1 and (array := _evaluate(operation, known)) is not None:
            known[operation.result] = array
            block.operations[place] = graph.Constant(
                operands=(), results=operation.results, source=operation.source, array=array
            )


def _evaluate(operation: graph.Operation, known: dict[graph.Value, np.ndarray]) -> np.ndarray | None:
    result = operation.result
    if not result.size:
        return np.zeros(result.shape, result.type.dtype)
    wide = any(value.type.is_wide for value in (*operation.operands, result))
    if not all(operand in known for operand in operation.operands):
        return None
    arrays = [known[operand] for operand in operation.operands]
    match operation:
        case graph.Broadcast(axes=axes):
            spread = [1] * result.rank
            for axis, extent in zip(axes, arrays[0].shape, strict=True):
                spread[axis] = extent
            return np.broadcast_to(arrays[0].reshape(spread), result.shape)
        case graph.Iota() if wide:
            return operation.array
        case graph.Pointwise(function="convert"):
            if result.size > _LARGEST and not wide and any(arrays[0].strides):
                return None
            source, target = operation.operands[0].type, result.type
            exact = not source.is_float or (target.is_float and source.bits >= 32)
            return _converted(arrays[0], target) if exact and not target.is_boolean else None
    if result.size > _LARGEST and not wide:
        return None
    with np.errstate(all="ignore"):
        match operation:
            case graph.Pointwise(function=name) if name in _FUNCTIONS:
                if all(one.dtype == np.bool_ for one in arrays) and name in ("add", "subtract", "multiply", "negate"):
                    return None
                found = _FUNCTIONS[name](*[np.ascontiguousarray(one) for one in arrays])
                found = found.reshape(result.shape).astype(result.type.dtype, copy=False)
                exact = name == "select" or (name in _FLOATS and all(map(_is_normal, (*arrays, found))))
                return found if exact or not any(one.dtype.kind in "fV" for one in arrays) else None
            case graph.Reshape():
                return arrays[0].reshape(result.shape)
            case graph.Transpose(order=order):
                return arrays[0].transpose(order)
            case graph.StridedSlice(starts=starts, ends=ends, steps=steps):
                return arrays[0][tuple(map(slice, starts, ends, steps))]
            case graph.Concatenate(axis=axis):
                return np.concatenate(arrays, axis)
            case graph.Bitcast():
                return np.ascontiguousarray(arrays[0]).view(result.type.dtype).reshape(result.shape)
    return None


def _is_normal(array: np.ndarray) -> bool:
    """Return whether all elements are FP32 numbers that are zero or normal, or truths."""
    size = np.abs(array)
    normal = array.dtype == np.float32 and ((size == 0) | ((size >= np.finfo(np.float32).tiny) & (size < np.inf))).all()
    return bool(normal) or array.dtype == np.bool_


def _rounded_to_odd(array: np.ndarray) -> np.ndarray:
    """Return integers in FP32, the last bit set where others are lost, so that a second rounding is as a single one."""
    size = np.abs(array.astype(np.float64))
    unit = np.exp2(np.maximum(np.frexp(size)[1] - 24, 0))
    whole = np.floor(size / unit)
    odd = whole + ((whole * unit != size) & (whole % 2 == 0))
    return np.copysign(odd * unit, array.astype(np.float64)).astype(np.float32)


def _converted(array: np.ndarray, to: ElementType) -> np.ndarray:
    """Return the array in another type, rounded once; what repeats one element keeps its strides of 0."""
    if array.size > 1 and not any(array.strides):
        return np.broadcast_to(_converted(array[(0,) * array.ndim], to), array.shape)
    if to.is_float and to.format is not FP32 and array.dtype.kind in "iu":
        array = _rounded_to_odd(array)
    with np.errstate(all="ignore"):
        found = array.astype(to.dtype)
    if to.format is TF32:  # in numpy's float32: to nearest, ties to even
        codes = found.view(np.uint32)
        found = np.where(np.isnan(found), found, (codes + 0xFFF + (codes >> 13 & 1) & 0xFFFFE000).view(np.float32))
    return found

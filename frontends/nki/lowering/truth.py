"""Truth values: results of type `bool_` are 1 where the value is not 0, as in numpy."""

from collections.abc import Callable, Mapping
from typing import Any

from neuroncore_rtl.frontends.nki.indices.dtypes import DTYPES, DType, promoted, type_of_numbers
from neuroncore_rtl.frontends.nki.indices.storage import Memory
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.operands import common
from neuroncore_rtl.frontends.nki.lowering.operators import OPERATOR_CALLS, name_of
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.isa.alu import COMPARISONS, AluOp

__all__ = ["lower_to", "result_type", "truth_of"]

_OPERATIONS = ("op1", "op0", "op")
"""Arguments for operations; the first one that is given is the last operation."""

_MOVES = frozenset(
    "tensor_copy tensor_copy_predicated tensor_copy_dynamic_src tensor_copy_dynamic_dst memset dma_copy dma_compute "
    "dma_transpose nc_transpose nc_stream_shuffle nc_n_gather local_gather max8 select_reduce range_select "
    "affine_select nc_match_replace8".split()
)
"""Calls that return numbers of their arguments."""

_TRUTHS = frozenset((*COMPARISONS, AluOp.LOGICAL_AND, AluOp.LOGICAL_OR, AluOp.LOGICAL_XOR))
"""Operations with results of 0 and 1."""

_CLOSED = frozenset((
    AluOp.BYPASS, AluOp.BITWISE_AND, AluOp.BITWISE_OR, AluOp.BITWISE_XOR, AluOp.MAX, AluOp.MIN, AluOp.MULTIPLY,
))  # fmt: skip
"""Operations with truth values as results of truth values."""


def _operations(call: str, arguments: Mapping[str, object]) -> list[AluOp | None]:
    """Return a call's operations, the last one first; BYPASS if it only moves numbers; None for a function."""
    given = [arguments[name] for name in _OPERATIONS if arguments.get(name) is not None]
    given = given or [AluOp.BYPASS if call in _MOVES else call]
    return [one if isinstance(one, AluOp) else OPERATOR_CALLS.get(name_of(one)) for one in given]


_VALUES = ("operand0", "operand1", "src", "value", "on_false", "on_false_value", "imm", "initial")
"""Arguments for values that can be Python numbers."""


def _numbers(arguments: Mapping[str, object]) -> list[Any]:
    given = [arguments[name] for name in _VALUES if arguments.get(name) is not None]
    return [value for value in given if not isinstance(value, View)]


def _types(arguments: Mapping[str, object]) -> list[DType]:
    """Return the types of the values that a call computes with; a predicate is none."""
    views = [value for name, value in arguments.items() if isinstance(value, View) and name != "predicate"]
    return [*(view.dtype for view in views), *(type_of_numbers(number) for number in _numbers(arguments))]


def result_type(call: str, arguments: Mapping[str, object], dtype: DType) -> DType:
    """Return the type of a result: `dtype`, or for calculations with truth values that of the numbers they become."""
    op, *others = _operations(call, arguments)
    if not dtype.is_truth or op is AluOp.BYPASS or op in _TRUTHS:
        return dtype
    if op is None:
        return DTYPES["float32"]
    own = () if {op, *others} <= {*_CLOSED, AluOp.ADD} else (DTYPES["int32"],)
    return promoted(*own, *_types(arguments))


def lower_to(
    r: Recording, dst: View, call: str, arguments: dict[str, Any], lower: Callable[..., None], keeps: bool
) -> None:
    """Call `lower` with dst; for other values than 0 and 1 in a dst of `bool_`, with a new tensor that is compared.

    `keeps` tells whether the call leaves some elements of dst unchanged.
    """
    op, *others = _operations(call, arguments)
    truths = op in _TRUTHS or arguments.get("dst_rmw_op") is not None
    if not dst.dtype.is_truth or not dst.allocation.memory.on_chip or truths:
        lower(r, dst, **arguments)
        return
    numbers = all(number in (0, 1) for number in _numbers(arguments))
    views = [value.dtype for name, value in arguments.items() if isinstance(value, View) and name != "predicate"]
    if {op, *others} <= _CLOSED and numbers and all(dtype.is_truth for dtype in views):
        lower(r, dst, **arguments)
        return
    types = _types(arguments)
    r.inserted["truth of a value"] += 1
    if op is AluOp.BYPASS and not any(dtype.is_float or dtype.signed for dtype in views) and numbers:
        # Only 0 becomes 0 in a byte.
        lower(r, dst, **arguments)
        value = dst
    elif keeps:
        names = ", ".join(str(dtype) for dtype in types)
        raise ValueError(f"{dst.name}: a part of a bool_ tensor must get bool_ values or 0 and 1, not {names}")
    else:
        integers = op is not None and not any(dtype.is_float for dtype in types)
        value = r.allocate(dst.shape, DTYPES["int32" if integers else "float32"], Memory.sbuf)
        lower(r, value, **arguments)
    _compare(r, dst, value)


def truth_of(r: Recording, value: View) -> View:
    """Return a tensor on chip as truth values."""
    if value.dtype.is_truth:
        return value
    truth = r.allocate(value.shape, DTYPES["bool_"], Memory.sbuf)
    r.inserted["truth of a value"] += 1
    _compare(r, truth, value)
    return truth


def _compare(r: Recording, dst: View, value: View) -> None:
    target, a = common(r, dst.shape, dst, value)
    r.program.append(isa.tensor_scalar(target, a, 0, AluOp.NOT_EQUAL))

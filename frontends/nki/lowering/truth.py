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

__all__ = ["lower_to", "result_type"]

_OPERATIONS = ("op1", "op0", "op")
"""Arguments for operations; the first one that is given is the last operation."""

_TRUTHS = frozenset((*COMPARISONS, AluOp.LOGICAL_AND, AluOp.LOGICAL_OR, AluOp.LOGICAL_XOR))
"""Operations with results of 0 and 1."""

_CLOSED = frozenset((AluOp.BITWISE_AND, AluOp.BITWISE_OR, AluOp.BITWISE_XOR, AluOp.MAX, AluOp.MIN, AluOp.MULTIPLY))
"""Operations with truth values as results of truth values."""


def _operation(arguments: Mapping[str, object]) -> AluOp | None:
    """Return a call's last operation, BYPASS without one; None for a function."""
    given = next((arguments[name] for name in _OPERATIONS if arguments.get(name) is not None), AluOp.BYPASS)
    return given if isinstance(given, AluOp) else OPERATOR_CALLS.get(name_of(given))


def _numbers(arguments: Mapping[str, object]) -> list[object]:
    return [value for name, value in arguments.items() if name.startswith("operand") and value is not None]


def result_type(arguments: Mapping[str, object], dtype: DType) -> DType:
    """Return the type of a call's result: `dtype`; for calculations with truth values that of the other operands."""
    op = _operation(arguments)
    if not dtype.is_truth or op is AluOp.BYPASS or op in _TRUTHS:
        return dtype
    if op is None:
        return DTYPES["float32"]
    return promoted(
        dtype, *(one.dtype if isinstance(one, View) else type_of_numbers(one) for one in _numbers(arguments))
    )


def lower_to(r: Recording, dst: View, arguments: dict[str, Any], lower: Callable[..., None]) -> None:
    """Call `lower` with dst; for other values than 0 and 1 in a dst of `bool_`, with a new tensor that is compared."""
    op, given = _operation(arguments), [value for value in arguments.values() if isinstance(value, View)]
    closed = op is AluOp.BYPASS or op in _CLOSED
    truths = closed and all(view.dtype.is_truth for view in given) and not _numbers(arguments)
    if not dst.dtype.is_truth or not dst.allocation.memory.on_chip or op in _TRUTHS or truths:
        lower(r, dst, **arguments)
        return
    types = [one.dtype if isinstance(one, View) else type_of_numbers(one) for one in (*given, *_numbers(arguments))]
    integers = op is not None and not any(dtype.is_float for dtype in types)
    value = r.allocate(dst.shape, DTYPES["int32" if integers else "float32"], Memory.sbuf)
    r.inserted["truth of a value"] += 1
    lower(r, value, **arguments)
    target, a = common(r, dst.shape, dst, value)
    r.program.append(isa.tensor_scalar(target, a, 0, AluOp.NOT_EQUAL))

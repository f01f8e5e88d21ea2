"""Operations on tensors of any types: integers exactly, others in FP32."""

from typing import cast

from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.integers import (
    Step,
    append_instruction,
    append_integers,
    is_square,
    whole_number,
)
from neuroncore_rtl.frontends.nki.lowering.operands import in_sbuf
from neuroncore_rtl.frontends.nki.lowering.operators import operation
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.formats import FP32, INT32, UINT32, IntFormat
from neuroncore_rtl.spec.isa.alu import BITWISE, FLOAT_ONLY, AluOp

__all__ = ["append_operations", "are_integers", "for_floats"]


def for_floats(r: Recording, ops: tuple, target: Tensor, a: Tensor, *others: Tensor | float) -> Tensor:
    """Return the source `a`; if all tensors are integers but an operation or a number needs floats, `a` as FP32."""
    if are_integers(ops, target, a, *others) or any(
        tensor.format.is_float for tensor in (target, a, *others) if isinstance(tensor, Tensor)
    ):
        return a
    return in_sbuf(r, a, "integers as FP32", FP32)


def are_integers(ops: tuple, *operands: Tensor | float) -> bool:
    """Return whether operations on these operands, including dst, compute in integers."""
    if FLOAT_ONLY & {operation(op) for op in ops}:
        return False
    return all(not one.format.is_float if isinstance(one, Tensor) else float(one).is_integer() for one in operands)


def _whole_numbers(r: Recording, ops: tuple, target: Tensor, *sources: Tensor | float) -> Tensor:
    """Return the tensor for the result: dst, or an integer temporary if a bit operation on integers has a float dst."""
    formats = [source.format for source in sources if isinstance(source, Tensor)]
    if (
        not target.format.is_float
        or not BITWISE & {operation(op) for op in ops}
        or any(fmt.is_float for fmt in formats)
    ):
        return target
    r.inserted["bits as floats"] += 1
    fmt = UINT32 if UINT32 in formats and not any(cast("IntFormat", one).signed for one in formats) else INT32
    return r.program.space.sbuf(target.name, fmt, target.shape, target.partitions)


def _copied(r: Recording, target: Tensor, kept: Tensor) -> None:
    if kept is not target:
        r.program.append(isa.tensor_copy(target, kept))


def _operations(steps: tuple[Step, ...]) -> tuple[AluOp, ...]:
    return tuple(AluOp.MULTIPLY if is_square(step) else step.op for step in steps)


def append_operations(r: Recording, dst: View, target: Tensor, a: Tensor, *steps: Step) -> None:
    """Append the steps on `a` with the result in dst, in integers if every operand and the result is one."""
    whole = tuple(whole_number(a, step) for step in steps)
    if are_integers(_operations(whole), target, a, *(step.operand for step in whole)):
        steps = whole
    ops, others = _operations(steps), tuple(step.operand for step in steps)
    a = for_floats(r, ops, target, a, *others)
    kept = _whole_numbers(r, ops, target, a, *others)
    if are_integers(ops, kept, a, *others):
        fmt = dst.dtype.machine_format if kept is target else kept.format
        append_integers(r, kept, fmt, a, *steps)
    else:
        append_instruction(r, kept, a, *steps)
    _copied(r, target, kept)

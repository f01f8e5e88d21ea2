"""Calls of the vector and the scalar engine, element by element."""

from neuroncore_rtl.frontends.nki.calls import Call, instruction, like
from neuroncore_rtl.frontends.nki.engines import Engine, append_copy
from neuroncore_rtl.frontends.nki.isa_move import copy
from neuroncore_rtl.frontends.nki.operands import common, in_sbuf, one_source_in_psum, scalar, written
from neuroncore_rtl.frontends.nki.operators import activation_named, operation
from neuroncore_rtl.frontends.nki.recording import Recording
from neuroncore_rtl.frontends.nki.reductions import ReduceCommand
from neuroncore_rtl.frontends.nki.views import View
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.formats import FP32, UINT32
from neuroncore_rtl.spec.isa.alu import FLOAT_ONLY, AluOp

__all__ = ["CALLS"]

CALLS: dict[str, Call] = {}
"""The calls of this module."""


@instruction(CALLS, result=like("src"), like="src")
def tensor_copy(r: Recording, dst: View, src: View, engine: Engine | None = None) -> None:
    """dst = src, cast; where the place of either is an index in memory, by way of HBM."""
    if dst.is_indirect() or src.is_indirect():
        copy(r, dst, src)
        return
    append_copy(r, *common(r, dst.shape, dst, src), engine)


@instruction(CALLS, result=None)
def memset(r: Recording, dst: View, value=0) -> None:
    """dst = value."""
    (target,) = common(r, dst.shape, dst)
    r.program.append(isa.memset(target, value))


def _for_floats(r: Recording, ops: tuple, target: Tensor, a: Tensor, *others: Tensor | float) -> Tensor:
    """Return the first source, in FP32 if all are integers and an operation is one of floats."""
    formats = [tensor.format for tensor in (target, a, *others) if isinstance(tensor, Tensor)]
    if not FLOAT_ONLY & {operation(op) for op in ops} or any(fmt.is_float for fmt in formats):
        return a
    return in_sbuf(r, a, "integers as FP32", FP32)


def _drops_bits(target: Tensor, op) -> bool:
    """Return whether a result may have bits beyond its type, where a cast would saturate."""
    fmt = target.format
    return operation(op) is AluOp.LOGICAL_SHIFT_LEFT and not fmt.is_float and not fmt.signed and fmt.bits < 32


@instruction(CALLS, result=like("data1", "data2"), like="data1")
def tensor_tensor(r: Recording, dst: View, data1: View, data2: View, op) -> None:
    """dst = op(data1, data2)."""
    target, a, b = common(r, dst.shape, dst, data1, data2)
    a, b = one_source_in_psum(r, a, b)
    a = _for_floats(r, (op,), target, a, b)
    kept = target
    if _drops_bits(target, op):
        kept = r.program.space.sbuf(target.name, UINT32, target.shape, target.partitions)
    r.program.append(isa.tensor_tensor(kept, a, b, operation(op)))
    if kept is not target:
        r.inserted["bits beyond the type cut off"] += 1
        r.program.append(isa.tensor_scalar(target, kept, target.format.max, AluOp.BITWISE_AND))


@instruction(CALLS, result=like("data"))
def tensor_scalar(
    r: Recording, dst: View, data: View, op0, operand0, reverse0=False, op1=None, operand1=None, reverse1=False
) -> None:
    """dst = op1(op0(data, operand0), operand1), each may be reversed."""
    target, a = common(r, dst.shape, dst, data)
    s0 = scalar(r, operand0, target.partitions)
    s1 = 0 if operand1 is None else scalar(r, operand1, target.partitions)
    a = _for_floats(r, (op0, op1), target, a, s0, s1)
    if op1 is None and _drops_bits(target, op0):
        op1, s1 = "bitwise_and", target.format.max
    options = {"reverse0": bool(reverse0), "reverse1": bool(reverse1)}
    r.program.append(isa.tensor_scalar(target, a, s0, operation(op0), s1, operation(op1), **options))


@instruction(CALLS, result=like("data"))
def scalar_tensor_tensor(
    r: Recording, dst: View, data: View, op0, operand0, op1, operand1: View, reverse0=False, reverse1=False
) -> None:
    """dst = op1(op0(data, operand0), operand1), operand1 a tensor, each may be reversed."""
    target, a, b = common(r, dst.shape, dst, data, operand1)
    a, b = one_source_in_psum(r, a, b)
    options = {"reverse0": bool(reverse0), "reverse1": bool(reverse1)}
    s0 = scalar(r, operand0, target.partitions)
    a = _for_floats(r, (op0, op1), target, a, b, s0)
    r.program.append(isa.scalar_tensor_tensor(target, a, s0, operation(op0), b, operation(op1), **options))


@instruction(CALLS, result=like("data0", "data1"), like="data0")
def tensor_tensor_scan(
    r: Recording, dst: View, data0: View, data1: View, initial, op0, op1, reverse0=False, reverse1=False
) -> None:
    """dst[i] = op1(op0(data0[i], dst[i - 1]), data1[i]), dst[-1] = initial, each may be reversed."""
    target, a, b = common(r, dst.shape, dst, data0, data1)
    a, b = one_source_in_psum(r, a, b)
    options = {"reverse0": bool(reverse0), "reverse1": bool(reverse1)}
    start = scalar(r, initial, target.partitions)
    r.program.append(isa.tensor_tensor_scan(target, a, b, start, operation(op0), operation(op1), **options))


@instruction(CALLS, result=like("data"))
def reciprocal(r: Recording, dst: View, data: View) -> None:
    """dst = 1 / data."""
    r.program.append(isa.reciprocal(*common(r, dst.shape, dst, data)))


@instruction(CALLS, result=None, like="src")
def tensor_copy_predicated(r: Recording, dst: View, src, predicate: View, reverse_pred=False) -> None:
    """dst = src where the predicate is not zero; elsewhere dst stays."""
    if reverse_pred:
        raise ValueError("reverse_pred must be False: invert the predicate by tensor_scalar, not True")
    if not isinstance(src, View):
        raise ValueError(f"src must be a tensor, not {src!r}: fill one by memset")
    target, keys, source = common(r, dst.shape, dst, predicate, src)
    r.program.append(isa.tensor_copy_predicated(target, keys, one_source_in_psum(r, keys, source)[1]))


ADDS = "sums start anew with every activation that does not go on with them, idle ones included"


@instruction(CALLS, "differs", ADDS, result=like("data"))
def activation(
    r: Recording,
    dst: View,
    op,
    data: View,
    bias=None,
    scale=1.0,
    reduce_op=None,
    reduce_res: View | None = None,
    reduce_cmd=ReduceCommand.idle,
) -> None:
    """dst = op(data * scale + bias); reduce_res = the sum of it along the free dimensions."""
    target, a = common(r, dst.shape, dst, data)
    if reduce_op is not None and operation(reduce_op) is not AluOp.ADD:
        raise ValueError(f"reduce_op must be add, not {operation(reduce_op).name.lower()}")
    command = ReduceCommand(reduce_cmd)
    if reduce_res is not None and command is ReduceCommand.idle and reduce_op is not None:
        command = ReduceCommand.reset_reduce
    if command is ReduceCommand.load_reduce:
        raise ValueError(
            "reduce_cmd must be reset, reduce or reset_reduce, not load_reduce: add the sums by tensor_tensor"
        )
    if command is ReduceCommand.reduce and not r.lanes_summing:
        raise ValueError("reduce_cmd must be reset or reset_reduce at first, and none idle between them, not reduce")
    r.lanes_summing = command is not ReduceCommand.idle
    into = None
    if reduce_res is not None and command is not ReduceCommand.idle:
        into = scalar_place(r, reduce_res, target.partitions)
    r.program.append(
        isa.activation(
            target,
            a,
            activation_named(op),
            scalar(r, scale, target.partitions),
            0.0 if bias is None else scalar(r, bias, target.partitions),
            sum_into=into,
            sum_continue=command is ReduceCommand.reduce,
        )
    )


@instruction(CALLS, result=like("data"))
def activation_reduce(
    r: Recording, dst: View, op, data: View, reduce_op, reduce_res: View, bias=None, scale=1.0
) -> None:
    """dst = op(data * scale + bias), and reduce_res = the sum of it along the free dimensions."""
    activation(r, dst, op, data, bias, scale, reduce_op, reduce_res, ReduceCommand.reset_reduce)


@instruction(CALLS, "differs", "one reduction each; reduce_cmd is always reset_reduce", result=like("data"))
def tensor_scalar_reduce(
    r: Recording, dst: View, data: View, op0, operand0, reduce_op, reduce_res: View, reverse0=False
) -> None:
    """dst = op0(data, operand0), and reduce_res = reduce_op over it along the free dimensions."""
    target, a = common(r, dst.shape, dst, data)
    result = scalar_place(r, reduce_res, target.partitions)
    s0 = scalar(r, operand0, target.partitions)
    reduced = isa.tensor_scalar_reduce(
        target, a, s0, operation(op0), result, operation(reduce_op), reverse0=bool(reverse0)
    )
    r.program.append(reduced)


def scalar_place(r: Recording, view: View, lanes: int) -> Tensor:
    """Return where a reduction's result goes, one element in each of so many partitions."""
    (result,) = common(r, (lanes, 1), view.fitted((view.size, 1)))
    written(view)
    return result

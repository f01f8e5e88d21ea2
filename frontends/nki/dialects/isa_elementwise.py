"""Element-wise calls of the vector and the scalar engine."""

from collections.abc import Callable

from neuroncore_rtl.frontends.nki.dialects.isa_move import copy
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.arithmetic import append_operations, are_integers
from neuroncore_rtl.frontends.nki.lowering.calls import Call, instruction, like
from neuroncore_rtl.frontends.nki.lowering.dimensions import apart
from neuroncore_rtl.frontends.nki.lowering.engines import LoweredEngine, append_copy, append_scaled
from neuroncore_rtl.frontends.nki.lowering.integers import Step, append_instruction, one_instruction
from neuroncore_rtl.frontends.nki.lowering.operands import common, one_source_in_psum, scalar
from neuroncore_rtl.frontends.nki.lowering.operators import activation_named, name_of, operation, with_operand
from neuroncore_rtl.frontends.nki.lowering.reductions import ReduceCommand
from neuroncore_rtl.frontends.nki.lowering.running import column, keep, running_reduced, scalar_place, start_value
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.formats import BF16, FP32, IntFormat
from neuroncore_rtl.spec.isa.alu import AluOp

__all__ = ["CALLS", "inverted", "rooted", "summed"]

SCALAR = "scalar"

ROOT = "rsqrt"
"""The unary function that is no operation of the vector engine."""

CALLS: dict[str, Call] = {}


@instruction(
    CALLS, "expanded", "pieces of 128 columns, unless an engine is named", result=like("src"), like="src", each=True
)
def tensor_copy(r: Recording, dst: View, src: View, engine: LoweredEngine | None = None) -> None:
    """Copy src to dst with a cast; if src or dst has an index in memory, copy through HBM."""
    if dst.is_indirect() or src.is_indirect():
        copy(r, dst, src)
        return
    append_copy(r, *common(r, dst.shape, dst, src), engine=engine)


@instruction(CALLS, result=None, each=True)
def memset(r: Recording, dst: View, value=0) -> None:
    """Fill dst with a value."""
    (target,) = common(r, dst.shape, dst)
    command, held = isa.memset(target, value), dst.dtype.machine_format
    if isinstance(held, IntFormat) and not held.min <= value <= held.max:
        # PSUM's words could hold other numbers.
        raise ValueError(f"{dst.name}: value must be from {held.min} to {held.max} in {dst.dtype}, not {value!r}")
    r.program.append(command)


def _append_root(r: Recording, target: Tensor, a: Tensor, before: Step | None = None) -> None:
    """Append 1 / the square root of a step on `a`.

    The scalar engine has this function; a power of -0.5 has other values at -0 and at negative infinity. Each of its
    instructions ends the running sums in its lanes.
    """
    factor, shift = 1.0, -0.0
    if before and before.op is AluOp.MULTIPLY:
        factor = before.operand
    elif before and before.op is AluOp.ADD:
        shift = before.operand
    elif before and before.op is not AluOp.BYPASS:
        value = r.program.space.sbuf(target.name, FP32, target.shape, target.partitions)
        append_instruction(r, value, a, before)
        a = value
    r.lanes_summing = 0
    r.program.append(isa.activation(target, a, "rsqrt", factor, shift))


def rooted(r: Recording, a: Tensor, op: object, operand: object) -> tuple[Tensor, AluOp, object]:
    """Return a source, an operation and its operand; if the operation is `rsqrt`, its result and no operation."""
    if name_of(op) != ROOT:
        return a, *with_operand(op, operand)
    value = r.program.space.sbuf(a.name, FP32, a.shape, a.partitions)
    _append_root(r, value, a)
    return value, AluOp.BYPASS, 0


@instruction(CALLS, result=like("data1", "data2"), like="data1", each=True)
def tensor_tensor(r: Recording, dst: View, data1: View, data2: View, op) -> None:
    """Compute dst = op(data1, data2)."""
    target, a, b = common(r, dst.shape, dst, data1, data2, psum=True)
    a, b = one_source_in_psum(r, a, b)
    append_operations(r, dst, target, a, Step(operation(op), b, whole=True))


@instruction(CALLS, result=like("data"), each=True)
def tensor_scalar(
    r: Recording, dst: View, data: View, op0, operand0, reverse0=False, op1=None, operand1=None, reverse1=False,
    engine: LoweredEngine | None = None,
) -> None:  # fmt: skip
    """Compute dst = op1(op0(data, operand0), operand1); reverse0, reverse1 exchange an operation's operands."""
    target, a = common(r, dst.shape, dst, data)
    if name_of(op0) == ROOT and op1 is None:
        _append_root(r, target, a)
        return
    a, op0, operand0 = rooted(r, a, op0, operand0)
    s0 = scalar(r, operand0, target.partitions)
    if name_of(op1) == ROOT:
        _append_root(r, target, a, Step(op0, s0, bool(reverse0)))
        return
    op1, operand1 = with_operand(op1, operand1)
    s1 = 0 if operand1 is None else scalar(r, operand1, target.partitions)
    if operand1 is None and append_scaled(r, target, a, op0, s0, engine):
        return
    append_operations(r, dst, target, a, Step(op0, s0, bool(reverse0)), Step(op1, s1, bool(reverse1)))


@instruction(CALLS, result=like("data"), each=True)
def scalar_tensor_tensor(
    r: Recording, dst: View, data: View, op0, operand0, op1, operand1: View, reverse0=False, reverse1=False
) -> None:
    """Compute dst = op1(op0(data, operand0), operand1) with a tensor operand1."""
    target, a, b = common(r, dst.shape, dst, data, operand1)
    a, b = one_source_in_psum(r, a, b)
    a, op0, operand0 = rooted(r, a, op0, operand0)
    s0 = scalar(r, operand0, target.partitions)
    append_operations(
        r, dst, target, a, Step(op0, s0, bool(reverse0)), Step(operation(op1), b, bool(reverse1), whole=True)
    )


@instruction(CALLS, result=like("data0", "data1"), like="data0")
def tensor_tensor_scan(
    r: Recording, dst: View, data0: View, data1: View, initial, op0, op1, reverse0=False, reverse1=False
) -> None:
    """Compute dst[i] = op1(op0(data0[i], dst[i - 1]), data1[i]) with dst[-1] = initial."""
    target, a, b = common(r, dst.shape, dst, data0, data1)
    a, b = one_source_in_psum(r, a, b)
    options: isa.Options = {"reverse0": bool(reverse0), "reverse1": bool(reverse1)}
    start = scalar(r, initial, target.partitions)
    ops, more = (operation(op0), operation(op1)), [start] if isinstance(start, Tensor) else []
    if are_integers(ops, target, a, b, start) and not all(one_instruction(a, Step(op, b), *more) for op in ops):
        rule = "integers of a scan must be of one sign, without shifts"
        raise ValueError(f"{dst.name}: {rule}: copy them to tensors of one type first")
    r.program.append(isa.tensor_tensor_scan(target, a, b, start, operation(op0), operation(op1), **options))


@instruction(CALLS, result=like("data"), each=True)
def reciprocal(r: Recording, dst: View, data: View) -> None:
    """Compute dst = 1 / data."""
    r.program.append(isa.reciprocal(*common(r, dst.shape, dst, data)))


@instruction(
    CALLS, "expanded", "a number is expanded to a tensor; a reversed predicate is compared with 0 first",
    result=None, like="src", each=True, keeps=True,
)  # fmt: skip
def tensor_copy_predicated(r: Recording, dst: View, src, predicate: View, reverse_pred=False) -> None:
    """Copy src to dst where the predicate is non-zero (zero if `reverse_pred`)."""
    target, keys = common(r, dst.shape, dst, predicate)
    if isinstance(src, View):
        target, keys, source = common(r, dst.shape, dst, predicate, src)
    else:
        source = r.program.space.sbuf(dst.name, target.format, target.shape, target.partitions)
        r.inserted["tensor of a number"] += 1
        r.program.append(isa.memset(source, src))
    keys = inverted(r, keys) if reverse_pred else keys
    r.program.append(isa.tensor_copy_predicated(target, keys, one_source_in_psum(r, keys, source)[1]))


def inverted(r: Recording, keys: Tensor) -> Tensor:
    """Return a new tensor: 1 where the predicate `keys` is 0, else 0."""
    other = r.program.space.sbuf(keys.name, BF16, keys.shape, keys.partitions)
    r.inserted["predicate the other way round"] += 1
    r.program.append(isa.tensor_scalar(other, keys, 0, AluOp.IS_EQUAL))
    return other


@instruction(
    CALLS, "expanded", "a sum continued after an activation without a sum is combined by the vector engine",
    result=like("data"),
)  # fmt: skip
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
    """Compute dst = op(data * scale + bias), and reduce_res = the sum of these results along the free dimensions."""
    alone = reduce_op is None and reduce_res is None and ReduceCommand(reduce_cmd) is ReduceCommand.idle
    whole = {"data": data}
    for part, operands in apart(r, dst, whole) if alone else ((dst, whole),):
        target, a = common(r, part.shape, part, operands["data"])
        append = _activated(r, target, a, activation_named(op), scale, bias)
        summed(r, target.partitions, reduce_op, reduce_res, reduce_cmd, append)


def _activated(r: Recording, target: Tensor, a: Tensor, function: str, scale, bias) -> Callable[..., None]:
    factor = scalar(r, scale, target.partitions)
    shift = isa.NEUTRAL_BIAS if bias is None else scalar(r, bias, target.partitions)
    return lambda **sums: r.program.append(isa.activation(target, a, function, factor, shift, **sums))


def summed(
    r: Recording, lanes: int, reduce_op, reduce_res: View | None, reduce_cmd, append: Callable[..., None]
) -> None:
    """Append an activation by calling `append` with the options for its running sum; write the sum to `reduce_res`.

    `lanes` is the number of partitions of the activation.
    """
    if reduce_op is not None and operation(reduce_op) is not AluOp.ADD:
        raise ValueError(f"reduce_op must be add, not {operation(reduce_op).name.lower()}")
    command = ReduceCommand(reduce_cmd)
    if reduce_res is not None and command is ReduceCommand.idle and reduce_op is not None:
        command = ReduceCommand.reset_reduce
    if command is ReduceCommand.load_reduce:
        raise ValueError("reduce_cmd must be idle, reset, reduce or reset_reduce, not load_reduce")
    if command is ReduceCommand.idle:
        append()
        r.lanes_summing = 0
        if reduce_res is not None:
            before = start_value(r, SCALAR, AluOp.ADD, ReduceCommand.reduce, None, lanes)
            place = scalar_place(r, reduce_res, lanes)
            fill = isa.tensor_copy(place, before) if isinstance(before, Tensor) else isa.memset(place, before)
            r.program.append(fill)
    elif command is ReduceCommand.reduce and lanes <= r.lanes_summing:
        into = column(r, "running", lanes) if reduce_res is None else scalar_place(r, reduce_res, lanes)
        append(sum_into=into, sum_continue=True)
        keep(r, SCALAR, into, reduce_res)
    else:
        running_reduced(r, SCALAR, AluOp.ADD, command, reduce_res, lanes, lambda into: append(sum_into=into))
        r.lanes_summing = lanes if command is ReduceCommand.reset_reduce else 0


@instruction(CALLS, result=like("data"))
def activation_reduce(
    r: Recording, dst: View, op, data: View, reduce_op, reduce_res: View, bias=None, scale=1.0
) -> None:
    """Compute dst and reduce_res as `activation` does; here `reduce_op` and `reduce_res` are mandatory."""
    activation(r, dst, op, data, bias, scale, reduce_op, reduce_res, ReduceCommand.reset_reduce)


@instruction(
    CALLS, "expanded", "a NeuronCore-v4 call: tensor_scalar if scale and bias do not suffice, then activation",
    result=like("data"),
)  # fmt: skip
def activate2(
    r: Recording,
    dst: View,
    op,
    data: View,
    imm0,
    imm1,
    op0,
    op1,
    relu_param=0.0,
    reverse0=False,
    reverse1=False,
    reduce_op=None,
    reduce_res: View | None = None,
    reduce_cmd=ReduceCommand.idle,
) -> None:
    """Compute dst = op(op1(op0(data, imm0), imm1)), and reduce_res = its sum; op0 and op1 may be reversed."""
    target, a = common(r, dst.shape, dst, data)
    lanes, first, second = target.partitions, operation(op0), operation(op1)
    if isinstance(relu_param, View):
        raise ValueError(f"relu_param must be a number, not {relu_param.name}: use tensor_scalar to multiply")
    by0, by1 = (0.0 if value is None else scalar(r, value, lanes) for value in (imm0, imm1))
    factor, shift = 1.0, isa.NEUTRAL_BIAS
    if first is AluOp.MULTIPLY and second in (AluOp.ADD, AluOp.BYPASS):
        factor, shift = by0, by1 if second is AluOp.ADD else isa.NEUTRAL_BIAS
    elif first is AluOp.ADD and second is AluOp.BYPASS:
        shift = by0
    elif (first, second) != (AluOp.BYPASS, AluOp.BYPASS):
        scaled = r.program.space.sbuf(dst.name, FP32, target.shape, lanes)
        r.inserted["operations before an activation"] += 1
        append_instruction(r, scaled, a, Step(first, by0, bool(reverse0)), Step(second, by1, bool(reverse1)))
        a = scaled
    options = {"alpha": float(relu_param)}
    function = "leaky_relu" if name_of(op) == "prelu" else activation_named(op)
    summed(
        r, lanes, reduce_op, reduce_res, reduce_cmd,
        lambda **sums: r.program.append(isa.activation(target, a, function, factor, shift, **options, **sums)),
    )  # fmt: skip

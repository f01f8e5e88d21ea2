"""Calls of the vector engine with running results (`frontends.nki.lowering.running`)."""

from neuroncore_rtl.frontends.nki.dialects.isa_elementwise import inverted, rooted
from neuroncore_rtl.frontends.nki.indices.given import as_integer
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.arithmetic import are_integers, for_floats
from neuroncore_rtl.frontends.nki.lowering.calls import Call, instruction, like
from neuroncore_rtl.frontends.nki.lowering.integers import Step, append_integers, between, of_one_sign, one_instruction
from neuroncore_rtl.frontends.nki.lowering.operands import common, one_source_in_psum, scalar
from neuroncore_rtl.frontends.nki.lowering.operators import name_of, operation
from neuroncore_rtl.frontends.nki.lowering.reductions import ReduceCommand
from neuroncore_rtl.frontends.nki.lowering.running import column, keep, running_reduced, start_value
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.formats import FP32, INT32, UINT32
from neuroncore_rtl.spec.isa import AluOp, Index
from neuroncore_rtl.spec.isa.alu import COMPARISONS

__all__ = ["CALLS"]

CALLS: dict[str, Call] = {}

VECTOR = "vector"

LEAST = -3.4028234663852886e38
"""Most negative FP32 number: the default of `range_select` where a comparison fails."""

COMMANDS = "reduce and load_reduce combine two columns"


@instruction(CALLS, "expanded", COMMANDS, result=like("data"))
def tensor_scalar_reduce(
    r: Recording,
    dst: View,
    data: View,
    op0,
    operand0,
    reduce_op,
    reduce_res: View | None = None,
    reverse0=False,
    reduce_cmd=ReduceCommand.reset_reduce,
    reduce_init=None,
    reduce_res_negate=False,
) -> None:
    """Compute dst = op0(data, operand0), and reduce_res = its reduction by reduce_op along the free dimensions."""
    target, a = common(r, dst.shape, dst, data)
    a, op0, operand0 = rooted(r, a, op0, operand0)
    lanes = target.partitions
    s0, op = scalar(r, operand0, lanes), operation(reduce_op)
    integers, a = are_integers((op0,), target, a, s0), for_floats(r, (op0,), target, a, s0)
    step = Step(op0, s0, bool(reverse0))

    def append(into: Tensor) -> None:
        if integers and (into.format.is_float or not one_instruction(a, step)):
            # Integers are computed as integers; the reduction is in FP32, like the running results.
            r.inserted["reduction of integers"] += 1
            words = target.format if target.format.bits == INT32.bits else between(a, step)
            whole = r.program.space.sbuf(dst.name, words, target.shape, lanes)
            append_integers(r, whole, dst.dtype.machine_format, a, step)
            r.program.append(isa.tensor_copy(target, whole))
            _reduce(r, into, whole, op)
        else:
            r.program.append(isa.tensor_scalar_reduce(target, a, s0, op0, into, op, reverse0=bool(reverse0)))

    command = ReduceCommand(reduce_cmd)
    running_reduced(
        r, VECTOR, op, command, reduce_res, lanes, append, initial=reduce_init, negate=bool(reduce_res_negate),
    )  # fmt: skip


@instruction(CALLS, "expanded", "tensor_scalar, tensor_tensor_scan", result=None, like="src")
def tensor_scalar_cumulative(
    r: Recording, dst: View, src: View, op0, op1, imm0, imm1=None, reduce_cmd=ReduceCommand.reset_reduce
) -> None:
    """Compute dst[i] = op1(op0(src[i], imm0), dst[i - 1]) from the running result, which becomes dst's last element."""
    target, a = common(r, dst.shape, dst, src)
    a, op0, imm0 = rooted(r, a, op0, imm0)
    lanes, op = target.partitions, operation(op1)
    initial = start_value(r, VECTOR, op, ReduceCommand(reduce_cmd), imm1, lanes)
    operands, sums = (r.program.space.sbuf(dst.name, FP32, target.shape, lanes) for _ in range(2))
    r.program.append(isa.tensor_scalar(operands, a, scalar(r, imm0, lanes), op0))
    r.program.append(isa.tensor_tensor_scan(sums, operands, operands, initial, op, AluOp.BYPASS))
    r.program.append(isa.tensor_copy(target, sums))
    keep(r, VECTOR, sums.reshape(sums.size)[:, sums.size - 1 :])


@instruction(
    CALLS, "expanded", "a NeuronCore-v3 call: iota, two comparisons, a selection and its maximum",
    result=like("on_true_tile"), like="on_true_tile",
)  # fmt: skip
def range_select(
    r: Recording,
    dst: View,
    on_true_tile: View,
    comp_op0,
    comp_op1,
    bound0: View,
    bound1: View,
    reduce_cmd=ReduceCommand.reset_reduce,
    reduce_res: View | None = None,
    reduce_op="maximum",
    range_start=0,
    on_false_value=LEAST,
) -> None:
    """Select on_true_tile where the position in the partition satisfies both bounds, else on_false_value."""
    _of_maxima(reduce_op)
    if not {operation(comp_op0), operation(comp_op1)} <= set(COMPARISONS):
        raise ValueError(f"comp_op0 and comp_op1 must be comparisons, not {name_of(comp_op0)} and {name_of(comp_op1)}")
    target, a = common(r, dst.shape, dst, on_true_tile)
    lanes, shape = target.partitions, target.shape
    numbers = _positions(r, target, as_integer("range_start", range_start))
    first, both = (r.program.space.sbuf(dst.name, FP32, shape, lanes) for _ in range(2))
    r.program.append(isa.tensor_scalar(first, numbers, scalar(r, bound0, lanes), operation(comp_op0)))
    second = scalar(r, bound1, lanes)
    second = isa.scalar_tensor_tensor(both, numbers, second, operation(comp_op1), first, AluOp.LOGICAL_AND)
    r.program.append(second)
    _selected(r, target, both, a, on_false_value, reduce_res, ReduceCommand(reduce_cmd))


@instruction(
    CALLS, "expanded", "a selection and its maximum; a reversed predicate is compared with 0 first",
    result=None, like="on_true",
)  # fmt: skip
def select_reduce(
    r: Recording,
    dst: View,
    predicate: View,
    on_true: View,
    on_false,
    reduce_res: View | None = None,
    reduce_cmd=ReduceCommand.idle,
    reduce_op="maximum",
    reverse_pred=False,
) -> None:
    """Select on_true where the predicate is non-zero (zero if `reverse_pred`), else on_false."""
    _of_maxima(reduce_op)
    target, keys, a = common(r, dst.shape, dst, predicate, on_true)
    keys = inverted(r, keys) if reverse_pred else keys
    keys, a = one_source_in_psum(r, keys, a)
    otherwise = scalar(r, on_false, target.partitions)
    _selected(r, target, keys, a, otherwise, reduce_res, ReduceCommand(reduce_cmd))


@instruction(
    CALLS, "expanded", "a NeuronCore-v4 call: an activation, its sums combined by the vector engine",
    result=None, like="src",
)  # fmt: skip
def exponential(
    r: Recording,
    dst: View,
    src: View,
    max_value=0.0,
    reduce_res: View | None = None,
    reduce_cmd=ReduceCommand.idle,
    reduce_init=0.0,
) -> None:
    """Compute dst = exp(src - max_value), and reduce_res = the sum of these results along the free dimensions."""
    target, a = common(r, dst.shape, dst, src)
    lanes, command = target.partitions, ReduceCommand(reduce_cmd)
    least = scalar(r, max_value, lanes)
    if isinstance(least, Tensor):
        largest, least = least, column(r, "least", lanes)
        r.program.append(isa.tensor_scalar(least, largest, -1.0, AluOp.MULTIPLY))
    else:
        least = -least
    r.lanes_summing = 0

    def append(into: Tensor | None) -> None:
        r.program.append(isa.activation(target, a, "exp", 1.0, least, sum_into=into))

    if command is ReduceCommand.idle:
        append(None)
    else:
        running_reduced(r, VECTOR, AluOp.ADD, command, reduce_res, lanes, append, initial=reduce_init)


def _reduce(r: Recording, into: Tensor, source: Tensor, op: AluOp) -> None:
    axes = len(source.shape)
    r.program.append(isa.tensor_reduce(into.reshape(*(1,) * axes), source, op, axes))


def _of_maxima(given) -> None:
    if operation(given) is not AluOp.MAX:
        raise ValueError(f"reduce_op must be maximum, not {operation(given).name.lower()}")


def _positions(r: Recording, like: Tensor, start: int) -> Tensor:
    lanes, count = like.partitions, like.size

    def make() -> Tensor:
        numbers, single = (r.program.space.sbuf("positions", fmt, (count,), lanes) for fmt in (INT32, FP32))
        r.program.append(isa.iota(numbers, Index(base=start, partition=0, steps=(1,))))
        r.program.append(isa.tensor_copy(single, numbers))
        return single

    return r.once(("positions", lanes, count, start), make).reshape(*like.shape)


def _selected(
    r: Recording,
    target: Tensor,
    keys: Tensor,
    a: Tensor,
    otherwise: float | Tensor,
    result: View | None,
    command: ReduceCommand,
) -> None:
    """Append a selection, and unless `command` is idle, the running maximum of its unrounded result."""
    a, otherwise = of_one_sign(r, target, a, otherwise)
    if command is ReduceCommand.idle:
        r.program.append(isa.select(target, keys, a, otherwise))
        return
    integers = are_integers((), target, a, otherwise)
    words = (UINT32 if UINT32 in (a.format, getattr(otherwise, "format", None)) else INT32) if integers else FP32
    whole = target.format is words
    chosen = target if whole else r.program.space.sbuf(target.name, words, target.shape, target.partitions)
    r.program.append(isa.select(chosen, keys, a, otherwise))

    def append(into: Tensor) -> None:
        if integers and not whole:
            r.program.append(isa.tensor_copy(target, chosen))
        if whole or integers:
            _reduce(r, into, chosen, AluOp.MAX)
        else:
            r.program.append(isa.tensor_scalar_reduce(target, chosen, 0.0, AluOp.BYPASS, into, AluOp.MAX))

    running_reduced(r, VECTOR, AluOp.MAX, command, result, target.partitions, append)

"""Instructions of the vector and the scalar engine as functions: tensors on chip and scalars in, one `Elementwise` out.

Operands are described in `kernels.program.operands`. When `kernels.program.program.Program` appends an
instruction, `spec.isa` checks the rules of the machine.
"""

from typing import Any, TypedDict, Unpack

from neuroncore_rtl.kernels.program.operands import Draw, ScalarOperand, elementwise, operand_word, reduction_draw
from neuroncore_rtl.kernels.program.tensor import Tensor
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.spec.functions import function_named
from neuroncore_rtl.spec.isa import AluOp, Elementwise, Index, Opcode

__all__ = [
    "NEUTRAL_BIAS", "activation", "affine_select", "bn_aggr", "bn_stats", "dropout", "find_index8", "iota",
    "match_replace8", "max8", "memset", "reciprocal", "scalar_tensor_tensor", "select", "tensor_copy",
    "tensor_copy_predicated", "tensor_reduce", "tensor_scalar", "tensor_scalar_reduce", "tensor_tensor",
    "tensor_tensor_scan", "transpose",
]  # fmt: skip

NEUTRAL_BIAS = -0.0
"""Bias of an activation without a bias: -0 is neutral in an addition, while +0 turns -0 into +0."""


class Options(TypedDict, total=False):
    """Keyword options of an instruction with two operations.

    `reverse0` and `reverse1` swap the operands of the first or second operation. `stochastic` gives the random words
    for the stochastic rounding of dst.
    """

    reverse0: bool
    reverse1: bool
    stochastic: Draw | None


@located
def tensor_copy(dst: Tensor, a: Tensor, *, stochastic: Draw | None = None) -> Elementwise:
    """`dst` = a, cast to the format of dst."""
    return elementwise(Opcode.TENSOR_COPY, dst, a=a, stochastic=stochastic)


@located
def memset(dst: Tensor, value: ScalarOperand, *, stochastic: Draw | None = None) -> Elementwise:
    """`dst` = value."""
    return elementwise(Opcode.MEMSET, dst, s0=value, stochastic=stochastic)


@located
def tensor_tensor(dst: Tensor, a: Tensor, b: Tensor, op: AluOp, *, stochastic: Draw | None = None) -> Elementwise:
    """`dst` = op(a, b)."""
    return elementwise(Opcode.TENSOR_TENSOR, dst, a=a, b=b, op0=op, stochastic=stochastic)


@located
def tensor_scalar(
    dst: Tensor,
    a: Tensor,
    s0: ScalarOperand,
    op0: AluOp,
    s1: ScalarOperand = 0,
    op1: AluOp = AluOp.BYPASS,
    **options: Unpack[Options],
) -> Elementwise:
    """`dst` = op1(op0(a, s0), s1); a reversed operation has the scalar as its first operand."""
    return elementwise(Opcode.TENSOR_SCALAR, dst, a=a, s0=s0, s1=s1, op0=op0, op1=op1, **options)


@located
def scalar_tensor_tensor(
    dst: Tensor, a: Tensor, s0: ScalarOperand, op0: AluOp, b: Tensor, op1: AluOp, **options: Unpack[Options]
) -> Elementwise:
    """`dst` = op1(op0(a, s0), b); a reversed operation has s0 or b as its first operand."""
    return elementwise(Opcode.SCALAR_TENSOR_TENSOR, dst, a=a, b=b, s0=s0, op0=op0, op1=op1, **options)


@located
def tensor_scalar_reduce(
    dst: Tensor,
    a: Tensor,
    s0: ScalarOperand,
    op0: AluOp,
    result: Tensor,
    op1: AluOp,
    *,
    reverse0: bool = False,
    stochastic: Draw | None = None,
) -> Elementwise:
    """`dst` = op0(a, s0); result, one element per partition, = op1 over all of dst before its cast."""
    operations = {"op0": op0, "op1": op1, "reverse0": reverse0}
    return elementwise(Opcode.TENSOR_SCALAR_REDUCE, dst, a=a, s0=s0, result=result, stochastic=stochastic, **operations)


@located
def tensor_reduce(
    dst: Tensor, a: Tensor, op: AluOp, axes: int = 1, *, negate: bool = False, stochastic: Draw | None = None
) -> Elementwise:
    """`dst` = op over the `axes` innermost dimensions of a, in order; negated if `negate`.

    These dimensions are absent in dst, or have one element each.
    """
    kept = a.shape[: len(a.shape) - axes]
    if not 1 <= axes <= len(a.shape):
        raise ValueError(f"axes must be between 1 and the {len(a.shape)} of {a.name}, not {axes!r}")
    if dst.shape not in (kept, kept + (1,) * axes):
        raise ValueError(f"{dst.name}: shape must be {kept}, as {a.name} without {axes} axes, not {dst.shape!r}")
    if stochastic is not None:
        stochastic = reduction_draw(stochastic, kept, axes)
    dst = dst.reshape(*kept, *(1,) * axes)
    return elementwise(Opcode.TENSOR_REDUCE, dst, a.shape, a=a, op0=op, axes=axes, negate=negate, stochastic=stochastic)


@located
def tensor_tensor_scan(
    dst: Tensor, a: Tensor, b: Tensor, initial: ScalarOperand, op0: AluOp, op1: AluOp, **options: Unpack[Options]
) -> Elementwise:
    """`dst`[i] = op1(op0(a[i], dst[i-1]), b[i]) before the cast, with dst[-1] = initial."""
    return elementwise(Opcode.TENSOR_TENSOR_SCAN, dst, a=a, b=b, s0=initial, op0=op0, op1=op1, **options)


@located
def bn_stats(dst: Tensor, a: Tensor) -> Elementwise:
    """`dst`[0:6] = count, mean, variance * count of the even elements of a, then of the odd ones."""
    return elementwise(Opcode.BN_STATS, dst, a.shape, a=a)


@located
def bn_aggr(dst: Tensor, a: Tensor) -> Elementwise:
    """`dst`[0:2] = mean and variance of the union of a's triples (count, mean, variance * count)."""
    return elementwise(Opcode.BN_AGGR, dst, a.shape, a=a)


@located
def reciprocal(dst: Tensor, a: Tensor, *, stochastic: Draw | None = None) -> Elementwise:
    """`dst` = 1 / a."""
    return elementwise(Opcode.RECIPROCAL, dst, a=a, stochastic=stochastic)


@located
def select(
    dst: Tensor, predicate: Tensor, on_true: Tensor, on_false: ScalarOperand, *, stochastic: Draw | None = None
) -> Elementwise:
    """`dst` = on_true where the predicate is not zero, else on_false."""
    return elementwise(Opcode.SELECT, dst, a=predicate, b=on_true, s0=on_false, stochastic=stochastic)


@located
def tensor_copy_predicated(dst: Tensor, predicate: Tensor, b: Tensor, *, stochastic: Draw | None = None) -> Elementwise:
    """`dst` = b where the predicate is not zero; other elements of dst do not change."""
    return elementwise(Opcode.SELECT, dst, a=predicate, b=b, keep=True, stochastic=stochastic)


@located
def affine_select(dst: Tensor, a: Tensor, index: Index, op: AluOp, otherwise: ScalarOperand) -> Elementwise:
    """`dst` = a where the comparison op(n, 0) is true, else `otherwise`; `index` gives n for each element."""
    return elementwise(Opcode.AFFINE_SELECT, dst, a=a, op0=op, s0=otherwise, index=index)


@located
def iota(dst: Tensor, index: Index) -> Elementwise:
    """`dst` = the number that `index` gives to each element, as INT32, or UINT32 if dst has this format."""
    return elementwise(Opcode.IOTA, dst, index=index)


@located
def transpose(dst: Tensor, a: Tensor) -> Elementwise:
    """Transpose square blocks, as long as the last dimension: `dst`[j] of partition p = a[p] of partition j."""
    return elementwise(Opcode.TRANSPOSE, dst, a=a)


@located
def max8(dst: Tensor, a: Tensor) -> Elementwise:
    """`dst`[0:8] = the largest 8 elements of a, descending."""
    return elementwise(Opcode.MAX8, dst, a.shape, a=a)


@located
def find_index8(dst: Tensor, a: Tensor, values: Tensor) -> Elementwise:
    """`dst`[k] = row-major position of values[k] in a, or -1; repeated values find successive positions."""
    return elementwise(Opcode.FIND_INDEX8, dst, a.shape, a=a, values=values)


@located
def match_replace8(dst: Tensor, a: Tensor, values: Tensor, replacement: ScalarOperand) -> Elementwise:
    """`dst` = a, with `replacement` at the positions that `find_index8` finds."""
    return elementwise(Opcode.MATCH_REPLACE8, dst, a=a, values=values, s0=replacement)


@located
def dropout(dst: Tensor, a: Tensor, probability: ScalarOperand, draw: Draw, *, stochastic: bool = False) -> Elementwise:
    """`dst` = 0 with a probability, else a; `stochastic` also rounds dst, by an independent word of the draw."""
    return elementwise(Opcode.DROPOUT, dst, a=a, s0=probability, stochastic=draw, rounds=stochastic)


@located
def activation(
    dst: Tensor,
    a: Tensor,
    function: str,
    scale: ScalarOperand = 1.0,
    bias: ScalarOperand = NEUTRAL_BIAS,
    *,
    alpha: float = 0.0,
    sum_into: Tensor | None = None,
    sum_continue: bool = False,
    stochastic: Draw | None = None,
) -> Elementwise:
    """`dst` = function(a * scale + bias) on the scalar engine.

    The functions are those of `spec.functions.FUNCTIONS`; `alpha` is the parameter of some functions. `sum_into` is the
    destination of each partition's running sum of results, one element. `sum_continue` continues the sums of the
    previous instruction instead of starting from 0.
    """
    options: dict[str, Any] = {"function": function_named(function).code, "alpha": operand_word("alpha", alpha)}
    options |= {"sum_continue": sum_continue, "sum_store": sum_into is not None}
    return elementwise(Opcode.ACTIVATE, dst, a=a, s0=scale, s1=bias, result=sum_into, stochastic=stochastic, **options)

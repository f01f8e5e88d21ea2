"""The published instructions as functions: readable operands in, one instruction of `spec.isa` out.

Operands of the vector and the scalar engine are tensors on chip (:class:`kernels.program.tensor.Tensor`), whose free
dimensions broadcast to those of the destination by the rules of numpy. A scalar is a number, encoded for the
instruction's arithmetic, or a tensor of one element a partition. Whether the arithmetic is INT32 or FP32 follows from
the formats (`spec.isa.elementwise.is_integer`). A copy takes tensors of any storage; on chip the partitions are its
first dimension. Whatever a machine must refuse is left to the checks of `spec.isa`, which
:class:`kernels.program.sequence.Sequence` and :class:`kernels.program.program.Program` call.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor
from neuroncore_rtl.spec.formats import INT32
from neuroncore_rtl.spec.functions import function_named
from neuroncore_rtl.spec.isa import Access, AluOp, DmaCopy, DmaIndex, Elementwise, Index, Opcode, Pointer
from neuroncore_rtl.spec.isa.access import POINTER_FIELDS
from neuroncore_rtl.spec.isa.elementwise import ELEMENTWISE_FIELDS, OUTPUTS, VALUES8, is_integer
from neuroncore_rtl.spec.isa.fields import pack

__all__ = [
    "Draw", "activation", "affine_select", "bn_aggr", "bn_stats", "dma_copy", "dma_gather", "dma_scatter", "dropout",
    "find_index8", "iota", "match_replace8", "max8", "memset", "reciprocal", "row_major", "scalar_tensor_tensor",
    "select", "tensor_copy", "tensor_copy_predicated", "tensor_reduce", "tensor_scalar", "tensor_scalar_reduce",
    "tensor_tensor", "tensor_tensor_scan", "transpose",
]  # fmt: skip

Scalar = int | float | Tensor

_BYPASS = AluOp.BYPASS


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Which random words the elements of dst get, for stochastic rounding and dropout.

    Arguments:
        seed: of the run, 32 bits.
        stream: tells this use of randomness from others, 32 bits.
        index: the elements' numbers in their tensor, one step for each free dimension; None: dst is a whole tensor,
            numbered in row-major order, the partitions outermost.
    """

    seed: int
    stream: int = 0
    index: Index | None = None


def row_major(shape: tuple[int, ...], base: int = 0, partition: int | None = None) -> Index:
    """Return the numbers of elements in row-major order.

    Arguments:
        shape: free dimensions of the instruction.
        base: number of the first element of lane 0.
        partition: from one lane to the next; None: the elements of a lane.
    """
    steps = tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))
    return Index(base=base, partition=math.prod(shape) if partition is None else partition, steps=steps)


def tensor_copy(dst: Tensor, a: Tensor, *, stochastic: Draw | None = None) -> Elementwise:
    """dst = a, cast."""
    return _build(Opcode.TENSOR_COPY, dst, a=a, stochastic=stochastic)


def memset(dst: Tensor, value: Scalar, *, stochastic: Draw | None = None) -> Elementwise:
    """dst = value."""
    return _build(Opcode.MEMSET, dst, s0=value, stochastic=stochastic)


def tensor_tensor(dst: Tensor, a: Tensor, b: Tensor, op: AluOp, *, stochastic: Draw | None = None) -> Elementwise:
    """dst = op(a, b)."""
    return _build(Opcode.TENSOR_TENSOR, dst, a=a, b=b, op0=op, stochastic=stochastic)


def tensor_scalar(
    dst: Tensor,
    a: Tensor,
    s0: Scalar,
    op0: AluOp,
    s1: Scalar = 0,
    op1: AluOp = _BYPASS,
    *,
    reverse0: bool = False,
    reverse1: bool = False,
    stochastic: Draw | None = None,
) -> Elementwise:
    """dst = op1(op0(a, s0), s1); a reversed operation takes the scalar first."""
    operations = {"op0": op0, "op1": op1, "reverse0": reverse0, "reverse1": reverse1}
    return _build(Opcode.TENSOR_SCALAR, dst, a=a, s0=s0, s1=s1, stochastic=stochastic, **operations)


def scalar_tensor_tensor(
    dst: Tensor,
    a: Tensor,
    s0: Scalar,
    op0: AluOp,
    b: Tensor,
    op1: AluOp,
    *,
    reverse0: bool = False,
    reverse1: bool = False,
    stochastic: Draw | None = None,
) -> Elementwise:
    """dst = op1(op0(a, s0), b); a reversed operation takes s0 or b first."""
    operations = {"op0": op0, "op1": op1, "reverse0": reverse0, "reverse1": reverse1}
    return _build(Opcode.SCALAR_TENSOR_TENSOR, dst, a=a, b=b, s0=s0, stochastic=stochastic, **operations)


def tensor_scalar_reduce(
    dst: Tensor,
    a: Tensor,
    s0: Scalar,
    op0: AluOp,
    result: Tensor,
    op1: AluOp,
    *,
    reverse0: bool = False,
    stochastic: Draw | None = None,
) -> Elementwise:
    """dst = op0(a, s0), or reversed; result, one element a partition, = op1 over all of it before dst's cast."""
    operations = {"op0": op0, "op1": op1, "reverse0": reverse0}
    return _build(Opcode.TENSOR_SCALAR_REDUCE, dst, a=a, s0=s0, result=result, stochastic=stochastic, **operations)


def tensor_reduce(
    dst: Tensor, a: Tensor, op: AluOp, axes: int = 1, *, negate: bool = False, stochastic: Draw | None = None
) -> Elementwise:
    """dst = op over the `axes` innermost dimensions of a, in order, with the other sign if `negate`.

    dst has the other dimensions of a; those that are reduced may be there, with one element.
    """
    kept = a.shape[: len(a.shape) - axes]
    if not 1 <= axes <= len(a.shape):
        raise ValueError(f"axes must be between 1 and the {len(a.shape)} of {a.name}, not {axes!r}")
    if dst.shape not in (kept, kept + (1,) * axes):
        raise ValueError(f"{dst.name}: shape must be {kept}, that of {a.name} without {axes} axes, not {dst.shape!r}")
    if stochastic is not None:
        stochastic = _reduced(stochastic, kept, axes)
    dst = dst.reshape(*kept, *(1,) * axes)
    return _build(Opcode.TENSOR_REDUCE, dst, a.shape, a=a, op0=op, axes=axes, negate=negate, stochastic=stochastic)


def tensor_tensor_scan(
    dst: Tensor,
    a: Tensor,
    b: Tensor,
    initial: Scalar,
    op0: AluOp,
    op1: AluOp,
    *,
    reverse0: bool = False,
    reverse1: bool = False,
    stochastic: Draw | None = None,
) -> Elementwise:
    """dst[i] = op1(op0(a[i], dst[i-1]), b[i]) before the cast, each operation may be reversed; dst[-1] = initial."""
    operations = {"op0": op0, "op1": op1, "reverse0": reverse0, "reverse1": reverse1}
    return _build(Opcode.TENSOR_TENSOR_SCAN, dst, a=a, b=b, s0=initial, stochastic=stochastic, **operations)


def bn_stats(dst: Tensor, a: Tensor) -> Elementwise:
    """dst[0:6] = count, mean, variance * count of the even elements of a, then of the odd ones."""
    return _build(Opcode.BN_STATS, dst, a.shape, a=a)


def bn_aggr(dst: Tensor, a: Tensor) -> Elementwise:
    """dst[0:2] = mean and variance of the union of a's triples (count, mean, variance * count)."""
    return _build(Opcode.BN_AGGR, dst, a.shape, a=a)


def reciprocal(dst: Tensor, a: Tensor, *, stochastic: Draw | None = None) -> Elementwise:
    """dst = 1 / a."""
    return _build(Opcode.RECIPROCAL, dst, a=a, stochastic=stochastic)


def select(
    dst: Tensor, predicate: Tensor, on_true: Tensor, on_false: Scalar, *, stochastic: Draw | None = None
) -> Elementwise:
    """dst = on_true where the predicate is not zero, else on_false."""
    return _build(Opcode.SELECT, dst, a=predicate, b=on_true, s0=on_false, stochastic=stochastic)


def tensor_copy_predicated(dst: Tensor, predicate: Tensor, b: Tensor, *, stochastic: Draw | None = None) -> Elementwise:
    """dst = b where the predicate is not zero; elsewhere dst stays."""
    return _build(Opcode.SELECT, dst, a=predicate, b=b, keep=True, stochastic=stochastic)


def affine_select(dst: Tensor, a: Tensor, index: Index, op: AluOp, otherwise: Scalar) -> Elementwise:
    """dst = a where op(the element's number by `index`, 0), op a comparison, else `otherwise`."""
    return _build(Opcode.AFFINE_SELECT, dst, a=a, op0=op, s0=otherwise, index=index)


def iota(dst: Tensor, index: Index) -> Elementwise:
    """dst = the elements' numbers by `index`, as INT32."""
    return _build(Opcode.IOTA, dst, index=index)


def transpose(dst: Tensor, a: Tensor) -> Elementwise:
    """Transpose blocks: element j of lane p goes to element p of lane j; the innermost dimension is that of a block."""
    return _build(Opcode.TRANSPOSE, dst, a=a)


def max8(dst: Tensor, a: Tensor) -> Elementwise:
    """dst[0:8] = the largest 8 elements of a, descending."""
    return _build(Opcode.MAX8, dst, a.shape, a=a)


def find_index8(dst: Tensor, a: Tensor, values: Tensor) -> Elementwise:
    """dst[k] = row-major position in a of values[k], -1 if there is none; repeated values find successive positions."""
    return _build(Opcode.FIND_INDEX8, dst, a.shape, a=a, values=values)


def match_replace8(dst: Tensor, a: Tensor, values: Tensor, replacement: Scalar) -> Elementwise:
    """dst = a, with the elements that `find_index8` would find replaced."""
    return _build(Opcode.MATCH_REPLACE8, dst, a=a, values=values, s0=replacement)


def dropout(dst: Tensor, a: Tensor, probability: Scalar, draw: Draw, *, stochastic: bool = False) -> Elementwise:
    """dst = 0 with a probability, else a; `stochastic` rounds dst by the same draw, from an independent word."""
    return _build(Opcode.DROPOUT, dst, a=a, s0=probability, stochastic=draw, rounds=stochastic)


def activation(
    dst: Tensor,
    a: Tensor,
    function: str,
    scale: Scalar = 1.0,
    bias: Scalar = 0.0,
    *,
    alpha: float = 0.0,
    sum_into: Tensor | None = None,
    sum_continue: bool = False,
    stochastic: Draw | None = None,
) -> Elementwise:
    """dst = function(a * scale + bias) on the scalar engine.

    Arguments:
        dst, a: tensors.
        function: its name (`spec.functions.FUNCTIONS`).
        scale, bias: scalars.
        alpha: the parameter of functions that have one.
        sum_into: where the lanes' running sums of the results go, one element a partition; None: they are not stored.
        sum_continue: go on with the running sums of the instruction before, instead of starting from 0.
        stochastic: how to round dst.
    """
    options = {"function": function_named(function).code, "alpha": _word("alpha", alpha, False)}
    options |= {"sum_continue": sum_continue, "sum_store": sum_into is not None}
    return _build(Opcode.ACTIVATE, dst, a=a, s0=scale, s1=bias, result=sum_into, stochastic=stochastic, **options)


def dma_copy(dst: Tensor | HbmTensor, src: Tensor | HbmTensor, order: tuple[int, ...] | None = None) -> DmaCopy:
    """dst = src, cast if the formats differ.

    Arguments:
        dst, src: tensors; src is broadcast to dst by the rules of numpy.
        order: for each dimension of dst that of src which goes along it, such as (1, 0) for a transposition; None:
            the same one.
    """
    shape, to = dst.copied()
    counts, of = src.copied()
    order = tuple(range(len(counts))) if order is None else order
    if sorted(order) != list(range(len(counts))):
        raise ValueError(f"order must be one of the {len(counts)} dimensions of {src.name} each, not {order!r}")
    counts, steps = [counts[d] for d in order], [of.steps[d] for d in order]
    missing = len(shape) - len(counts)
    if missing < 0 or any(n not in (1, m) for n, m in zip(counts, shape[missing:], strict=True)):
        raise ValueError(f"{src.name}: shape must broadcast to {shape!r} of {dst.name}, not {tuple(counts)!r}")
    steps = [0] * missing + [step if n > 1 else 0 for n, step in zip(counts, steps, strict=True)]
    axis = None if of.axis is None else missing + order.index(of.axis)
    return DmaCopy(shape=shape, dst=to, src=replace(of, steps=tuple(steps), axis=axis))


def dma_gather(dst: Tensor, table: HbmTensor, rows: Tensor) -> DmaCopy:
    """dst[i] = table[rows[i]]: rows are INT32, one a partition of as many partitions as dst's first dimension has."""
    return _indexed(dst, table, rows, gather=True)


def dma_scatter(table: HbmTensor, src: Tensor, rows: Tensor) -> DmaCopy:
    """table[rows[i]] = src[i]; of rows with the same number the last one stays."""
    return _indexed(src, table, rows, gather=False)


def _indexed(tensor: Tensor, table: HbmTensor, rows: Tensor, gather: bool) -> DmaCopy:
    shape, near = tensor.copied()
    counts, far = table.copied()
    if counts[1:] != shape[1:]:
        raise ValueError(f"{table.name}: rows must have the shape {shape[1:]!r} of {tensor.name}, not {counts[1:]!r}")
    if rows.pointer().format != INT32 or rows.partitions != shape[0]:
        found = f"{rows.partitions} of {rows.format.name}"
        raise ValueError(f"{rows.name}: row numbers must be {shape[0]} partitions of int32, not {found}")
    index = DmaIndex(address=rows.address, partition=rows.partition, limit=counts[0])
    if gather:
        return DmaCopy(shape=shape, dst=near, src=far, gather=index)
    return DmaCopy(shape=shape, dst=far, src=near, scatter=index)


def _build(
    opcode: Opcode,
    dst: Tensor,
    shape: tuple[int, ...] | None = None,
    *,
    a: Tensor | None = None,
    b: Tensor | None = None,
    values: Tensor | None = None,
    result: Tensor | None = None,
    s0: Scalar = 0,
    s1: Scalar = 0,
    index: Index = Index(),  # noqa: B008 (it is frozen)
    stochastic: Draw | None = None,
    rounds: bool = True,
    **options,
) -> Elementwise:
    """Return an instruction on `shape`, dst's unless told; sources broadcast to it.

    Arguments:
        values, result: what takes the place of b: 8 values to look for, or where a reduction's result goes.
        stochastic: the draw; rounds: whether it rounds.
        options: fields that are passed on.
    """
    shape = dst.shape if shape is None else shape
    for tensor in (a, b, values, result, s0, s1):
        if isinstance(tensor, Tensor) and tensor.partitions != dst.partitions:
            raise ValueError(
                f"{tensor.name}: partitions must be the {dst.partitions} of {dst.name}, not {tensor.partitions!r}"
            )
    count = OUTPUTS.get(opcode)
    accesses = {"dst": dst.access() if count is None else _few(dst, count, len(shape))}
    accesses |= {
        name: tensor.broadcast_to(*shape).access() for name, tensor in (("a", a), ("b", b)) if tensor is not None
    }
    accesses |= {} if values is None else {"b": _few(values, VALUES8, len(shape))}
    accesses |= {} if result is None else {"b": _few(result, 1, len(shape))}
    if stochastic is not None:
        index = row_major(shape) if stochastic.index is None else stochastic.index
        options |= {"seed": stochastic.seed, "stream": stochastic.stream, "stochastic": rounds}
    scalars = [scalar.pointer() if isinstance(scalar, Tensor) else scalar for scalar in (s0, s1)]
    integer = _integer(opcode, accesses, scalars, options) and opcode != Opcode.DROPOUT
    words = [
        scalar if isinstance(scalar, Pointer) else _word(f"s{n}", scalar, integer) for n, scalar in enumerate(scalars)
    ]
    return Elementwise(
        opcode=opcode,
        partitions=dst.partitions,
        shape=shape,
        s0=words[0],
        s1=words[1],
        index=index,
        **accesses,
        **options,
    )


def _few(tensor: Tensor, count: int, rank: int) -> Access:
    """Return the access of `count` elements of one dimension in an instruction of `rank` dimensions."""
    if tensor.size != count:
        raise ValueError(f"{tensor.name}: elements of a partition must be {count}, not {list(tensor.shape)}")
    access = tensor.reshape(count).access()
    return replace(access, steps=(0,) * (rank - 1) + access.steps)


def _reduced(draw: Draw, kept: tuple[int, ...], axes: int) -> Draw:
    """Return a draw for the elements that are left of a reduction: numbers do not change along what was reduced."""
    index = row_major(kept) if draw.index is None else draw.index
    return replace(draw, index=replace(index, steps=(*index.steps[: len(kept)], *(0,) * axes)))


def _integer(opcode: Opcode, accesses: dict[str, Access], scalars: list, options: dict) -> bool:
    """Return whether the instruction computes in INT32."""
    values = {name: 0 for name, _ in ELEMENTWISE_FIELDS}
    values |= {"opcode": int(opcode), "sum_store": int(options.get("sum_store", 0))}
    values |= {f"{name}_dtype": access.format.code for name, access in accesses.items()}
    for number, scalar in enumerate(scalars):
        if isinstance(scalar, Pointer):
            word = pack(POINTER_FIELDS, {"address": 0, "quadrant": 0, "dtype": scalar.format.code})
            values |= {f"pointer{number}": 1, f"scalar{number}": word}
    return is_integer(values)


def _word(name: str, value: int | float, integer: bool) -> int:
    """Return the 32-bit word of a number: INT32, or FP32 to nearest even."""
    if not integer:
        with np.errstate(over="ignore"):
            return int(np.float32(value).view(np.uint32))
    if not math.isfinite(value) or value != int(value) or not -(1 << 31) <= value < 1 << 32:
        raise ValueError(f"{name} must be an integer of 32 bits in INT32 arithmetic, not {value!r}")
    return int(value) & 0xFFFF_FFFF

"""Encoding of operands as fields of an instruction of the vector or the scalar engine.

Tensors broadcast to the free dimensions of the destination by numpy's rules. A scalar is a number, encoded for the
arithmetic of the instruction (`spec.isa.elementwise.arithmetic_of`), or a tensor of one element per partition.
"""

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import cast

import numpy as np

from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.spec.formats import INT32, UINT32, Format, IntFormat
from neuroncore_rtl.spec.isa import Access, Elementwise, Index, Opcode, Pointer
from neuroncore_rtl.spec.isa.access import POINTER_FIELDS
from neuroncore_rtl.spec.isa.alu import BITWISE, AluOp, Arithmetic
from neuroncore_rtl.spec.isa.elementwise import ELEMENTWISE_FIELDS, OUTPUTS, VALUES8, arithmetic_of, widens_to_odd
from neuroncore_rtl.spec.isa.fields import pack

__all__ = ["Draw", "ScalarOperand", "check_on_chip", "elementwise", "operand_word", "reduction_draw", "row_major"]

ScalarOperand = int | float | Tensor


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Selection of the random words that stochastic rounding or dropout uses for the elements of dst.

    `seed` is the same for a whole run; `stream` must differ between independent uses of random words in a run. Both
    have 32 bits. `index` is None for row-major order with the partitions outermost.
    """

    seed: int
    stream: int = 0
    index: Index | None = None


@located
def row_major(shape: tuple[int, ...], base: int = 0, partition: int | None = None) -> Index:
    """Return the numbers of elements in row-major order.

    They start at `base` in the first partition; `partition` is the step from one partition to the next, by default the
    number of elements per partition.
    """
    steps = tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))
    return Index(base=base, partition=math.prod(shape) if partition is None else partition, steps=steps)


def check_on_chip(tensor: object) -> None:
    """Raise ValueError if an operand is not a tensor in SBUF or PSUM."""
    if not isinstance(tensor, Tensor):
        name, found = ("an operand", repr(tensor)) if not isinstance(tensor, HbmTensor) else (tensor.name, "in HBM")
        raise ValueError(f"{name}: an engine's operand must be a tensor in SBUF or PSUM, not {found}")


@located
def elementwise(
    opcode: Opcode,
    dst: Tensor,
    shape: tuple[int, ...] | None = None,
    *,
    a: Tensor | None = None,
    b: Tensor | None = None,
    values: Tensor | None = None,
    result: Tensor | None = None,
    s0: ScalarOperand = 0,
    s1: ScalarOperand = 0,
    index: Index = Index(),  # noqa: B008 (it is frozen)
    stochastic: Draw | None = None,
    rounds: bool = True,
    **options,
) -> Elementwise:
    """Return an instruction; sources broadcast to `shape`, by default the shape of dst.

    Instead of b, `values` are 8 values to search for, or `result` is the destination of a reduction. The random words
    of `stochastic` replace `index`; `rounds` tells whether they round dst. `options` are further fields.
    """
    for tensor in (dst, a, b, values, result):
        if tensor is not None:
            check_on_chip(tensor)
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
    fields = _fields(opcode, accesses, scalars, options)
    kind, odd = Arithmetic.FP32 if opcode == Opcode.DROPOUT else arithmetic_of(fields), widens_to_odd(fields)
    limits = [_limits(opcode, kind, dst.format, options.get(f"op{n}")) if kind else None for n in range(2)]
    words = [
        scalar if isinstance(scalar, Pointer) else operand_word(f"{dst.name}: s{n}", scalar, limits[n], odd)
        for n, scalar in enumerate(scalars)
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
    if tensor.size != count:
        raise ValueError(f"{tensor.name}: elements of a partition must be {count}, not {list(tensor.shape)}")
    access = tensor.reshape(count).access()
    return replace(access, steps=(0,) * (rank - 1) + access.steps)


def reduction_draw(draw: Draw, kept: tuple[int, ...], axes: int) -> Draw:
    """Return the random words for the results of a reduction, with element indices that skip the reduced dimensions."""
    index = row_major(kept) if draw.index is None else draw.index
    return replace(draw, index=replace(index, steps=(*index.steps[: len(kept)], *(0,) * axes)))


def _fields(opcode: Opcode, accesses: dict[str, Access], scalars: list, options: dict) -> dict[str, int]:
    """Return the fields of an instruction that determine its arithmetic."""
    values = {name: 0 for name, _ in ELEMENTWISE_FIELDS}
    values |= {"opcode": int(opcode)} | {name: int(options.get(name, 0)) for name in ("sum_store", "stochastic")}
    values |= {f"{name}_dtype": access.format.code for name, access in accesses.items()}
    for number, scalar in enumerate(scalars):
        if isinstance(scalar, Pointer):
            word = pack(POINTER_FIELDS, {"address": 0, "quadrant": 0, "dtype": scalar.format.code})
            values |= {f"pointer{number}": 1, f"scalar{number}": word}
    return values


_WRITES_SCALAR = frozenset({Opcode.MEMSET, Opcode.SELECT, Opcode.AFFINE_SELECT, Opcode.MATCH_REPLACE8})
"""Opcodes that write s0 to dst."""


def _limits(opcode: Opcode, arithmetic: Arithmetic, dst: Format, op: AluOp | None) -> tuple[int, int]:
    """Return the smallest and largest number of an instruction with integers.

    It is a value of the arithmetic, for opcodes that write it also a value of dst, and for bit operations a pattern.
    """
    whole = UINT32 if arithmetic == Arithmetic.UINT32 else INT32
    if opcode in _WRITES_SCALAR:
        held = cast("IntFormat", dst)
        return max(whole.min, held.min), min(whole.max, held.max)
    return (INT32.min, UINT32.max) if op in BITWISE else (whole.min, whole.max)


def operand_word(name: str, value: int | float, limits: tuple[int, int] | None = None, odd: bool = False) -> int:
    """Return the 32-bit word of a scalar: an integer within `limits`, or without them an FP32 number.

    An inexact number is rounded to nearest even, or if `odd` to odd: truncated, with its last bit set. Raises
    ValueError if it is no number, or not an integer within the limits.
    """
    if not isinstance(value, Real):
        raise ValueError(f"{name} must be a number or a tensor, not {value!r}")
    if limits is None:
        with np.errstate(over="ignore"):
            word = np.float32(value)
            exact = math.isnan(value) or float(word) == value
            if odd and not exact and abs(float(word)) > abs(value):
                word = np.nextafter(word, np.float32(0))
        return int(word.view(np.uint32)) | (odd and not exact)
    low, high = limits
    if not math.isfinite(value) or value != int(value) or not low <= value <= high:
        rule = f"an integer from {low} to {high} if all formats are integers"
        raise ValueError(f"{name} must be {rule}, not {value!r}")
    return int(value) & 0xFFFF_FFFF

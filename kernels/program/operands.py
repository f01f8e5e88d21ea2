"""From operands that people write to the fields of an instruction of the vector or the scalar engine.

Free dimensions broadcast to those of the destination by the rules of numpy. A scalar is a number, encoded for the
instruction's arithmetic, or a tensor of one element a partition. Which arithmetic that is follows from the formats
(`spec.isa.elementwise.arithmetic_of`).
"""

import math
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np

from neuroncore_rtl.kernels.program.source import located
from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor
from neuroncore_rtl.spec.isa import Access, Elementwise, Index, Opcode, Pointer
from neuroncore_rtl.spec.isa.access import POINTER_FIELDS
from neuroncore_rtl.spec.isa.elementwise import ELEMENTWISE_FIELDS, OUTPUTS, VALUES8, is_integer
from neuroncore_rtl.spec.isa.fields import pack

__all__ = ["Draw", "ScalarOperand", "check_on_chip", "elementwise", "operand_word", "reduced", "row_major"]

ScalarOperand = int | float | Tensor


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


def check_on_chip(tensor: object) -> None:
    """Refuse as an engine's operand what is no tensor in SBUF or PSUM."""
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
    """Return an instruction on `shape`, dst's unless told; sources broadcast to it.

    Arguments:
        values, result: what takes the place of b: 8 values to look for, or where a reduction's result goes.
        stochastic: the draw; rounds: whether it rounds.
        options: fields that are passed on.
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
    integer = _integer(opcode, accesses, scalars, options) and opcode != Opcode.DROPOUT
    words = [
        scalar if isinstance(scalar, Pointer) else operand_word(f"s{n}", scalar, integer)
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
    """Return the access of `count` elements of one dimension in an instruction of `rank` dimensions."""
    if tensor.size != count:
        raise ValueError(f"{tensor.name}: elements of a partition must be {count}, not {list(tensor.shape)}")
    access = tensor.reshape(count).access()
    return replace(access, steps=(0,) * (rank - 1) + access.steps)


def reduced(draw: Draw, kept: tuple[int, ...], axes: int) -> Draw:
    """Return a draw for the elements that are left of a reduction: numbers do not change along what was reduced."""
    index = row_major(kept) if draw.index is None else draw.index
    return replace(draw, index=replace(index, steps=(*index.steps[: len(kept)], *(0,) * axes)))


def _integer(opcode: Opcode, accesses: dict[str, Access], scalars: list, options: dict) -> bool:
    """Return whether the instruction computes with integers."""
    values = {name: 0 for name, _ in ELEMENTWISE_FIELDS}
    values |= {"opcode": int(opcode), "sum_store": int(options.get("sum_store", 0))}
    values |= {f"{name}_dtype": access.format.code for name, access in accesses.items()}
    for number, scalar in enumerate(scalars):
        if isinstance(scalar, Pointer):
            word = pack(POINTER_FIELDS, {"address": 0, "quadrant": 0, "dtype": scalar.format.code})
            values |= {f"pointer{number}": 1, f"scalar{number}": word}
    return is_integer(values)


def operand_word(name: str, value: int | float, integer: bool) -> int:
    """Return the 32-bit word of a number: an integer, or FP32 to nearest even; ValueError if they cannot hold it."""
    if not isinstance(value, Real):
        raise ValueError(f"{name} must be a number or a tensor, not {value!r}")
    if not integer:
        with np.errstate(over="ignore"):
            return int(np.float32(value).view(np.uint32))
    if not math.isfinite(value) or value != int(value) or not -(1 << 31) <= value < 1 << 32:
        raise ValueError(f"{name} must be an integer of 32 bits if every format is an integer's, not {value!r}")
    return int(value) & 0xFFFF_FFFF

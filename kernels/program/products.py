"""The tensor engine's instructions as functions: tensors on chip in, one instruction of `spec.isa` out.

A product of one tile is two of them, result = a.T b, with the contraction along the partitions of both operands:
`load_stationary(a)` of a [k, m], then `multiply_moving(result, b)` of b [k, n] and result [m, n]. More tiles of the
contraction are added with `accumulate`. Operands and results may start at a quadrant of the partitions: a row of the
array is a partition of SBUF, a column one of PSUM. Whether a tile fits the array and a bank is checked where it
is appended.
"""

from neuroncore_rtl.kernels.program.operands import check_on_chip
from neuroncore_rtl.kernels.program.source import located
from neuroncore_rtl.kernels.program.tensor import Tensor
from neuroncore_rtl.spec.config import LOAD_COLUMNS
from neuroncore_rtl.spec.formats import FP32, INT8, INT32, MATMUL_FORMATS
from neuroncore_rtl.spec.isa import LoadStationary, MultiplyMoving, Storage

__all__ = ["load_stationary", "multiply_moving"]

WORD = FP32.bits // 8
"""Bytes of a word of PSUM."""


@located
def load_stationary(a: Tensor, *, half: int = 0, column: int = 0) -> LoadStationary:
    """Load a [k, m] into the array: it is what the next products multiply by.

    Arguments:
        a: in SBUF, with adjacent columns of which the first lies on a multiple of four elements.
        half: of FP32, which half of the significands: 0 the upper one, 1 the lower one.
        column: of the array, to which its first column goes: the first partition of the results.

    Raises:
        ValueError: if the tensor is not of this kind; the message names it and the rule.
    """
    _check_operand(a, half)
    if len(a.shape) != 1 or (a.size > 1 and a.steps != (1,)):
        found = f"{list(a.shape)} with steps {list(a.steps)}"
        raise ValueError(f"{a.name}: a stationary operand must have one dimension of adjacent columns, not {found}")
    step = LOAD_COLUMNS * a.format.bits // 8
    if a.address % step:
        raise ValueError(f"{a.name}: a stationary operand's address must be a multiple of {step}, not {a.address}")
    return LoadStationary(
        format=a.format, half=half, k=a.partitions, m=a.size, address=a.address, row=a.partition, column=column
    )


@located
def multiply_moving(
    result: Tensor, b: Tensor, *, half: int = 0, accumulate: bool = False, transpose: bool = False
) -> MultiplyMoving:
    """result = a.T b, or result += a.T b, of the operand a that was loaded last.

    Arguments:
        result: [m, n] in a bank of PSUM, in the partitions of the columns that a was loaded to: FP32, or INT32 for
            INT8; adjacent words.
        b: [k, n] in SBUF, in the partitions of a, of the result's shape, with as many bytes from each element to the
            next.
        half: as of `load_stationary`.
        accumulate: whether the products are added to what is in PSUM.
        transpose: b is an identity matrix, so that result = a.T bit for bit, infinities and the sign of zeros included.

    Raises:
        ValueError: if tensors are not of this kind, or do not fit each other; the message names one and the rule.
    """
    _check_operand(b, half)
    check_on_chip(result)
    sums = INT32 if b.format is INT8 else FP32
    if result.storage != Storage.PSUM:
        raise ValueError(f"{result.name}: a product must be in PSUM, not {Storage(result.storage).name}")
    if result.format != sums:
        raise ValueError(f"{result.name}: sums of {b.format.name} must be {sums.name}, not {result.format.name}")
    if result.shape != b.shape:
        raise ValueError(f"{result.name}: shape must be {b.shape!r}, that of {b.name}, not {result.shape!r}")
    if _step(result) != 1:
        raise ValueError(f"{result.name}: a product's words must be adjacent, not with steps {list(result.steps)}")
    return MultiplyMoving(
        format=b.format,
        half=half,
        k=b.partitions,
        m=result.partitions,
        n=b.size,
        address=b.address,
        stride=_step(b) * b.format.bits // 8,
        psum=result.address // WORD,
        accumulate=accumulate,
        transpose=transpose,
        row=b.partition,
        column=result.partition,
    )


def _check_operand(tensor: Tensor, half: int) -> None:
    check_on_chip(tensor)
    if tensor.storage != Storage.SBUF:
        raise ValueError(f"{tensor.name}: an operand must be in SBUF, not {Storage(tensor.storage).name}")
    if tensor.format not in MATMUL_FORMATS:
        names = ", ".join(fmt.name for fmt in MATMUL_FORMATS)
        raise ValueError(f"{tensor.name}: format must be one of {names}, not {tensor.format.name}")
    if half not in ((0, 1) if tensor.format is FP32 else (0,)):
        raise ValueError(f"{tensor.name}: half must be 0, or for fp32 1, not {half!r} for {tensor.format.name}")


def _step(tensor: Tensor) -> int:
    """Return the elements from one of a tensor to the next, in row-major order; ValueError if it is not always one."""
    (step,) = tensor.reshape(tensor.size).steps
    if tensor.size > 1 and step < 0:
        raise ValueError(f"{tensor.name}: elements must have ascending addresses, not steps {list(tensor.steps)}")
    return step if tensor.size > 1 else 1

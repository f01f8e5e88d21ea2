"""Instructions of the tensor engine as functions: tensors on chip in, one instruction of `spec.isa` out.

A product of one tile, result = a.T b, takes two instructions: `load_stationary(a)` of a [k, m], then
`multiply_moving(result, b)` of b [k, n] and result [m, n]. Both operands have the contraction along the partitions;
products of further tiles along it are added with `accumulate`. A row of the array is a partition of SBUF, a column is a
partition of PSUM; operands and results may start at any quadrant. `Program.append` checks that a tile fits.
"""

from neuroncore_rtl.kernels.program.operands import check_on_chip
from neuroncore_rtl.kernels.program.tensor import Tensor
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.spec.config import LOAD_COLUMNS
from neuroncore_rtl.spec.formats import FP32, INT8, INT32, MATMUL_FORMATS
from neuroncore_rtl.spec.isa import LoadStationary, MultiplyMoving, Storage

__all__ = ["load_stationary", "multiply_moving"]

WORD = FP32.bits // 8
"""Bytes of a PSUM word."""


@located
def load_stationary(a: Tensor, *, half: int = 0, column: int = 0) -> LoadStationary:
    """Return the instruction that loads a, [k, m] in SBUF, as the stationary operand of the next products.

    The columns of a are adjacent, the first one aligned to four elements. `half` selects the half of FP32 significands,
    0 for the upper one, 1 for the lower one. `column` is the first column of the array and partition of the results.
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
    """Return the instruction for `result` = a.T b, or result += a.T b; a is the loaded stationary operand.

    The result is [m, n] in a bank of PSUM, adjacent words, FP32, or INT32 for INT8; its partitions are the columns of
    a. b is [k, n] in SBUF, in the partitions of a, with a constant step between elements. `half` is as in
    `load_stationary`. For `transpose`, b is an identity matrix: result = a.T bit for bit, including infinities and the
    sign of zeros.
    """
    _check_operand(b, half)
    check_on_chip(result)
    sums = INT32 if b.format is INT8 else FP32
    if result.storage != Storage.PSUM:
        raise ValueError(f"{result.name}: a product must be in PSUM, not {Storage(result.storage).name}")
    if result.format != sums:
        raise ValueError(f"{result.name}: sums of {b.format.name} must be {sums.name}, not {result.format.name}")
    if result.shape != b.shape:
        raise ValueError(f"{result.name}: shape must be the {b.shape!r} of {b.name}, not {result.shape!r}")
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
    (step,) = tensor.reshape(tensor.size).steps
    if tensor.size > 1 and step < 0:
        raise ValueError(f"{tensor.name}: elements must have ascending addresses, not steps {list(tensor.steps)}")
    return step if tensor.size > 1 else 1

"""Products of matrices, batched, from and to HBM: for matrices that are too large for SBUF, and for integers."""

from collections.abc import Sequence
from math import prod

from neuroncore_rtl.frontends.xla.emit.emission import Emission
from neuroncore_rtl.frontends.xla.graph.operations import Dot, Value
from neuroncore_rtl.frontends.xla.graph.types import CASTS
from neuroncore_rtl.frontends.xla.options import Options
from neuroncore_rtl.kernels.library.matmul import matmul
from neuroncore_rtl.kernels.program import HbmTensor
from neuroncore_rtl.spec.formats import BF16, FP32, Format

__all__ = ["emit_dot", "format_of_dot", "product_format"]


def emit_dot(emission: Emission, dot: Dot) -> None:
    """Append the products of every batch index from HBM to HBM: K along the partitions of both operands."""
    result, fmt = dot.result, format_of_dot(emission.options, dot)
    a, b = (_operand(emission, fmt, *side) for side in dot.sides)
    out = emission.new(result) if result not in emission.tensors else emission.tensors[result]
    batches, m, n = a.shape[0], a.shape[2], b.shape[2]
    out = out.reshape(batches, m, n)
    for index in range(batches):
        # A vector is the stationary operand, so that a matrix is not loaded for one column.
        if n == 1:
            matmul(emission.program, out[index].permute(1, 0), b[index], a[index])
        else:
            matmul(emission.program, out[index], a[index], b[index])


def format_of_dot(options: Options, dot: Dot) -> Format:
    """Return the format in which the array multiplies the operands of a product."""
    return product_format(Options() if dot.is_exact else options, *dot.operands)


def product_format(options: Options, left: Value, right: Value) -> Format:
    """Return the format in which the array multiplies: the wider one, or one that has the numbers of both."""
    if left.type == right.type and not left.type.is_float:
        return left.type.format
    widest = max((left.type, right.type), key=lambda of: (of.format is FP32, of.bits)).format
    if left.type != right.type and left.type.bits == right.type.bits:
        widest = BF16 if left.type.bits == 8 else FP32
    if widest is FP32 and options.auto_cast == "matmult":
        return CASTS[options.auto_cast_type].format
    return widest


def _operand(
    emission: Emission, fmt: Format, value: Value, batch: Sequence[int], contract: Sequence[int], other: Sequence[int]
) -> HbmTensor:
    """Return an operand as [batch, contracted, other] in row-major order."""
    tensor = emission.tensor(value)
    turned = tensor.permute(*batch, *contract, *other)
    shape = tuple(prod(value.shape[d] for d in some) for some in (batch, contract, other))
    if other or fmt is not tensor.format:
        turned = emission.adjacent(turned, fmt)
    try:
        return turned.reshape(*shape)
    except ValueError:
        return emission.copied(turned).reshape(*shape)

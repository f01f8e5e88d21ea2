"""Tensor engine: column sums of the array, their accumulation in PSUM, whole matrix products. All are bit-exact.

Operands are codes of a format of `spec.formats.MATMUL_FORMATS`, results are PSUM words.
"""

from neuroncore_rtl.golden.tensor.engine import TensorEngine
from neuroncore_rtl.golden.tensor.kernel import accumulate_sums, column_sums, column_sums_equation
from neuroncore_rtl.golden.tensor.operand import array_operand
from neuroncore_rtl.golden.tensor.product import PASSES, matrix_product

__all__ = [
    "PASSES", "TensorEngine", "accumulate_sums", "array_operand", "column_sums", "column_sums_equation",
    "matrix_product",
]  # fmt: skip

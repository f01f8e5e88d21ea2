"""Instructions of the tensor engine."""

from neuroncore_rtl.spec.isa.tensor.instruction import LoadStationary, MultiplyMoving, TensorInstruction
from neuroncore_rtl.spec.isa.tensor.layout import LOAD_STATIONARY, MULTIPLY_MOVING, TENSOR_BITS, TENSOR_FIELDS
from neuroncore_rtl.spec.isa.tensor.rules import column_starts, row_starts, tensor_violation

__all__ = [
    "LOAD_STATIONARY", "MULTIPLY_MOVING", "TENSOR_BITS", "TENSOR_FIELDS", "LoadStationary", "MultiplyMoving",
    "TensorInstruction", "column_starts", "row_starts", "tensor_violation",
]  # fmt: skip

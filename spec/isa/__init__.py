"""Instruction layouts and opcodes, defined once for the assembler, the golden interpreter and the hardware."""

from spec.isa.tensor import (
    LOAD_STATIONARY,
    MULTIPLY_MOVING,
    TENSOR_BITS,
    TENSOR_FIELDS,
    LoadStationary,
    MultiplyMoving,
    TensorInstruction,
)

__all__ = [
    "LOAD_STATIONARY",
    "MULTIPLY_MOVING",
    "TENSOR_BITS",
    "TENSOR_FIELDS",
    "LoadStationary",
    "MultiplyMoving",
    "TensorInstruction",
]

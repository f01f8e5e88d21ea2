"""Instruction layouts and opcodes, defined once for the assembler, the golden interpreter and the hardware."""

from spec.isa.access import ACCESS_FIELDS, DIMENSIONS, POINTER_FIELDS, Access, Pointer, Storage
from spec.isa.alu import AluOp
from spec.isa.elementwise import ELEMENTWISE_BITS, ELEMENTWISE_FIELDS, Elementwise, Index, Opcode
from spec.isa.legality import SCALAR_OPCODES, VECTOR_OPCODES, Rule
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
    "ACCESS_FIELDS", "DIMENSIONS", "ELEMENTWISE_BITS", "ELEMENTWISE_FIELDS", "LOAD_STATIONARY", "MULTIPLY_MOVING",
    "POINTER_FIELDS", "SCALAR_OPCODES", "TENSOR_BITS", "TENSOR_FIELDS", "VECTOR_OPCODES", "Access", "AluOp",
    "Elementwise", "Index", "LoadStationary", "MultiplyMoving", "Opcode", "Pointer", "Rule", "Storage",
    "TensorInstruction",
]  # fmt: skip

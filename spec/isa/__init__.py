"""Instruction layouts and opcodes, defined once for the assembler, the golden interpreter and the hardware."""

from neuroncore_rtl.spec.isa.access import ACCESS_FIELDS, DIMENSIONS, POINTER_FIELDS, Access, Pointer, Storage
from neuroncore_rtl.spec.isa.alu import AluOp
from neuroncore_rtl.spec.isa.cause import Cause, cause_name
from neuroncore_rtl.spec.isa.dma import (
    DMA_BITS,
    DMA_COPY,
    DMA_DIMENSIONS,
    DMA_FIELDS,
    HBM_ADDRESS_BITS,
    DmaCopy,
    DmaIndex,
    DmaTensor,
)
from neuroncore_rtl.spec.isa.elementwise import ELEMENTWISE_BITS, ELEMENTWISE_FIELDS, Elementwise, Index, Opcode
from neuroncore_rtl.spec.isa.legality import SCALAR_OPCODES, VECTOR_OPCODES, Rule
from neuroncore_rtl.spec.isa.record import (
    BODY_BITS,
    HEADER_BITS,
    HEADER_FIELDS,
    QUEUE_COUNTERS,
    RECORD_BITS,
    RECORD_BYTES,
    Engine,
    Record,
    Update,
    UpdateOp,
    Wait,
    collective_queue,
    engine_of,
    engine_of_queue,
    queue_count,
    queue_name,
)
from neuroncore_rtl.spec.isa.tensor import (
    LOAD_STATIONARY,
    MULTIPLY_MOVING,
    TENSOR_BITS,
    TENSOR_FIELDS,
    LoadStationary,
    MultiplyMoving,
    TensorInstruction,
)

__all__ = [
    "ACCESS_FIELDS", "BODY_BITS", "DIMENSIONS", "DMA_BITS", "DMA_COPY", "DMA_DIMENSIONS", "DMA_FIELDS",
    "ELEMENTWISE_BITS", "ELEMENTWISE_FIELDS", "HBM_ADDRESS_BITS", "HEADER_BITS", "HEADER_FIELDS", "LOAD_STATIONARY",
    "MULTIPLY_MOVING", "POINTER_FIELDS", "QUEUE_COUNTERS", "RECORD_BITS", "RECORD_BYTES", "SCALAR_OPCODES",
    "TENSOR_BITS", "TENSOR_FIELDS", "VECTOR_OPCODES", "Access", "AluOp", "Cause", "DmaCopy", "DmaIndex", "DmaTensor",
    "Elementwise", "Engine", "Index", "LoadStationary", "MultiplyMoving", "Opcode", "Pointer", "Record", "Rule",
    "Storage", "TensorInstruction", "Update", "UpdateOp", "Wait", "cause_name", "collective_queue", "engine_of",
    "engine_of_queue", "queue_count", "queue_name",
]  # fmt: skip

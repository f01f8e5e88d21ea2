"""Instruction set, defined once for the assembler, the golden interpreter and the hardware.

Each engine has a folder with its instruction's layout, rules and class. Other code uses only the protocol in
`instruction`.
"""

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
from neuroncore_rtl.spec.isa.elementwise import (
    ELEMENTWISE_BITS,
    ELEMENTWISE_FIELDS,
    SCALAR_OPCODES,
    VECTOR_OPCODES,
    Elementwise,
    Index,
    Opcode,
)
from neuroncore_rtl.spec.isa.engine import (
    QUEUE_COUNTERS,
    Engine,
    collective_queue,
    engine_of_queue,
    engines_taken,
    queue_count,
    queue_name,
    queues_of,
)
from neuroncore_rtl.spec.isa.instruction import Context, Instruction
from neuroncore_rtl.spec.isa.nop import Nop
from neuroncore_rtl.spec.isa.record import (
    BODY_BITS,
    HEADER_BITS,
    HEADER_FIELDS,
    RECORD_BITS,
    RECORD_BYTES,
    Record,
    Update,
    UpdateOp,
    Wait,
)
from neuroncore_rtl.spec.isa.region import Region
from neuroncore_rtl.spec.isa.registry import INSTRUCTIONS, MNEMONICS, decode_instruction, instruction_type
from neuroncore_rtl.spec.isa.rule import Rule
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
    "ELEMENTWISE_BITS", "ELEMENTWISE_FIELDS", "HBM_ADDRESS_BITS", "HEADER_BITS", "HEADER_FIELDS", "INSTRUCTIONS",
    "LOAD_STATIONARY", "MNEMONICS", "MULTIPLY_MOVING", "POINTER_FIELDS", "QUEUE_COUNTERS", "RECORD_BITS",
    "RECORD_BYTES", "SCALAR_OPCODES", "TENSOR_BITS", "TENSOR_FIELDS", "VECTOR_OPCODES", "Access", "AluOp", "Cause",
    "Context", "DmaCopy", "DmaIndex", "DmaTensor", "Elementwise", "Engine", "Index", "Instruction", "LoadStationary",
    "MultiplyMoving", "Nop", "Opcode", "Pointer", "Record", "Region", "Rule", "Storage", "TensorInstruction", "Update",
    "UpdateOp", "Wait", "cause_name", "collective_queue", "decode_instruction", "engine_of_queue", "engines_taken",
    "instruction_type", "queue_count", "queue_name", "queues_of",
]  # fmt: skip

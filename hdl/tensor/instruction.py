"""The tensor engine's instruction as the hardware sees it: the fields of `spec.isa`, with types."""

from amaranth import unsigned
from amaranth.lib import data, enum

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.spec import isa

__all__ = ["Opcode", "TensorInstruction"]


class Opcode(enum.Enum, shape=unsigned(2)):
    """Opcodes of `spec.isa`; waveforms show the names."""

    NONE = 0
    LOAD_STATIONARY = isa.LOAD_STATIONARY
    MULTIPLY_MOVING = isa.MULTIPLY_MOVING


_TYPES = {"opcode": Opcode, "dtype": FormatCode}

TensorInstruction = data.StructLayout({name: _TYPES.get(name, unsigned(width)) for name, width in isa.TENSOR_FIELDS})
"""One tensor instruction; the widths and their order are those of `spec.isa.TENSOR_FIELDS`."""

"""The tensor engine's instruction as the hardware sees it: the fields of `spec.isa`, with types."""

from amaranth import Module, Signal, unsigned
from amaranth.lib import data, enum

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.formats import MATMUL_FORMATS

__all__ = ["Opcode", "TensorInstruction", "element_size"]


class Opcode(enum.Enum, shape=unsigned(2)):
    """Opcodes of `spec.isa`; waveforms show the names."""

    NONE = 0
    LOAD_STATIONARY = isa.LOAD_STATIONARY
    MULTIPLY_MOVING = isa.MULTIPLY_MOVING


_TYPES = {"opcode": Opcode, "dtype": FormatCode}

TensorInstruction = data.StructLayout({name: _TYPES.get(name, unsigned(width)) for name, width in isa.TENSOR_FIELDS})
"""One tensor instruction; the widths and their order are those of `spec.isa.TENSOR_FIELDS`."""


def element_size(m: Module, name: str, code) -> Signal:
    """Return a signal with log2 of the bytes of an element whose format is `code`."""
    size = Signal(2, name=name)
    with m.Switch(code):
        for fmt in MATMUL_FORMATS:
            with m.Case(FormatCode(fmt.code)):
                m.d.comb += size.eq((fmt.bits // 8).bit_length() - 1)
    return size

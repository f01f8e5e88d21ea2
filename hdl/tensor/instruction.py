"""Tensor instruction as a typed hardware layout of the fields in `spec.isa`."""

from amaranth import unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.primitives.enumeration import typed_enum
from neuroncore_rtl.spec import isa

__all__ = ["TensorInstruction", "TensorOpcode"]


_OPCODES = {kind.name: kind.opcode for kind in (isa.LoadStationary, isa.MultiplyMoving)}

TensorOpcode = typed_enum("Opcode", _OPCODES, dict(isa.TENSOR_FIELDS)["opcode"])
"""Opcodes of `spec.isa`."""

_TYPES = {"opcode": TensorOpcode, "dtype": FormatCode}

TensorInstruction = data.StructLayout({name: _TYPES.get(name, unsigned(width)) for name, width in isa.TENSOR_FIELDS})
"""One tensor instruction; field widths and order are those of `spec.isa.TENSOR_FIELDS`."""

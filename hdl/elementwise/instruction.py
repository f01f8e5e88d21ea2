"""Instruction of the vector and scalar engines as a typed hardware layout of the fields in `spec.isa`."""

from amaranth import signed, unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.memory.port import OnChipStorage
from neuroncore_rtl.hdl.primitives.enumeration import typed_enum
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.isa.access import POINTER_FIELDS
from neuroncore_rtl.spec.isa.alu import AluOp

__all__ = ["ElementwiseInstruction", "ElementwiseOpcode", "Op", "PointerLayout"]


_WIDTHS = dict(isa.ELEMENTWISE_FIELDS)

ElementwiseOpcode = typed_enum("Opcode", isa.Opcode, _WIDTHS["opcode"])
"""Opcodes of `spec.isa`."""

Op = typed_enum("Op", AluOp, _WIDTHS["op0"])
"""Operations of `spec.isa.alu`."""

_TYPES = {
    "opcode": ElementwiseOpcode,
    "op0": Op,
    "op1": Op,
    "dtype": FormatCode,
    "storage": OnChipStorage,
    "index_partition": signed(32),
}


def _type(name: str, width: int):
    """Return the shape of an instruction field.

    A field of an access, such as `a_dtype`, has the type of the part after the access's name.
    """
    role = name.rsplit("_", 1)[-1]
    if role.startswith("step"):
        return signed(width)
    return _TYPES.get(name) or _TYPES.get(role) or unsigned(width)


ElementwiseInstruction = data.StructLayout({name: _type(name, width) for name, width in isa.ELEMENTWISE_FIELDS})
"""One instruction; field widths and order are those of `spec.isa.ELEMENTWISE_FIELDS`, steps are signed."""

PointerLayout = data.StructLayout({name: _type(name, width) for name, width in POINTER_FIELDS})
"""Pointer to a scalar per partition: the lower bits of scalar0 if pointer0 is set, of scalar1 if pointer1 is set."""

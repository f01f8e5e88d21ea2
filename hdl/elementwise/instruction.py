"""The instruction of the vector and the scalar engine as the hardware sees it: the fields of `spec.isa`, with types."""

from amaranth import signed, unsigned
from amaranth.lib import data, enum

from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.memory.port import Storage
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.isa.access import POINTER_FIELDS
from neuroncore_rtl.spec.isa.alu import AluOp

__all__ = ["ElementwiseInstruction", "Op", "Opcode", "PointerLayout"]


class Opcode(enum.Enum, shape=unsigned(6)):
    """Opcodes of `spec.isa`; waveforms show the names."""

    NONE = 0
    TENSOR_COPY = isa.Opcode.TENSOR_COPY.value
    MEMSET = isa.Opcode.MEMSET.value
    TENSOR_TENSOR = isa.Opcode.TENSOR_TENSOR.value
    TENSOR_SCALAR = isa.Opcode.TENSOR_SCALAR.value
    SCALAR_TENSOR_TENSOR = isa.Opcode.SCALAR_TENSOR_TENSOR.value
    TENSOR_SCALAR_REDUCE = isa.Opcode.TENSOR_SCALAR_REDUCE.value
    TENSOR_REDUCE = isa.Opcode.TENSOR_REDUCE.value
    TENSOR_TENSOR_SCAN = isa.Opcode.TENSOR_TENSOR_SCAN.value
    BN_STATS = isa.Opcode.BN_STATS.value
    BN_AGGR = isa.Opcode.BN_AGGR.value
    RECIPROCAL = isa.Opcode.RECIPROCAL.value
    SELECT = isa.Opcode.SELECT.value
    AFFINE_SELECT = isa.Opcode.AFFINE_SELECT.value
    IOTA = isa.Opcode.IOTA.value
    TRANSPOSE = isa.Opcode.TRANSPOSE.value
    MAX8 = isa.Opcode.MAX8.value
    FIND_INDEX8 = isa.Opcode.FIND_INDEX8.value
    MATCH_REPLACE8 = isa.Opcode.MATCH_REPLACE8.value
    DROPOUT = isa.Opcode.DROPOUT.value
    ACTIVATE = isa.Opcode.ACTIVATE.value


class Op(enum.Enum, shape=unsigned(5)):
    """Operations of `spec.isa.alu`; waveforms show the names."""

    BYPASS = AluOp.BYPASS.value
    ADD = AluOp.ADD.value
    SUBTRACT = AluOp.SUBTRACT.value
    MULTIPLY = AluOp.MULTIPLY.value
    MAX = AluOp.MAX.value
    MIN = AluOp.MIN.value
    ABSOLUTE_MAX = AluOp.ABSOLUTE_MAX.value
    DIVIDE = AluOp.DIVIDE.value
    POWER = AluOp.POWER.value
    IS_EQUAL = AluOp.IS_EQUAL.value
    NOT_EQUAL = AluOp.NOT_EQUAL.value
    IS_GT = AluOp.IS_GT.value
    IS_GE = AluOp.IS_GE.value
    IS_LT = AluOp.IS_LT.value
    IS_LE = AluOp.IS_LE.value
    LOGICAL_AND = AluOp.LOGICAL_AND.value
    LOGICAL_OR = AluOp.LOGICAL_OR.value
    LOGICAL_XOR = AluOp.LOGICAL_XOR.value
    BITWISE_AND = AluOp.BITWISE_AND.value
    BITWISE_OR = AluOp.BITWISE_OR.value
    BITWISE_XOR = AluOp.BITWISE_XOR.value
    LOGICAL_SHIFT_LEFT = AluOp.LOGICAL_SHIFT_LEFT.value
    LOGICAL_SHIFT_RIGHT = AluOp.LOGICAL_SHIFT_RIGHT.value


_TYPES = {
    "opcode": Opcode,
    "op0": Op,
    "op1": Op,
    "dtype": FormatCode,
    "storage": Storage,
    "index_partition": signed(32),
}


def _type(name: str, width: int):
    """Return the shape of a field; those of an access are typed by what follows the access's name."""
    role = name.rsplit("_", 1)[-1]
    if role.startswith("step"):
        return signed(width)
    return _TYPES.get(name) or _TYPES.get(role) or unsigned(width)


ElementwiseInstruction = data.StructLayout({name: _type(name, width) for name, width in isa.ELEMENTWISE_FIELDS})
"""One instruction; the widths and their order are those of `spec.isa.ELEMENTWISE_FIELDS`, steps are signed."""

PointerLayout = data.StructLayout({name: _type(name, width) for name, width in POINTER_FIELDS})
"""What the lower bits of scalar0 hold if pointer0 is set; so scalar1."""

"""Instruction decoder: RV32IM with Zicsr and Zifencei."""

from amaranth import Cat, Const, Module, Value, unsigned
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.primitives.enumeration import typed_enum
from neuroncore_rtl.spec.riscv import MULDIV, REGISTER_OPERATIONS, SHIFTS, Opcode, System

__all__ = ["AluOp", "InstructionDecoder", "Kind", "OperandA", "OperandB"]


class Kind(enum.Enum, shape=unsigned(4)):
    """Action of the execute stage. INTERRUPT and FETCH_FAULT are executed instead of a fetched instruction."""

    ALU = 0
    LOAD = 1
    STORE = 2
    BRANCH = 3
    JUMP = 4
    MULTIPLY = 5
    DIVIDE = 6
    CSR = 7
    MRET = 8
    WFI = 9
    ECALL = 10
    EBREAK = 11
    ILLEGAL = 12
    INTERRUPT = 13
    FETCH_FAULT = 14


AluOp = typed_enum(
    "AluOp",
    {
        name.upper(): funct7 >> 5 << 3 | funct3
        for name, (funct7, funct3) in REGISTER_OPERATIONS.items()
        if funct7 != MULDIV
    },
    4,
)
"""ALU operation, coded as in an instruction: funct3 in the lower bits, bit 5 of funct7 above it."""


class OperandA(enum.Enum, shape=unsigned(2)):
    """First operand of the ALU; ZIMM is the 5-bit constant of a CSR instruction."""

    RS1 = 0
    PC = 1
    ZERO = 2
    ZIMM = 3


class OperandB(enum.Enum, shape=unsigned(2)):
    """Second operand of the ALU; FOUR is for the return address of a jump."""

    RS2 = 0
    IMMEDIATE = 1
    FOUR = 2


_SHIFTS = sorted({funct3 for _, funct3 in SHIFTS.values()})


class InstructionDecoder(wiring.Component):
    """Instruction decoder, combinational.

    A FENCE is an ALU instruction without a destination, as accesses are in order. A FENCE.I is a jump to the next
    instruction, which empties the prefetch queue. The fields of both that the ISA reserves are ignored.

    Ports:
        instruction: the word.
        kind: action of the execute stage; a CSR instruction may still turn out illegal.
        op: operation of the ALU; ADD where an instruction uses the ALU only to add or forward operands.
        a, b: ALU operands. For a branch they are the compared values; for a store, b is the stored value.
        base_rs1: the address or jump target is rs1 + immediate; 0: pc + immediate.
        immediate: constant, sign-extended.
        rd: destination register, 0 for none.
        reads_rs1, reads_rs2: the instruction reads the register in that field.
    """

    instruction: In(32)
    kind: Out(Kind)
    op: Out(AluOp)
    a: Out(OperandA)
    b: Out(OperandB)
    base_rs1: Out(1)
    immediate: Out(32)
    rd: Out(5)
    reads_rs1: Out(1)
    reads_rs2: Out(1)

    def elaborate(self, platform):
        m = Module()
        word = self.instruction
        funct3 = word[12:15]
        i_type, s_type, b_type, u_type, j_type = _immediates(word)
        m.d.comb += [self.kind.eq(Kind.ILLEGAL), self.immediate.eq(i_type)]
        with m.Switch(word[:7]):
            with m.Case(Opcode.LUI):
                self._set(m, kind=Kind.ALU, a=OperandA.ZERO, b=OperandB.IMMEDIATE, immediate=u_type, rd=word[7:12])
            with m.Case(Opcode.AUIPC):
                self._set(m, kind=Kind.ALU, a=OperandA.PC, b=OperandB.IMMEDIATE, immediate=u_type, rd=word[7:12])
            with m.Case(Opcode.JAL):
                self._set(m, kind=Kind.JUMP, a=OperandA.PC, b=OperandB.FOUR, immediate=j_type, rd=word[7:12])
            with m.Case(Opcode.JALR):
                self._set(m, a=OperandA.PC, b=OperandB.FOUR, base_rs1=1, reads_rs1=1, rd=word[7:12])
                with m.If(funct3 == 0):
                    self._set(m, kind=Kind.JUMP)
            with m.Case(Opcode.BRANCH):
                self._set(m, immediate=b_type, reads_rs1=1, reads_rs2=1)
                with m.If(funct3[1:] != 0b01):
                    self._set(m, kind=Kind.BRANCH)
            with m.Case(Opcode.LOAD):
                self._set(m, base_rs1=1, reads_rs1=1, rd=word[7:12])
                with m.If((funct3[:2] != 0b11) & (funct3 != 0b110)):
                    self._set(m, kind=Kind.LOAD)
            with m.Case(Opcode.STORE):
                self._set(m, immediate=s_type, base_rs1=1, reads_rs1=1, reads_rs2=1)
                with m.If(funct3 <= 0b010):
                    self._set(m, kind=Kind.STORE)
            with m.Case(Opcode.OP_IMM):
                self._decode_constant(m)
            with m.Case(Opcode.OP):
                self._decode_registers(m)
            with m.Case(Opcode.MISC_MEM):
                with m.If(funct3 == 0):
                    self._set(m, kind=Kind.ALU)
                with m.Elif(funct3 == 1):
                    self._set(m, kind=Kind.JUMP, immediate=4)
            with m.Case(Opcode.SYSTEM):
                self._decode_system(m)
        return m

    def _set(self, m: Module, **outputs) -> None:
        m.d.comb += [getattr(self, name).eq(value) for name, value in outputs.items()]

    def _decode_constant(self, m: Module) -> None:
        """Decode an ALU operation with a constant.

        The constant of a shift has five bits; its funct7 is part of the opcode.
        """
        word = self.instruction
        funct3, funct7 = word[12:15], word[25:32]
        register_op = Cat(funct3, funct7[5])
        is_shift = (funct3 == _SHIFTS[0]) | (funct3 == _SHIFTS[1])
        self._set(m, b=OperandB.IMMEDIATE, reads_rs1=1, rd=word[7:12])
        with m.If(~is_shift):
            self._set(m, kind=Kind.ALU, op=Cat(funct3, Const(0, 1)))
        with m.Elif((funct7 == 0) | (register_op == AluOp.SRA) & (funct7 == 0b0100000)):
            self._set(m, kind=Kind.ALU, op=register_op)

    def _decode_registers(self, m: Module) -> None:
        word = self.instruction
        funct3, funct7 = word[12:15], word[25:32]
        register_op = Cat(funct3, funct7[5])
        self._set(m, reads_rs1=1, reads_rs2=1, rd=word[7:12], op=register_op)
        with m.Switch(funct7):
            with m.Case(0b0000000):
                self._set(m, kind=Kind.ALU)
            with m.Case(0b0100000):
                with m.If((register_op == AluOp.SUB) | (register_op == AluOp.SRA)):
                    self._set(m, kind=Kind.ALU)
            with m.Case(MULDIV):
                with m.If(funct3[2]):
                    self._set(m, kind=Kind.DIVIDE)
                with m.Else():
                    self._set(m, kind=Kind.MULTIPLY)

    def _decode_system(self, m: Module) -> None:
        word = self.instruction
        funct3 = word[12:15]
        with m.If(funct3[:2].any()):
            self._set(m, kind=Kind.CSR, rd=word[7:12], reads_rs1=~funct3[2])
            with m.If(funct3[2]):
                self._set(m, a=OperandA.ZIMM)
        with m.Else(), m.Switch(word):
            for code in System:
                with m.Case(code):
                    self._set(m, kind=Kind[code.name])


def _immediates(word: Value) -> tuple[Value, ...]:
    """Return the sign-extended constants of an instruction word, by format: types I, S, B, U and J."""

    def sign(count: int) -> Value:
        return word[31].replicate(count)

    return (
        Cat(word[20:32], sign(20)),
        Cat(word[7:12], word[25:32], sign(20)),
        Cat(Const(0, 1), word[8:12], word[25:31], word[7], sign(20)),
        Cat(Const(0, 12), word[12:32]),
        Cat(Const(0, 1), word[21:31], word[20], word[12:20], sign(12)),
    )

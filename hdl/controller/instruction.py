"""RV32IM with Zicsr and Zifencei: what an instruction is, and which operands it takes."""

from amaranth import Cat, Const, Module, unsigned
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["AluOp", "InstructionDecoder", "Kind", "Opcode", "OperandA", "OperandB"]


class Opcode(enum.Enum, shape=unsigned(7)):
    """Bits 0 to 6 of an instruction (RISC-V unprivileged ISA, table of major opcodes)."""

    LOAD = 0x03
    MISC_MEM = 0x0F
    OP_IMM = 0x13
    AUIPC = 0x17
    STORE = 0x23
    OP = 0x33
    LUI = 0x37
    BRANCH = 0x63
    JALR = 0x67
    JAL = 0x6F
    SYSTEM = 0x73


class Kind(enum.Enum, shape=unsigned(4)):
    """What the execute stage does with an instruction. INTERRUPT and FETCH_FAULT take the place of one."""

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


class AluOp(enum.Enum, shape=unsigned(4)):
    """funct3, and above it bit 5 of funct7."""

    ADD = 0
    SLL = 1
    SLT = 2
    SLTU = 3
    XOR = 4
    SRL = 5
    OR = 6
    AND = 7
    SUB = 8
    SRA = 13


class OperandA(enum.Enum, shape=unsigned(2)):
    """The ALU's first operand; ZIMM is the 5-bit constant of a CSR instruction."""

    RS1 = 0
    PC = 1
    ZERO = 2
    ZIMM = 3


class OperandB(enum.Enum, shape=unsigned(2)):
    """Its second; FOUR makes the return address of a jump."""

    RS2 = 0
    IMMEDIATE = 1
    FOUR = 2


_SHIFTS = (0b001, 0b101)
_MULDIV = 0b0000001
"""funct7 of the M extension."""
_ECALL, _EBREAK, _WFI, _MRET = 0x0000_0073, 0x0010_0073, 0x1050_0073, 0x3020_0073


class InstructionDecoder(wiring.Component):
    """Decode one instruction, within the cycle.

    A FENCE is an ALU instruction without a destination, as accesses are in order; a FENCE.I is a jump to the next
    instruction, which empties the prefetch queue. Fields that the ISA tells to ignore in them are ignored.

    Ports:
        instruction: the word.
        kind: what it is; a CSR instruction may turn out illegal later, by its CSR.
        op: for the ALU; ADD where it only passes a sum.
        a, b: operands of the ALU; of a branch what is compared, of a store b is what is stored.
        base_rs1: the address or target is rs1 + immediate rather than pc + immediate.
        immediate: sign-extended.
        rd: 0 if it writes no register. reads_rs1, reads_rs2: it reads the register in that field.
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
        funct3, funct7 = word[12:15], word[25:32]
        register_op = Cat(funct3, funct7[5])
        is_shift = (funct3 == _SHIFTS[0]) | (funct3 == _SHIFTS[1])

        def sign(count: int):
            return word[31].replicate(count)

        i_type = Cat(word[20:32], sign(20))
        s_type = Cat(word[7:12], word[25:32], sign(20))
        b_type = Cat(Const(0, 1), word[8:12], word[25:31], word[7], sign(20))
        u_type = Cat(Const(0, 12), word[12:32])
        j_type = Cat(Const(0, 1), word[21:31], word[20], word[12:20], sign(12))

        m.d.comb += [self.kind.eq(Kind.ILLEGAL), self.immediate.eq(i_type)]
        with m.Switch(word[:7]):
            with m.Case(Opcode.LUI):
                m.d.comb += [self.kind.eq(Kind.ALU), self.a.eq(OperandA.ZERO), self.b.eq(OperandB.IMMEDIATE)]
                m.d.comb += [self.immediate.eq(u_type), self.rd.eq(word[7:12])]
            with m.Case(Opcode.AUIPC):
                m.d.comb += [self.kind.eq(Kind.ALU), self.a.eq(OperandA.PC), self.b.eq(OperandB.IMMEDIATE)]
                m.d.comb += [self.immediate.eq(u_type), self.rd.eq(word[7:12])]
            with m.Case(Opcode.JAL):
                m.d.comb += [self.kind.eq(Kind.JUMP), self.a.eq(OperandA.PC), self.b.eq(OperandB.FOUR)]
                m.d.comb += [self.immediate.eq(j_type), self.rd.eq(word[7:12])]
            with m.Case(Opcode.JALR):
                m.d.comb += [self.a.eq(OperandA.PC), self.b.eq(OperandB.FOUR)]
                m.d.comb += [self.base_rs1.eq(1), self.reads_rs1.eq(1), self.rd.eq(word[7:12])]
                with m.If(funct3 == 0):
                    m.d.comb += self.kind.eq(Kind.JUMP)
            with m.Case(Opcode.BRANCH):
                m.d.comb += [self.immediate.eq(b_type), self.reads_rs1.eq(1), self.reads_rs2.eq(1)]
                with m.If(funct3[1:] != 0b01):
                    m.d.comb += self.kind.eq(Kind.BRANCH)
            with m.Case(Opcode.LOAD):
                m.d.comb += [self.base_rs1.eq(1), self.reads_rs1.eq(1), self.rd.eq(word[7:12])]
                with m.If((funct3[:2] != 0b11) & (funct3 != 0b110)):
                    m.d.comb += self.kind.eq(Kind.LOAD)
            with m.Case(Opcode.STORE):
                m.d.comb += [self.immediate.eq(s_type), self.base_rs1.eq(1)]
                m.d.comb += [self.reads_rs1.eq(1), self.reads_rs2.eq(1)]
                with m.If(funct3 <= 0b010):
                    m.d.comb += self.kind.eq(Kind.STORE)
            with m.Case(Opcode.OP_IMM):
                m.d.comb += [self.b.eq(OperandB.IMMEDIATE), self.reads_rs1.eq(1), self.rd.eq(word[7:12])]
                with m.If(~is_shift):
                    m.d.comb += [self.kind.eq(Kind.ALU), self.op.eq(Cat(funct3, Const(0, 1)))]
                with m.Elif((funct7 == 0) | (register_op == AluOp.SRA) & (funct7 == 0b0100000)):
                    m.d.comb += [self.kind.eq(Kind.ALU), self.op.eq(register_op)]
            with m.Case(Opcode.OP):
                m.d.comb += [self.reads_rs1.eq(1), self.reads_rs2.eq(1), self.rd.eq(word[7:12])]
                m.d.comb += self.op.eq(register_op)
                with m.Switch(funct7):
                    with m.Case(0b0000000):
                        m.d.comb += self.kind.eq(Kind.ALU)
                    with m.Case(0b0100000):
                        with m.If((register_op == AluOp.SUB) | (register_op == AluOp.SRA)):
                            m.d.comb += self.kind.eq(Kind.ALU)
                    with m.Case(_MULDIV):
                        with m.If(funct3[2]):
                            m.d.comb += self.kind.eq(Kind.DIVIDE)
                        with m.Else():
                            m.d.comb += self.kind.eq(Kind.MULTIPLY)
            with m.Case(Opcode.MISC_MEM):
                with m.If(funct3 == 0):
                    m.d.comb += self.kind.eq(Kind.ALU)
                with m.Elif(funct3 == 1):
                    m.d.comb += [self.kind.eq(Kind.JUMP), self.immediate.eq(4)]
            with m.Case(Opcode.SYSTEM):
                with m.If(funct3[:2].any()):
                    m.d.comb += [self.kind.eq(Kind.CSR), self.rd.eq(word[7:12]), self.reads_rs1.eq(~funct3[2])]
                    with m.If(funct3[2]):
                        m.d.comb += self.a.eq(OperandA.ZIMM)
                with m.Else(), m.Switch(word):
                    for code, kind in (
                        (_ECALL, Kind.ECALL),
                        (_EBREAK, Kind.EBREAK),
                        (_WFI, Kind.WFI),
                        (_MRET, Kind.MRET),
                    ):
                        with m.Case(code):
                            m.d.comb += self.kind.eq(kind)
        return m

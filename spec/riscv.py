"""RISC-V instruction words, RV32IM with Zicsr and Zifencei: codes and bit fields.

Sources: the RISC-V unprivileged and privileged specifications.
"""

import enum

__all__ = [
    "BRANCHES", "CSR_OPERATIONS", "FUNCT3", "FUNCT7", "IMMEDIATES", "IMMEDIATE_OPERATIONS", "LOADS", "MULDIV", "RD",
    "REGISTER_OPERATIONS", "RS1", "RS2", "SHIFTS", "STORES", "Csr", "Opcode", "System",
]  # fmt: skip


class Opcode(enum.IntEnum):
    """Major opcodes, bits 0 to 6 of an instruction."""

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


class System(enum.IntEnum):
    """Words of the system instructions."""

    ECALL = 0x0000_0073
    EBREAK = 0x0010_0073
    WFI = 0x1050_0073
    MRET = 0x3020_0073


class Csr(enum.IntEnum):
    """Addresses of the controller's control and status registers."""

    MSTATUS = 0x300
    MISA = 0x301
    MIE = 0x304
    MTVEC = 0x305
    MSTATUSH = 0x310
    MCOUNTINHIBIT = 0x320
    MHPMEVENT3 = 0x323
    MSCRATCH = 0x340
    MEPC = 0x341
    MCAUSE = 0x342
    MTVAL = 0x343
    MIP = 0x344
    MCYCLE = 0xB00
    MINSTRET = 0xB02
    MHPMCOUNTER3 = 0xB03
    MCYCLEH = 0xB80
    MINSTRETH = 0xB82
    CYCLE = 0xC00
    TIME = 0xC01
    INSTRET = 0xC02
    CYCLEH = 0xC80
    TIMEH = 0xC81
    INSTRETH = 0xC82
    MVENDORID = 0xF11
    MARCHID = 0xF12
    MIMPID = 0xF13
    MHARTID = 0xF14


RD, FUNCT3, RS1, RS2, FUNCT7 = 7, 12, 15, 20, 25
"""Lowest bits of the fields: registers have 5 bits, funct3 has 3 and funct7 has 7."""

IMMEDIATES = {
    "I": ((20, 12, 0),),
    "S": ((7, 5, 0), (25, 7, 5)),
    "B": ((8, 4, 1), (25, 6, 5), (7, 1, 11), (31, 1, 12)),
    "U": ((12, 20, 12),),
    "J": ((21, 10, 1), (20, 1, 11), (12, 8, 12), (31, 1, 20)),
}
"""Bits of the immediate, by instruction format: (lowest bit in the word, width, lowest bit in the value). The value's
highest bit is its sign.
"""

MULDIV = 1

REGISTER_OPERATIONS = {
    "add": (0, 0), "sub": (0x20, 0), "sll": (0, 1), "slt": (0, 2), "sltu": (0, 3), "xor": (0, 4), "srl": (0, 5),
    "sra": (0x20, 5), "or": (0, 6), "and": (0, 7), "mul": (MULDIV, 0), "mulh": (MULDIV, 1), "mulhsu": (MULDIV, 2),
    "mulhu": (MULDIV, 3), "div": (MULDIV, 4), "divu": (MULDIV, 5), "rem": (MULDIV, 6), "remu": (MULDIV, 7),
}  # fmt: skip
"""funct7 and funct3 of OP."""

IMMEDIATE_OPERATIONS = {"addi": 0, "slti": 2, "sltiu": 3, "xori": 4, "ori": 6, "andi": 7}
"""funct3 of OP_IMM."""

SHIFTS = {"slli": (0, 1), "srli": (0, 5), "srai": (0x20, 5)}
"""funct7 and funct3 of OP_IMM; the shift distance is in the field of rs2."""

# funct3 of the other opcodes.
BRANCHES = {"beq": 0, "bne": 1, "blt": 4, "bge": 5, "bltu": 6, "bgeu": 7}
LOADS = {"lb": 0, "lh": 1, "lw": 2, "lbu": 4, "lhu": 5}
STORES = {"sb": 0, "sh": 1, "sw": 2}
CSR_OPERATIONS = {"csrrw": 1, "csrrs": 2, "csrrc": 3, "csrrwi": 5, "csrrsi": 6, "csrrci": 7}

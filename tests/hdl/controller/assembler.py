"""A small assembler, so that tests read as programs. It knows RV32IM, Zicsr and what the tests need of the rest.

A line is `[label:] [mnemonic operands] [# comment]`; registers are x0 to x31, an address is a label or a number, a CSR
is a number or a name of :data:`CSRS`. `li` takes two words always, so that labels do not move.
"""

import re

from neuroncore_rtl.spec.memory_map import LOCAL_BASE

__all__ = ["CSRS", "assemble"]

CSRS = {
    "mstatus": 0x300, "misa": 0x301, "mie": 0x304, "mtvec": 0x305, "mstatush": 0x310, "mcountinhibit": 0x320,
    "mhpmevent3": 0x323, "mscratch": 0x340, "mepc": 0x341, "mcause": 0x342, "mtval": 0x343, "mip": 0x344,
    "mcycle": 0xB00, "minstret": 0xB02, "mhpmcounter3": 0xB03, "mcycleh": 0xB80, "minstreth": 0xB82, "cycle": 0xC00,
    "time": 0xC01, "instret": 0xC02, "cycleh": 0xC80, "timeh": 0xC81, "instreth": 0xC82, "mvendorid": 0xF11,
    "marchid": 0xF12, "mimpid": 0xF13, "mhartid": 0xF14,
}  # fmt: skip

_REGISTER = {  # funct7, funct3
    "add": (0, 0), "sub": (0x20, 0), "sll": (0, 1), "slt": (0, 2), "sltu": (0, 3), "xor": (0, 4), "srl": (0, 5),
    "sra": (0x20, 5), "or": (0, 6), "and": (0, 7), "mul": (1, 0), "mulh": (1, 1), "mulhsu": (1, 2), "mulhu": (1, 3),
    "div": (1, 4), "divu": (1, 5), "rem": (1, 6), "remu": (1, 7),
}  # fmt: skip
_IMMEDIATE = {"addi": 0, "slti": 2, "sltiu": 3, "xori": 4, "ori": 6, "andi": 7}
_SHIFT = {"slli": (0, 1), "srli": (0, 5), "srai": (0x20, 5)}
_BRANCH = {"beq": 0, "bne": 1, "blt": 4, "bge": 5, "bltu": 6, "bgeu": 7}
_LOAD = {"lb": 0, "lh": 1, "lw": 2, "lbu": 4, "lhu": 5}
_STORE = {"sb": 0, "sh": 1, "sw": 2}
_CSR = {"csrrw": 1, "csrrs": 2, "csrrc": 3, "csrrwi": 5, "csrrsi": 6, "csrrci": 7}
_WHOLE = {
    "ecall": 0x0000_0073, "ebreak": 0x0010_0073, "wfi": 0x1050_0073, "mret": 0x3020_0073, "fence": 0x0FF0_000F,
    "fence.i": 0x0000_100F, "nop": 0x0000_0013,
}  # fmt: skip


def assemble(text: str, base: int = LOCAL_BASE) -> list[int]:
    """Return the words of a program."""
    labels, lines, pc = {}, [], base
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if match := re.match(r"(\w+):", line):
            labels[match[1]] = pc
            line = line[match.end() :].strip()
        if line:
            lines.append((pc, line))
            pc += 8 if line.startswith("li ") else 4
    return [word for pc, line in lines for word in _encode(line, pc, labels)]


def _encode(line: str, pc: int, labels: dict[str, int]) -> list[int]:
    mnemonic, *rest = line.split(maxsplit=1)
    operands = re.split(r"[,()\s]+", rest[0].rstrip(")")) if rest else []

    def number(position: int) -> int:
        text = operands[position]
        return labels[text] if text in labels else int(text, 0)

    def register(position: int) -> int:
        text = operands[position]
        assert re.fullmatch(r"x([12]?[0-9]|3[01])", text), line
        return int(text[1:])

    if mnemonic in _WHOLE:
        return [_WHOLE[mnemonic]]
    if mnemonic == ".word":
        return [number(0) & 0xFFFF_FFFF]
    if mnemonic == "li":
        value = number(1)
        upper = (value + 0x800) & 0xFFFF_F000
        return [upper | register(0) << 7 | 0x37, _i(value - upper, register(0), 0, register(0), 0x13)]
    if mnemonic in ("lui", "auipc"):
        return [number(1) << 12 & 0xFFFF_F000 | register(0) << 7 | (0x37 if mnemonic == "lui" else 0x17)]
    if mnemonic in _REGISTER:
        funct7, funct3 = _REGISTER[mnemonic]
        return [funct7 << 25 | register(2) << 20 | register(1) << 15 | funct3 << 12 | register(0) << 7 | 0x33]
    if mnemonic in _IMMEDIATE:
        return [_i(number(2), register(1), _IMMEDIATE[mnemonic], register(0), 0x13)]
    if mnemonic in _SHIFT:
        funct7, funct3 = _SHIFT[mnemonic]
        return [_i(funct7 << 5 | number(2), register(1), funct3, register(0), 0x13)]
    if mnemonic in _LOAD:
        return [_i(number(1), register(2), _LOAD[mnemonic], register(0), 0x03)]
    if mnemonic == "jalr":
        return [_i(number(1), register(2), 0, register(0), 0x67)]
    if mnemonic in _STORE:
        value = number(1)
        fields = (value >> 5 & 0x7F) << 25 | register(0) << 20 | register(2) << 15 | (value & 0x1F) << 7
        return [fields | _STORE[mnemonic] << 12 | 0x23]
    if mnemonic in _BRANCH:
        offset = number(2) - pc
        fields = (
            (offset >> 12 & 1) << 31 | (offset >> 5 & 0x3F) << 25 | (offset >> 1 & 0xF) << 8 | (offset >> 11 & 1) << 7
        )
        return [fields | register(1) << 20 | register(0) << 15 | _BRANCH[mnemonic] << 12 | 0x63]
    if mnemonic == "jal":
        offset = number(1) - pc
        fields = (offset >> 20 & 1) << 31 | (offset >> 1 & 0x3FF) << 21 | (offset >> 11 & 1) << 20
        return [fields | (offset >> 12 & 0xFF) << 12 | register(0) << 7 | 0x6F]
    if mnemonic in _CSR:
        csr = CSRS[operands[1]] if operands[1] in CSRS else number(1)
        source = number(2) if mnemonic.endswith("i") else register(2)
        return [_i(csr, source, _CSR[mnemonic], register(0), 0x73)]
    raise ValueError(f"unknown instruction: {line}")


def _i(immediate: int, rs1: int, funct3: int, rd: int, opcode: int) -> int:
    return (immediate & 0xFFF) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode

"""A small assembler, so that tests read as programs. It knows RV32IM, Zicsr and what the tests need of the rest.

A line is `[label:] [mnemonic operands] [# comment]`; a semicolon ends it, too; registers are x0 to x31, an address
is a label or a number, a CSR is a number or a name of `spec.riscv.Csr`. `li` takes two words always, so that labels do
not move.
"""

import re

from neuroncore_rtl.spec import riscv
from neuroncore_rtl.spec.memory_map import LOCAL_BASE
from neuroncore_rtl.spec.riscv import Csr, Opcode
from neuroncore_rtl.tb.stimulus.riscv_encoding import b_type, i_type, j_type, load_constant, r_type, s_type, u_type

__all__ = ["assemble", "framed"]

_WHOLE = {word.name.lower(): word.value for word in riscv.System} | {
    "fence": 0x0FF0_000F, "fence.i": 0x0000_100F, "nop": 0x0000_0013,
}  # fmt: skip


def framed(program: str, end: int) -> str:
    """Return a program that leads traps to its label `handler`, if it has one, in three words at its beginning, and
    ends by writing 0 to the address `end`, which then is in x31, behind its last line: there is the label `end`."""
    setup = "li x1, handler; csrrw x0, mtvec, x1" if "handler:" in program else ""
    return f"{setup}\n{program}\nend: li x31, {end}\n sw x0, 0(x31)"


def assemble(text: str, base: int = LOCAL_BASE) -> list[int]:
    """Return the words of a program."""
    labels, lines, pc = {}, [], base
    for line in text.replace(";", "\n").splitlines():
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

    def address() -> tuple[int, int]:
        """The base register and the offset of `OFFSET(BASE)`, behind the first operand."""
        return register(2), number(1)

    if mnemonic in _WHOLE:
        return [_WHOLE[mnemonic]]
    if mnemonic == ".word":
        return [number(0) & 0xFFFF_FFFF]
    if mnemonic == "li":
        return load_constant(register(0), number(1))
    if mnemonic in ("lui", "auipc"):
        return [u_type(Opcode[mnemonic.upper()], register(0), number(1) << 12)]
    if mnemonic in riscv.REGISTER_OPERATIONS:
        funct7, funct3 = riscv.REGISTER_OPERATIONS[mnemonic]
        return [r_type(Opcode.OP, register(0), funct3, register(1), register(2), funct7)]
    if mnemonic in riscv.IMMEDIATE_OPERATIONS:
        funct3 = riscv.IMMEDIATE_OPERATIONS[mnemonic]
        return [i_type(Opcode.OP_IMM, register(0), funct3, register(1), number(2))]
    if mnemonic in riscv.SHIFTS:
        funct7, funct3 = riscv.SHIFTS[mnemonic]
        return [i_type(Opcode.OP_IMM, register(0), funct3, register(1), funct7 << 5 | number(2))]
    if mnemonic in riscv.LOADS:
        return [i_type(Opcode.LOAD, register(0), riscv.LOADS[mnemonic], *address())]
    if mnemonic == "jalr":
        return [i_type(Opcode.JALR, register(0), 0, *address())]
    if mnemonic in riscv.STORES:
        base, offset = address()
        return [s_type(Opcode.STORE, riscv.STORES[mnemonic], base, register(0), offset)]
    if mnemonic in riscv.BRANCHES:
        return [b_type(Opcode.BRANCH, riscv.BRANCHES[mnemonic], register(0), register(1), number(2) - pc)]
    if mnemonic == "jal":
        return [j_type(Opcode.JAL, register(0), number(1) - pc)]
    if mnemonic in riscv.CSR_OPERATIONS:
        name = operands[1].upper()
        csr = Csr[name] if name in Csr.__members__ else number(1)
        source = number(2) if mnemonic.endswith("i") else register(2)
        return [i_type(Opcode.SYSTEM, register(0), riscv.CSR_OPERATIONS[mnemonic], source, csr)]
    raise ValueError(f"unknown instruction: {line}")

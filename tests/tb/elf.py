"""ELF files for the controller's processor."""

import struct

from neuroncore_rtl.spec.memory_map import LOCAL_BASE
from neuroncore_rtl.tb.stimulus.riscv_encoding import j_type, load_constant, s_type
from neuroncore_rtl.tb.stimulus.riscv_programs import TOHOST

__all__ = ["elf", "image"]


def image(*words):
    return b"".join(word.to_bytes(4, "little") for word in words)


def elf(*, machine=243, bits=32, kind=2, entry=LOCAL_BASE, symbols=None, code=1, address=LOCAL_BASE):
    """Return an ELF file with a program that writes `code` to the word `tohost`."""
    ident = b"\x7fELF" + bytes([bits // 32, 1, 1]) + bytes(9)
    if bits == 64:
        return ident + struct.pack("<HHIQQQIHHHHHH", kind, machine, 1, entry, 0, 0, 0, 64, 0, 0, 64, 0, 0)
    words = [*load_constant(5, TOHOST), *load_constant(6, code), s_type(0x23, 2, 5, 6, 0), j_type(0x6F, 0, 0)]
    text = image(*words)
    strings, table = b"\0.symtab\0.strtab\0", bytes(16)
    for name, value in (symbols or {"tohost": TOHOST}).items():
        table += struct.pack("<IIIBBH", len(strings), value, 8, 0x10, 0, 0xFFF1)
        strings += name.encode() + b"\0"
    text_at, symbols_at = 52 + 32, 52 + 32 + len(text)
    strings_at = symbols_at + len(table)
    sections_at = -(-(strings_at + len(strings)) // 4) * 4
    header = ident + struct.pack("<HHIIIIIHHHHHH", kind, machine, 1, entry, 52, sections_at, 0, 52, 32, 1, 40, 3, 2)
    segment = struct.pack("<IIIIIIII", 1, text_at, address, address, len(text), len(text), 7, 4)
    sections = bytes(40) + struct.pack("<10I", 1, 2, 0, 0, symbols_at, len(table), 2, 1, 4, 16)
    sections += struct.pack("<10I", 9, 3, 0, 0, strings_at, len(strings), 0, 0, 1, 0)
    return (header + segment + text + table + strings).ljust(sections_at, b"\0") + sections

"""Programs for the controller as ELF files, whoever compiled them."""

from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from neuroncore_rtl.spec.memory_map import LOCAL_BASE
from neuroncore_rtl.tb.sim.report import shown
from neuroncore_rtl.tb.sim.settings import UsageError

__all__ = ["Executable", "read_elf"]

RVC = 1
"""Bit of an ELF file's flags: it may have compressed instructions."""


@dataclass(frozen=True)
class Executable:
    """A program that tells the host how it ended.

    Arguments:
        image: bytes from LOCAL_BASE on.
        tohost: address of the word that it writes at the end: 1 if it passed.
        fromhost: address of the word that answers requests to the host; 0 if there is none.
        compressed: whether it may have compressed instructions, which the processor does not know.
    """

    image: bytes
    tohost: int
    fromhost: int = 0
    compressed: bool = False


def read_elf(path: Path, memory_bytes: int) -> Executable:
    """Return the program of an ELF file.

    Arguments:
        path: the file.
        memory_bytes: size of the memory that it must fit, from LOCAL_BASE on.

    Raises:
        UsageError: if it is none for this processor, or does not have the symbol `tohost`.
    """
    name = shown(path)
    with path.open("rb") as file:
        try:
            elf = ELFFile(file)
        except ELFError as error:
            raise UsageError(f"ELF must be an ELF file, not {name}: {error}") from error
        _check_header(elf, name)
        compressed = bool(elf["e_flags"] & RVC)
        image = _load(elf, name, memory_bytes)
        table = elf.get_section_by_name(".symtab")
        symbols = {symbol.name: symbol["st_value"] for symbol in table.iter_symbols()} if table else {}
    if "tohost" not in symbols:
        raise UsageError(
            f"{name} must have the symbol tohost, the word that it writes at its end"
            + ("" if table else "; it has no symbols at all: was it stripped?")
        )
    return Executable(image, symbols["tohost"], symbols.get("fromhost", 0), compressed=compressed)


def _check_header(elf: ELFFile, name: str) -> None:
    machine, kind = elf["e_machine"], elf["e_type"]
    order = "little-endian" if elf.little_endian else "big-endian"
    if machine != "EM_RISCV" or elf.elfclass != 32 or not elf.little_endian:
        raise UsageError(f"{name} must be for 32-bit little-endian RISC-V, not {elf.elfclass}-bit {order} {machine}")
    if kind != "ET_EXEC":
        raise UsageError(f"{name} must be a linked executable (ET_EXEC), not {kind}")
    if elf["e_entry"] != LOCAL_BASE:
        raise UsageError(f"{name} must start at {LOCAL_BASE:#x}, not {elf['e_entry']:#x}")


def _load(elf: ELFFile, name: str, memory_bytes: int) -> bytes:
    image = bytearray(memory_bytes)
    for segment in elf.iter_segments("PT_LOAD"):
        first = segment["p_paddr"] - LOCAL_BASE
        if segment["p_memsz"] and not 0 <= first <= memory_bytes - segment["p_memsz"]:
            raise UsageError(
                f"{name} must lie in memory, {LOCAL_BASE:#x} to {LOCAL_BASE + memory_bytes:#x}, "
                f"not at {segment['p_paddr']:#x} with {segment['p_memsz']:#x} bytes"
            )
        image[first : first + segment["p_filesz"]] = segment.data()
    return bytes(image).rstrip(b"\0")

"""Reader of ELF files for the controller, from any compiler: segments and symbols."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from neuroncore_rtl.spec.memory_map import LOCAL_BASE, LOCAL_BYTES

__all__ = ["Elf", "ElfError", "read_elf"]

RVC = 1
"""Flag of an ELF file: it may contain compressed instructions."""


class ElfError(ValueError):
    """The file is not a program for the controller."""


@dataclass(frozen=True)
class Elf:
    """Linked program.

    `image` is the contents of memory from LOCAL_BASE on, zeros between segments. In `symbols`, a global symbol has
    precedence over a local one. The processor does not support `compressed` instructions.
    """

    image: bytes
    symbols: Mapping[str, int]
    compressed: bool = False


def read_elf(path: Path, memory_bytes: int = LOCAL_BYTES, name: str | None = None) -> Elf:
    """Return the program of an ELF file.

    It must fit `memory_bytes` from LOCAL_BASE on. Messages call it `name`, by default its path. Raises ElfError if it
    is not for this processor, does not fit, or is damaged.
    """
    name = str(path) if name is None else name
    with path.open("rb") as file:
        try:
            elf = ELFFile(file)
        except ELFError as error:
            raise ElfError(f"ELF must be an ELF file, not {name}: {error}") from error
        try:
            _check_header(elf, name)
            _check_extent(elf, name)
            return Elf(_image(elf, name, memory_bytes), _symbols(elf), compressed=bool(elf["e_flags"] & RVC))
        except ElfError:
            raise
        except Exception as error:  # elftools does not validate files, so any exception may occur
            said = " ".join(f"{type(error).__name__}: {error}".split())
            raise ElfError(f"{name} must be a whole ELF file; this one is damaged or cut short ({said})") from error


def _check_header(elf: ELFFile, name: str) -> None:
    machine, kind = elf["e_machine"], elf["e_type"]
    order = "little-endian" if elf.little_endian else "big-endian"
    if machine != "EM_RISCV" or elf.elfclass != 32 or not elf.little_endian:
        raise ElfError(f"{name} must be for 32-bit little-endian RISC-V, not {elf.elfclass}-bit {order} {machine}")
    if kind != "ET_EXEC":
        raise ElfError(f"{name} must be a linked executable (ET_EXEC), not {kind}")
    if elf["e_entry"] != LOCAL_BASE:
        raise ElfError(f"{name} must start at {LOCAL_BASE:#x}, not {elf['e_entry']:#x}")


def _check_extent(elf: ELFFile, name: str) -> None:
    segments = list(enumerate(elf.iter_segments("PT_LOAD")))
    parts = [("its program headers", elf["e_phoff"], elf["e_phnum"] * elf["e_phentsize"])]
    parts.append(("its section headers", elf["e_shoff"], elf["e_shnum"] * elf["e_shentsize"]))
    parts += [(f"segment {n}", segment["p_offset"], segment["p_filesz"]) for n, segment in segments]
    for what, offset, size in parts:
        if offset + size > elf.stream_len:
            raise ElfError(
                f"{name} must hold {what}, bytes {offset:#x} to {offset + size:#x}; it ends at {elf.stream_len:#x}: "
                "it is damaged or cut short"
            )
    for n, segment in segments:
        if segment["p_filesz"] > segment["p_memsz"]:
            sizes = f"{segment['p_filesz']:#x} bytes in {segment['p_memsz']:#x}"
            raise ElfError(f"{name} must have room for segment {n} in memory: {sizes}")


def _image(elf: ELFFile, name: str, memory_bytes: int) -> bytes:
    image = bytearray(memory_bytes)
    for segment in elf.iter_segments("PT_LOAD"):
        first = segment["p_paddr"] - LOCAL_BASE
        if segment["p_memsz"] and not 0 <= first <= memory_bytes - segment["p_memsz"]:
            raise ElfError(
                f"{name} must lie in memory, {LOCAL_BASE:#x} to {LOCAL_BASE + memory_bytes:#x}, "
                f"not at {segment['p_paddr']:#x} with {segment['p_memsz']:#x} bytes"
            )
        image[first : first + segment["p_filesz"]] = segment.data()
    return bytes(image).rstrip(b"\0")


def _symbols(elf: ELFFile) -> dict[str, int]:
    table: Any = elf.get_section_by_name(".symtab")
    symbols = [symbol for symbol in table.iter_symbols() if symbol.name] if table else []
    ordered = sorted(symbols, key=lambda symbol: symbol["st_info"]["bind"] != "STB_LOCAL")
    return {symbol.name: symbol["st_value"] for symbol in ordered}

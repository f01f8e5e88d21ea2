"""Programs for the controller that tell the host how they ended."""

from dataclasses import dataclass
from pathlib import Path

from neuroncore_rtl.kernels.control.elf import ElfError, read_elf
from neuroncore_rtl.tb.sim.report import shown
from neuroncore_rtl.tb.sim.settings import UsageError

__all__ = ["Executable", "read_executable"]


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


def read_executable(path: Path, memory_bytes: int) -> Executable:
    """Return the program of an ELF file.

    Arguments:
        path: the file.
        memory_bytes: size of the memory that it must fit, from LOCAL_BASE on.

    Raises:
        UsageError: if it is none for this processor, or does not have the symbol `tohost`.
    """
    name = shown(path)
    try:
        elf = read_elf(path, memory_bytes, name)
    except ElfError as error:
        raise UsageError(str(error)) from error
    symbols = elf.symbols
    if "tohost" not in symbols:
        raise UsageError(
            f"{name} must have the symbol tohost, the word that it writes at its end"
            + ("" if symbols else "; it has no symbols at all: was it stripped?")
        )
    return Executable(elf.image, symbols["tohost"], symbols.get("fromhost", 0), compressed=elf.compressed)

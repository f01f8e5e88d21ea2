"""Compiled test programs of this folder, and their expected exit codes."""

from functools import cache
from pathlib import Path

from neuroncore_rtl.kernels.control import compile_program
from neuroncore_rtl.run.harness.riscv import MEMORY_BYTES, Executable
from neuroncore_rtl.spec.memory_map import EXIT, LOCAL_BASE

__all__ = ["ARGUMENTS", "PROGRAMS", "executable"]

HERE = Path(__file__).parent

ARGUMENTS = (0xFEED_F00D, 42)  # words behind every program; `library` checks them

PROGRAMS = {"traps": 0, "interrupts": 0, "counters": 0, "library": 42, "unhandled": 0x8000_0005}
"""Exit code by name: 0 if passed, unless the program sets another; on failure the line of the failed check."""


@cache
def executable(name: str) -> Executable:
    program = compile_program([HERE / f"{name}.c"], flags=[f"-DMEMORY_END={LOCAL_BASE + MEMORY_BYTES:#x}u"])
    return Executable(program.image(ARGUMENTS), EXIT)

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from neuroncore_rtl.kernels.control.compile import ControlProgram, compile_program
from neuroncore_rtl.run.harness.riscv import MEMORY_BYTES, CpuDevice, CpuWork, Executable, TraceEntry
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.spec.memory_map import EXIT, LOCAL_BASE
from neuroncore_rtl.tb.check.riscv_lockstep import compare

__all__ = ["TOP", "Run", "assemble", "run"]
TOP = LOCAL_BASE + MEMORY_BYTES


@dataclass(frozen=True)
class Run:
    """Result of a program: trace and labels."""

    trace: list[TraceEntry]
    labels: Mapping[str, int]

    @property
    def traps(self) -> list[tuple[int, int]]:
        return [(entry.pc, entry.cause) for entry in self.trace if entry.trap]

    def written(self, register: int) -> list[int]:
        """Return the values that instructions wrote to a register, in order."""
        return [entry.value for entry in self.trace if entry.rd == register]


def assemble(text: str) -> ControlProgram:
    """Assemble a program, which may use the macros of the memory map.

    The label `handler`, if present, is the trap vector. After the last line of the text, at the label `end`, the
    program writes 0 to the address EXIT in x31.
    """
    setup = "la x1, handler; csrrw x0, mtvec, x1" if "handler:" in text else ""
    end = "end: li x31, EXIT; sw x0, 0(x31); ended: j ended"
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "program.S"
        source.write_text(f'#include "memory_map.h"\n.globl _start\n_start: {setup}\n{text}\n{end}\n')
        return compile_program([source], runtime=())


def run(text: str, *, device: CpuDevice | None = None, **work) -> Run:
    """Run a program, see `assemble`, in lockstep with the golden hart."""
    program = assemble(text)
    executable = Executable(program.image(), EXIT)
    outcome = run_device(device or CpuDevice(), CpuWork(program=executable, limit=20_000, trace=True, **work))
    comparison = compare(executable, outcome.events)
    assert comparison.mismatch is None and comparison.ended, comparison.mismatch
    return Run(list(outcome.events), program.symbols)

# amaranth: UnusedElaboratable=no

"""Device of the controller's Cpu (`run/harness/riscv.v`), and its programs."""

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neuroncore_rtl.hdl.controller.cpu import Cpu
from neuroncore_rtl.kernels.control.elf import ElfError, read_elf
from neuroncore_rtl.run.harness.outcome import Ending, Outcome
from neuroncore_rtl.run.harness.verilog_text import arguments, harness, plusargs, port_wires
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.run.sim.elaboration import cpu_verilog
from neuroncore_rtl.run.sim.images import memory_words, read_words, write_lines
from neuroncore_rtl.run.sim.simulation import Design, SimulationFailed
from neuroncore_rtl.spec.memory_map import CONSOLE, INTERRUPT_PENDING, LOCAL_BASE, TIMER_COMPARE, TIMER_NOW

__all__ = ["MEMORY_BYTES", "CpuDevice", "CpuWork", "Executable", "TraceEntry", "read_executable"]

MEMORY_BYTES = 1 << 20

PATIENCE = 100_000
"""Cycles without a retired instruction after which a run is stopped; legal stalls are shorter."""


@dataclass(frozen=True)
class Executable:
    """A program that reports its end to the host; `image` is its memory from LOCAL_BASE on.

    It writes 1, for passed, to the address `tohost`; answers of the host are at `fromhost`, 0 for none. With
    `compressed` it may have compressed instructions, which the processor does not support.
    """

    image: bytes
    tohost: int
    fromhost: int = 0
    compressed: bool = False
    memory_bytes: int = MEMORY_BYTES


def read_executable(path: Path, memory_bytes: int) -> Executable:
    """Return the program of an ELF file; UsageError if the file is not for this processor and memory."""
    name = display_path(path)
    try:
        elf = read_elf(path, memory_bytes, name)
    except ElfError as error:
        raise UsageError(str(error)) from error
    symbols = elf.symbols
    if "tohost" not in symbols:
        hint = "" if symbols else "; it has no symbols at all: was it stripped?"
        raise UsageError(f"{name} must have the symbol tohost, the word that it writes at its end{hint}")
    of = {"compressed": elf.compressed, "memory_bytes": memory_bytes}
    return Executable(elf.image, symbols["tohost"], symbols.get("fromhost", 0), **of)


class TraceEntry(NamedTuple):
    """An instruction that retired or trapped, or an interrupt at the address `pc`; `time` is the timer.

    `trap` is 1 for a trap or an interrupt, and `cause` its mcause. `value` was written to the register `rd`, 0 for
    none. `external` is 1 if the external interrupt was pending.
    """

    pc: int
    instruction: int
    trap: int
    cause: int
    rd: int
    value: int
    time: int
    external: int


class Trace:
    """The trace entries of a run, read line by line from the file.

    The file remains open, so that its directory may be deleted; only one iteration at a time is possible.
    """

    def __init__(self, path: Path):
        self._file = path.open()
        weakref.finalize(self, self._file.close)
        self._count = sum(1 for _ in self._file)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[TraceEntry]:
        self._file.seek(0)
        for line in self._file:
            try:
                yield TraceEntry(*(int(field, 16) for field in line.split()))
            except ValueError:
                raise SimulationFailed(f"the trace has unknown bits: {line.rstrip()}") from None


@dataclass(frozen=True, kw_only=True)
class CpuWork:
    """A program for the processor, and disturbances of its run.

    Arguments:
        program: its memory must have the size of the device's.
        limit: cycles after which the run is stopped.
        stall: rate of random stalls of both buses, in 256ths of the cycles.
        seed: seed of all random behaviour.
        external: rate of random external interrupts, in 65,536ths of the cycles.
        trace, memory: whether the outcome contains the trace and the final memory.
    """

    program: Executable
    limit: int = 10_000_000
    stall: int = 0
    seed: int = 1
    external: int = 0
    trace: bool = False
    memory: bool = False


@dataclass(frozen=True, kw_only=True)
class CpuDevice:
    """The controller's processor with a memory of `memory_bytes`, a power of two.

    The exit code of its outcome is the word that the program wrote to `tohost`; cycles and the counter `instructions`
    count up to that write. Optional are the events, `TraceEntry`s with a few after the end, and `memory`, uint8.
    """

    memory_bytes: int = MEMORY_BYTES
    fetch_latency: int = 0

    label = "riscv"
    ports = ("ended", "code", "cycles", "instructions", "silent", "broken")

    def design(self, *, waves: bool = False, vectors: bool = False) -> Design:
        numbers = {"MEMORY_BASE": LOCAL_BASE, "TIMER_NOW": TIMER_NOW, "TIMER_COMPARE": TIMER_COMPARE}
        numbers |= {"CONSOLE": CONSOLE, "EXTERNAL": INTERRUPT_PENDING}
        defines: dict[str, Any] = {name: f"32'h{number:08x}" for name, number in numbers.items()}
        defines["MEMORY_BITS"] = (self.memory_bytes // 4).bit_length() - 1
        numbers, addresses = ("limit", "patience", "stall", "seed", "external_rate"), ("tohost", "fromhost")
        defines["ARGUMENTS"] = arguments(numbers, (), ("console",), images=("memory",), hexadecimal=addresses)
        defines |= port_wires(Cpu().signature)
        return harness(__file__, "riscv", defines, cpu_verilog(self.fetch_latency), ports=self.ports)

    def load(self, work: CpuWork, directory: Path) -> tuple[list[str], int]:
        program = work.program
        lines = memory_words(np.frombuffer(program.image, np.uint8)[np.newaxis], 4)
        wanted = ("console", *(["trace"] if work.trace else []), *(["memory_out"] if work.memory else []))
        words = write_lines(directory, {"memory": lines}) + plusargs(**{name: directory / name for name in wanted})
        words += plusargs(tohost=f"{program.tohost:x}", fromhost=f"{program.fromhost:x}", external_rate=work.external)
        words += plusargs(limit=work.limit, patience=PATIENCE, stall=work.stall, seed=work.seed)
        return words, work.limit + 1000

    def read_outcome(self, work: CpuWork, directory: Path, state: Mapping[str, int]) -> Outcome:
        if state["broken"]:
            raise SimulationFailed("the Cpu broke a rule of its buses")
        ending = Ending.STUCK if state["silent"] >= PATIENCE else Ending.FINISHED if state["ended"] else Ending.LIMIT
        memories = {}
        if work.memory:
            words = read_words(directory / "memory_out", 1, "memory words")
            memories["memory"] = words.astype("<u4").view(np.uint8).ravel()
        said: dict[str, Any] = {"exit_code": state["code"] if state["ended"] else None}
        said["console"] = (directory / "console").read_text(errors="replace")
        said["counters"] = {"instructions": state["instructions"]}
        events: Any = Trace(directory / "trace") if work.trace else []
        return Outcome(ending=ending, cycles=state["cycles"], **said, events=events, memories=memories)

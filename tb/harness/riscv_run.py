"""Runs programs on the controller's Cpu: files in, files out, Python waits for one edge."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from neuroncore_rtl.spec.memory_map import CONSOLE, INTERRUPT_PENDING, LOCAL_BASE, TIMER_COMPARE, TIMER_NOW
from neuroncore_rtl.tb.harness.harness import run_harness
from neuroncore_rtl.tb.harness.riscv_elf import Executable
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.elaboration import cpu_verilog
from neuroncore_rtl.tb.sim.images import read_words
from neuroncore_rtl.tb.sim.simulation import SimulationFailed

__all__ = ["MEMORY_BYTES", "Outcome", "TraceEntry", "cpu_design", "run_cpu"]

_TEMPLATE = Path(__file__).with_name("riscv.v")

MEMORY_BYTES = 1 << 20
"""Size of the memory, from LOCAL_BASE on."""

PATIENCE = 100_000
"""Cycles without an instruction after which a run is given up; nothing that a program waits for takes longer."""

_PORTS = ("ended", "code", "cycles", "instructions", "silent", "broken")


class TraceEntry(NamedTuple):
    """What retired, trapped or was interrupted, as the Cpu says it.

    Arguments:
        pc, instruction: of the instruction; of an interrupt, the pc at which it came.
        trap: 1 if it trapped or is an interrupt. cause: mcause then.
        rd, value: the register that was written, 0 if none, and what was written to it.
        time: lower half of the timer. external: whether the external interrupt was asked for.
    """

    pc: int
    instruction: int
    trap: int
    cause: int
    rd: int
    value: int
    time: int
    external: int


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a program.

    Arguments:
        code: what it wrote at its end; None if it was given up.
        silent: whether it was given up because nothing retired for `PATIENCE` cycles.
        cycles: from reset to the write that ended it.
        instructions: retired until then.
        seconds: wall time of the simulation.
        console: what it printed.
        trace: line by line, a few instructions beyond the end among them; empty unless asked for.
        memory: the memory at the end; empty unless asked for.
    """

    code: int | None
    silent: bool
    cycles: int
    instructions: int
    seconds: float
    console: str
    trace: list[TraceEntry]
    memory: bytes

    @property
    def cycles_per_instruction(self) -> float | None:
        """CPI; None if nothing retired."""
        return self.cycles / self.instructions if self.instructions else None


def cpu_design(mutate: Callable[[str], str] | None = None) -> simulation.Design:
    """Return the Cpu in its harness.

    Arguments:
        mutate: a function from the Cpu's Verilog to another, to see that a bench notices a broken one.
    """
    text = cpu_verilog()
    if mutate is not None:
        text = mutate(text)
    numbers = {
        "MEMORY_BASE": LOCAL_BASE,
        "TIMER_NOW": TIMER_NOW,
        "TIMER_COMPARE": TIMER_COMPARE,
        "CONSOLE": CONSOLE,
        "EXTERNAL": INTERRUPT_PENDING,
    }
    head = "".join(f"`define {name} 32'h{number:08x}\n" for name, number in numbers.items())
    head += f"`define MEMORY_BITS {(MEMORY_BYTES // 4).bit_length() - 1}\n"
    return simulation.Design("riscv", f"{head}{_TEMPLATE.read_text()}\n{text}", public=("done", *_PORTS), clock="clk")


def run_cpu(
    built: simulation.Build,
    program: Executable,
    *,
    limit: int = 10_000_000,
    stall: int = 0,
    seed: int = 1,
    external: int = 0,
    trace: bool = False,
    memory: bool = False,
    waves: Path | None = None,
    waves_levels: int = 0,
) -> Outcome:
    """Run a program on a build of `cpu_design()`.

    Arguments:
        built: the build.
        program: with at most `MEMORY_BYTES` bytes.
        limit: cycles after which it is given up.
        stall: both buses refuse and delay in so many of 256 cycles, at random.
        seed: of what is random.
        external: an external interrupt comes in so many of 65,536 cycles, at random.
        trace, memory: whether to return these.
        waves: where to move the recorded waveform.
        waves_levels: see `tb.sim.simulation.run`.

    Raises:
        SimulationFailed: if the Cpu breaks a rule of its buses, or says something unknown.
    """
    image = program.image.ljust(-(-len(program.image) // 4) * 4, b"\0")
    lines = "".join(f"{int.from_bytes(image[i : i + 4], 'little'):08x}\n" for i in range(0, len(image), 4))
    with simulation.run_directory("riscv") as directory:
        paths = {name: (directory / name).resolve() for name in ("image", "console", "trace", "memory_out")}
        paths["image"].write_text(lines)
        wanted = ("image", "console", *(["trace"] if trace else []), *(["memory_out"] if memory else []))
        plusargs = [f"+{name}={paths[name]}" for name in wanted]
        plusargs += [
            f"+tohost={program.tohost:x}",
            f"+fromhost={program.fromhost:x}",
            f"+image_count={len(image) // 4}",
        ]
        plusargs += [f"+limit={limit}", f"+patience={PATIENCE}", f"+stall={stall}", f"+noise={seed}"]
        plusargs += [f"+external={external}"]
        state = run_harness(
            built, directory, _PORTS, plusargs=plusargs, limit=limit + 1000, waves=waves, waves_levels=waves_levels
        )
        if state["broken"]:
            raise SimulationFailed("the Cpu broke a rule of its buses")
        return Outcome(
            code=state["code"] if state["ended"] else None,
            silent=state["silent"] >= PATIENCE,
            cycles=state["cycles"],
            instructions=state["instructions"],
            seconds=state["seconds"],
            console=paths["console"].read_text(errors="replace"),
            trace=_read_trace(paths["trace"]) if trace else [],
            memory=read_words(paths["memory_out"], 1, "memory words").astype("<u4").tobytes() if memory else b"",
        )


def _read_trace(path: Path) -> list[TraceEntry]:
    entries = []
    for line in path.read_text().splitlines():
        try:
            entries.append(TraceEntry(*(int(field, 16) for field in line.split())))
        except ValueError:
            raise SimulationFailed(f"the trace has unknown bits: {line}") from None
    return entries

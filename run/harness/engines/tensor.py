# amaranth: UnusedElaboratable=no

"""Device of the tensor engine (`run/harness/engines/tensor.v`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuroncore_rtl.hdl.memory.port import ReadPort
from neuroncore_rtl.hdl.primitives.engine_error import EngineError
from neuroncore_rtl.hdl.tensor.engine import TensorCounters, TensorEngine
from neuroncore_rtl.run.harness.outcome import Ending, Outcome
from neuroncore_rtl.run.harness.verilog_text import arguments, harness, plusargs, port_wires
from neuroncore_rtl.run.sim.elaboration import engine_verilog
from neuroncore_rtl.run.sim.images import memory_words, read_words, write_lines
from neuroncore_rtl.run.sim.layouts import layout_defines, plain
from neuroncore_rtl.run.sim.simulation import Design, SimulationFailed
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import TENSOR_BITS, Context, Rule, TensorInstruction

__all__ = ["TENSOR_COUNTERS", "Drain", "TensorDevice", "TensorProgram", "TensorStep", "TensorWork", "check_steps"]

_OWN = ("error", "counters", "stationary__data", "moving__data")

_RECORDS, _OPERANDS = ("instructions", "drains"), ("stationary", "moving")

VISIBLE = 64
"""Processing elements of the largest array that Verilator's waveforms show."""

PROGRAM_DEPTH = 1 << 18
"""Most instructions, and drains, of a program."""

TENSOR_COUNTERS = ("cycles", *TensorCounters.as_shape().members)
"""Counters of the engine, and the cycles from the first instruction to the last PSUM word."""


@dataclass(frozen=True)
class TensorStep:
    """An instruction, and the number of drains that must be complete before it is offered."""

    instruction: TensorInstruction
    drains: int


@dataclass(frozen=True)
class Drain:
    """Read-out of `words` words of PSUM from `psum` on, in every partition, after `moves` MultiplyMoving retired."""

    moves: int
    psum: int
    words: int


@dataclass(frozen=True)
class TensorProgram:
    """Program of the tensor engine: steps, drains, and the operand memories, uint8 [rows, bytes]."""

    steps: list[TensorStep]
    drains: list[Drain]
    stationary: np.ndarray
    moving: np.ndarray


def check_steps(program: TensorProgram, config: Config) -> None:
    """Raise ValueError if an instruction of a program is not legal after those before it."""
    context = Context(config)
    for step in program.steps:
        step.instruction.check(context)
        context = step.instruction.after(context)


@dataclass(frozen=True, kw_only=True)
class TensorWork:
    """A program for the tensor engine; `stall` is the rate of random pauses of streams, in 256ths of the cycles."""

    program: TensorProgram
    stall: int = 0
    seed: int = 1


@dataclass(frozen=True, kw_only=True)
class TensorDevice:
    """The tensor engine; the memory `psum` of its outcome has the drained words, uint32 [words, partitions]."""

    config: Config

    label = "tensor"
    ports = ("timeout", "error", "cycles", "counters")

    def design(self, *, waves: bool = False, vectors: bool = False) -> Design:
        text = engine_verilog(self.config, vectors=vectors)
        defines = {
            "ARGUMENTS": arguments(("limit", "stall", "seed"), _RECORDS, ("results",), images=_OPERANDS),
            "ROWS": self.config.rows,
            "COLUMNS": self.config.columns,
            "INSTRUCTION": TENSOR_BITS,
            "PROGRAM_DEPTH": PROGRAM_DEPTH,
            "STATIONARY_DEPTH": Config.RANGES["sbuf_bytes"][1] // 16,
            "MOVING_DEPTH": Config.RANGES["sbuf_bytes"][1] // 4,
            "READ_LATENCY": ReadPort.LATENCY[self.config.port_latency],
            "COUNTERS": TensorCounters.as_shape().size,
            **layout_defines("ERROR", EngineError),
            **port_wires(TensorEngine(self.config).signature, but=_OWN),
        }
        # A waveform shows nothing inside of Verilator's hierarchical blocks; a small array builds quickly without them.
        blocks = None if waves and self.config.rows * self.config.columns <= VISIBLE else r"(block|edge|psum)_"
        kept = "tile_"
        return harness(__file__, "tensor", defines, text, ports=self.ports, blocks=blocks, kept=kept)

    def load(self, work: TensorWork, directory: Path) -> tuple[list[str], int]:
        program = work.program
        if max(len(program.steps), len(program.drains)) > PROGRAM_DEPTH:
            raise ValueError(f"a program must have at most {PROGRAM_DEPTH} instructions, not {len(program.steps)}")
        check_steps(program, self.config)
        digits = -(-TENSOR_BITS // 4)
        records = (f"{s.drains << TENSOR_BITS | s.instruction.encode():0{digits + 8}x}\n" for s in program.steps)
        drains = (f"{d.moves:08x}{d.psum:04x}{d.words:04x}\n" for d in program.drains)
        operands = memory_words(program.stationary, 16), memory_words(program.moving, 4)
        files = dict(zip(_RECORDS + _OPERANDS, ("".join(records), "".join(drains), *operands), strict=True))
        cycles = sum(getattr(step.instruction, "n", self.config.columns) + 64 for step in program.steps)
        cycles += sum(drain.words for drain in program.drains)
        limit = int(cycles * 3 * 256 / (256 - work.stall)) + 10 * TensorEngine.latency(self.config)
        words = plusargs(results=directory / "results", limit=limit, stall=work.stall, seed=work.seed)
        return words + write_lines(directory, files), limit + 100

    def read_outcome(self, work: TensorWork, directory: Path, state: Mapping[str, int]) -> Outcome:
        if state["timeout"]:
            raise SimulationFailed("the engine did not finish: it stalls forever")
        error = EngineError.from_bits(state["error"])
        if error.valid:
            raise SimulationFailed(f"the engine refused instruction {error.number}: {Rule(error.cause).name}")
        words = read_words(directory / "results", self.config.columns, "PSUM words")
        expected = sum(drain.words for drain in work.program.drains)
        if len(words) != expected:
            raise SimulationFailed(f"the engine delivered {len(words)} PSUM words, not {expected}")
        cycles = state["cycles"]
        counters = {"cycles": cycles, **plain(TensorCounters, state["counters"])}
        return Outcome(ending=Ending.FINISHED, cycles=cycles, counters=counters, memories={"psum": words})

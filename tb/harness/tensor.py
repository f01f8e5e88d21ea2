"""Runs programs of the tensor engine in bulk: files in, files out, Python waits for one edge (see
`tb/harness/tensor.v`)."""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from neuroncore_rtl.hdl.engine_error import EngineError
from neuroncore_rtl.hdl.tensor.engine import Counters, TensorEngine
from neuroncore_rtl.spec.config import SBUF_BYTES, Config
from neuroncore_rtl.spec.isa import TENSOR_BITS, Context, TensorInstruction
from neuroncore_rtl.spec.isa.rule import Rule
from neuroncore_rtl.tb.harness.harness import run_harness
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.elaboration import engine_verilog
from neuroncore_rtl.tb.sim.images import memory_lines, read_words
from neuroncore_rtl.tb.sim.layouts import define_lines, layout_defines, plain
from neuroncore_rtl.tb.sim.simulation import SimulationFailed

__all__ = ["COUNTERS", "PROGRAM_DEPTH", "Drain", "Outcome", "Step", "TensorProgram", "design", "run_program"]

_TEMPLATE = Path(__file__).with_suffix(".v")

_PORTS = ("timeout", "error", "cycles", "counters")

PROGRAM_DEPTH = 1 << 18
"""Instructions, and drains, that a program may have."""

COUNTERS = ("cycles", *Counters.as_shape().members)
"""What is counted: the engine's :class:`hdl.tensor.engine.Counters`, and cycles from the first instruction to the last
PSUM word written."""


@dataclass(frozen=True)
class Step:
    """An instruction, and the number of drains that must be done before it may start."""

    instruction: TensorInstruction
    drains: int


@dataclass(frozen=True)
class Drain:
    """PSUM words to read in every partition once `moves` MultiplyMoving have retired."""

    moves: int
    psum: int
    words: int


@dataclass(frozen=True)
class TensorProgram:
    """What the harness has the engine do.

    Arguments:
        steps: the instructions in order.
        drains: the PSUM words to read, in order; the results are a sequence of words of all partitions.
        stationary, moving: operand memory, uint8 of shape [rows, bytes].
    """

    steps: list[Step]
    drains: list[Drain]
    stationary: np.ndarray
    moving: np.ndarray


@dataclass
class Outcome:
    """What became of a program.

    Arguments:
        words: PSUM words read, uint32 of shape [words, partitions].
        counters: by the names of `COUNTERS`.
        seconds: wall time from the first clock edge to the last result.
    """

    words: np.ndarray
    counters: dict[str, int]
    seconds: float


@lru_cache(maxsize=4)
def design(config: Config) -> simulation.Design:
    """Return the engine of `config` in its harness."""
    text = engine_verilog(config)
    defines = {
        "ROWS": config.rows,
        "COLUMNS": config.columns,
        "INSTRUCTION": TENSOR_BITS,
        "PROGRAM_DEPTH": PROGRAM_DEPTH,
        "STATIONARY_DEPTH": SBUF_BYTES // 16,
        "MOVING_DEPTH": SBUF_BYTES // 4,
        "COUNTERS": Counters.as_shape().size,
        **layout_defines("ERROR", EngineError),
    }
    head = define_lines(defines)
    modules = re.findall(r"^module (\w+)", text, re.MULTILINE)
    return simulation.Design(
        "tensor",
        f"{head}{_TEMPLATE.read_text()}\n{text}",
        hier_blocks=tuple(name for name in modules if name.startswith(("block_", "edge_", "psum_"))),
        kept=tuple(name for name in modules if name.startswith("tile_")),
        public=("done", *_PORTS),
        clock="clk",
    )


def run_program(
    built: simulation.Build,
    program: TensorProgram,
    config: Config,
    *,
    stall: int = 0,
    seed: int = 1,
    waves: Path | None = None,
    waves_levels: int = 0,
) -> Outcome:
    """Run `program` on a build of `design(config)`.

    Arguments:
        built: the build.
        program: instructions, operands and what to read back.
        config: the machine's parameters.
        stall: every stream pauses in so many of 256 cycles, at random.
        seed: of the pauses.
        waves: where to move the recorded waveform.
        waves_levels: see `tb.sim.simulation.run`.

    Raises:
        SimulationFailed: if the engine does not finish in time, or refuses an instruction.
    """
    if max(len(program.steps), len(program.drains)) > PROGRAM_DEPTH:
        raise ValueError(f"a program must have at most {PROGRAM_DEPTH} instructions, not {len(program.steps)}")
    context = Context(config)
    for step in program.steps:
        step.instruction.check(context)
        context = step.instruction.after(context)
    digits = -(-TENSOR_BITS // 4)
    files = {
        "instructions": "".join(
            f"{step.drains << TENSOR_BITS | step.instruction.encode():0{digits + 8}x}\n" for step in program.steps
        ),
        "drains": "".join(f"{d.moves:08x}{d.psum:04x}{d.words:04x}\n" for d in program.drains),
        "stationary": memory_lines(program.stationary, 16),
        "moving": memory_lines(program.moving, 4),
    }
    work = sum(getattr(step.instruction, "n", config.columns) + 64 for step in program.steps)
    limit = int((work + sum(d.words for d in program.drains)) * 3 * 256 / (256 - stall)) + 10 * TensorEngine.latency(
        config
    )
    with simulation.run_directory("tensor") as directory:
        results = directory / "results.hex"
        plusargs = [f"+results={results.resolve()}", f"+limit={limit}", f"+stall={stall}", f"+noise={seed}"]
        for name, text in files.items():
            path = directory / f"{name}.hex"
            path.write_text(text)
            plusargs += [f"+{name}={path.resolve()}", f"+{name}_count={text.count(chr(10))}"]
        state = run_harness(
            built, directory, _PORTS, plusargs=plusargs, limit=limit + 100, waves=waves, waves_levels=waves_levels
        )
        if state["timeout"]:
            raise SimulationFailed("the engine did not finish: it waits for something that does not come")
        error = EngineError.from_bits(state["error"])
        if error.valid:
            raise SimulationFailed(f"the engine refused instruction {error.number}: {Rule(error.cause).name}")
        words = read_words(results, config.columns, "PSUM words")
        counters = {"cycles": state["cycles"], **plain(Counters, state["counters"])}
        outcome = Outcome(words, counters, state["seconds"])
    expected = sum(d.words for d in program.drains)
    if len(outcome.words) != expected:
        raise SimulationFailed(f"the engine delivered {len(outcome.words)} PSUM words, not {expected}")
    return outcome

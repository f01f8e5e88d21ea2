"""Runs programs of the vector and the scalar engine in bulk: files in, files out, Python waits for one edge.

The engines share the memories of `tb/harness/elementwise.v`, where every port may stall at random.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path

import numpy as np

from neuroncore_rtl.hdl.elementwise.frontend import Counters
from neuroncore_rtl.hdl.engine_error import EngineError
from neuroncore_rtl.spec.config import PSUM_BYTES, SBUF_BYTES, Config
from neuroncore_rtl.spec.isa.access import DIMENSIONS
from neuroncore_rtl.spec.isa.elementwise import ELEMENTWISE_BITS, Elementwise
from neuroncore_rtl.tb.harness.harness import run_harness
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.elaboration import engine_verilog
from neuroncore_rtl.tb.sim.images import memory_lines, read_words
from neuroncore_rtl.tb.sim.layouts import define_lines, layout_defines, plain
from neuroncore_rtl.tb.sim.simulation import SimulationFailed

__all__ = ["COUNTERS", "ENGINES", "PROGRAM_DEPTH", "Outcome", "Record", "design", "run_program"]

_TEMPLATE = Path(__file__).with_suffix(".v")

ENGINES = ("vector", "scalar")

PROGRAM_DEPTH = 1 << 16
"""Instructions that a program of one engine may have."""

COUNTERS = tuple(Counters.as_shape().members)
"""Counters of an engine; see :class:`hdl.elementwise.frontend.Counters`."""

SLOWEST = 64
"""Cycles that an element can take at most, for the limit after which a run is given up."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """An instruction in a program.

    Arguments:
        engine: one of `ENGINES`, which executes its records in order.
        word: the instruction's bits, legal or not.
        vector, scalar: instructions of either engine that must have retired before this one is offered.
    """

    engine: str
    word: int
    vector: int = 0
    scalar: int = 0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a program.

    Arguments:
        sbuf, psum: the memories at its end, uint8 [partitions, bytes], as many bytes as were given.
        cycles: from the first instruction offered to the last one retired.
        counters: of each engine, by the names of `COUNTERS`.
        retired: instructions that each engine retired.
        errors: of each engine the error's cause (`spec.isa.rule.Rule`) and the refused instruction's number in its
            program, or None.
        seconds: wall time from the first clock edge to the end.
        refusals: of each engine such pairs, in order, if the run recovers from errors; the numbers start from 0 after
            each.
        accepted_at, retired_at: of each engine the cycles in which its instructions entered and retired; empty unless
            asked for.
    """

    sbuf: np.ndarray
    psum: np.ndarray
    cycles: int
    counters: Mapping[str, Mapping[str, int]]
    retired: Mapping[str, int]
    errors: Mapping[str, tuple[int, int] | None]
    seconds: float
    refusals: Mapping[str, Sequence[tuple[int, int]]]
    accepted_at: Mapping[str, Sequence[int]]
    retired_at: Mapping[str, Sequence[int]]


@lru_cache(maxsize=4)
def design(config: Config, engines: tuple[str, ...] = ENGINES) -> simulation.Design:
    """Return engines of `config` in their harness.

    Arguments:
        config: the machine's parameters.
        engines: those of `ENGINES` that are in it; a harness with one engine is built sooner.
    """
    text = _without_repetitions("\n".join(engine_verilog(config, f"{engine}_engine") for engine in engines))
    defines = {
        **{engine.upper(): "" for engine in engines},
        "PARTITIONS": config.partitions,
        "COLUMNS": config.columns,
        "INSTRUCTION": ELEMENTWISE_BITS,
        "PROGRAM_DEPTH": PROGRAM_DEPTH,
        "SBUF_DEPTH": SBUF_BYTES // 4,
        "PSUM_DEPTH": PSUM_BYTES // 4,
        "COUNTERS": Counters.as_shape().size,
        **layout_defines("ERROR", EngineError),
    }
    head = define_lines(defines)
    modules = re.findall(r"^module (\w+)", text, re.MULTILINE)
    return simulation.Design(
        "elementwise",
        f"{head}{_TEMPLATE.read_text()}\n{text}",
        hier_blocks=tuple(name for name in modules if "_block_" in name),
        kept=tuple(name for name in modules if name in ("vector_lane", "activation_lane")),
        public=("done", "timeout", "stray", "cycles", *(f"{e}_{port}" for e in ENGINES for port in _PORTS)),
        clock="clk",
    )


_PORTS = ("accepted", "retired", "error", "counters")


def _without_repetitions(text: str) -> str:
    """Return Verilog with the first of all modules of a name alone: engines share some, and equal names mean equal."""
    seen = set()

    def once(found: re.Match) -> str:
        known = found[1] in seen
        seen.add(found[1])
        return "" if known else found[0]

    return re.sub(r"^module (\S+?) ?\(.*?^endmodule", once, text, flags=re.MULTILINE | re.DOTALL)


def run_program(
    built: simulation.Build,
    program: Sequence[Record],
    sbuf: np.ndarray,
    psum: np.ndarray,
    config: Config,
    *,
    stall: int = 0,
    seed: int = 1,
    events: bool = False,
    recover: bool = False,
    waves: Path | None = None,
    waves_levels: int = 0,
) -> Outcome:
    """Run `program` on a build of `design(config)`.

    Arguments:
        built: the build.
        program: records of either engine, in an order in which they could run one after the other.
        sbuf, psum: the memories' first bytes, uint8 [partitions, bytes], a multiple of four of them; a program that
            touches what lies behind them fails.
        config: the machine's parameters.
        stall: every stream and port pauses in so many of 256 cycles, at random.
        seed: of the pauses.
        events: whether to note when each instruction was taken and retired.
        recover: whether an engine with an error is reset when it has come to rest, and goes on with its next
            instruction; a waiting instruction does not count the refused ones.
        waves: where to move the recorded waveform.
        waves_levels: see `tb.sim.simulation.run`.

    Raises:
        SimulationFailed: if an engine does not finish in time, touches memory that is not there, or does not retire
            what it accepted.
    """
    _check_memories(sbuf, psum, config)
    programs = {engine: [record for record in program if record.engine == engine] for engine in ENGINES}
    if max(map(len, programs.values())) > PROGRAM_DEPTH:
        raise ValueError(f"a program must have at most {PROGRAM_DEPTH} instructions an engine, not {len(program)}")
    files = {engine: _program_lines(records) for engine, records in programs.items()}
    files |= {"sbuf": memory_lines(sbuf, 4), "psum": memory_lines(psum, 4)}
    limit = int(sum(_work(record.word) for record in program) * 256 / (256 - stall)) + 2000
    with simulation.run_directory("elementwise") as directory:
        paths = {name: (directory / name).resolve() for name in ("sbuf_out", "psum_out", "events_out")}
        plusargs = [f"+limit={limit}", f"+stall={stall}", f"+noise={seed}"]
        plusargs += [f"+sbuf_out={paths['sbuf_out']}", f"+psum_out={paths['psum_out']}"]
        plusargs += [f"+events={paths['events_out']}"] if events or recover else []
        plusargs += ["+recover=1"] if recover else []
        for name, text in files.items():
            path = directory / f"{name}.hex"
            path.write_text(text)
            plusargs += [f"+{name}={path.resolve()}", f"+{name}_count={text.count(chr(10))}"]
        ports = ("timeout", "stray", "cycles", *(f"{engine}_{port}" for engine in ENGINES for port in _PORTS))
        state = run_harness(
            built, directory, ports, plusargs=plusargs, limit=limit + 100, waves=waves, waves_levels=waves_levels
        )
        if state["timeout"]:
            raise SimulationFailed("an engine did not finish: it waits for something that does not come")
        if state["stray"]:
            raise SimulationFailed("an engine touched memory that the program does not have")
        outcome = Outcome(
            sbuf=_read_memory(paths["sbuf_out"], config.partitions, "SBUF words"),
            psum=_read_memory(paths["psum_out"], config.columns, "PSUM words"),
            cycles=state["cycles"],
            counters={engine: plain(Counters, state[f"{engine}_counters"]) for engine in ENGINES},
            retired={engine: state[f"{engine}_retired"] for engine in ENGINES},
            errors={engine: _error(state[f"{engine}_error"]) for engine in ENGINES},
            seconds=state["seconds"],
            **_read_events(paths["events_out"] if events or recover else None),
        )
        _check_retired(outcome, programs, state)
    return outcome


def _check_memories(sbuf: np.ndarray, psum: np.ndarray, config: Config) -> None:
    for name, memory, partitions, most in (
        ("sbuf", sbuf, config.partitions, SBUF_BYTES),
        ("psum", psum, config.columns, PSUM_BYTES),
    ):
        size = memory.shape[-1]
        if memory.dtype != np.uint8 or memory.shape != (partitions, size) or size % 4 or size > most:
            raise ValueError(
                f"{name} must be uint8 [{partitions}, bytes], a multiple of 4 bytes up to {most}, "
                f"not {memory.dtype} {list(memory.shape)}"
            )


def _program_lines(records: Sequence[Record]) -> str:
    digits = -(-ELEMENTWISE_BITS // 4) + 16
    lines = (
        f"{(record.vector << 32 | record.scalar) << ELEMENTWISE_BITS | record.word:0{digits}x}\n" for record in records
    )
    return "".join(lines)


def _work(word: int) -> int:
    """Return more cycles than an instruction can take, or than an engine needs to refuse it."""
    values = Elementwise.unpack(word)
    return SLOWEST * (min(prod(values[f"count{d}"] for d in range(DIMENSIONS)), 1 << 20) + 16)


def _read_memory(path: Path, partitions: int, what: str) -> np.ndarray:
    words = read_words(path, partitions, what)
    return np.ascontiguousarray(words.T.astype("<u4")).view(np.uint8)


def _error(bits: int) -> tuple[int, int] | None:
    error = EngineError.from_bits(bits)
    return (error.cause, error.number) if error.valid else None


def _read_events(path: Path | None) -> dict[str, dict[str, list]]:
    found = {name: {engine: [] for engine in ENGINES} for name in ("accepted_at", "retired_at", "refusals")}
    for line in path.read_text().splitlines() if path else ():
        kind, engine, cycle, *error = line.split()
        if kind == "e":
            found["refusals"][engine].append((int(error[0]), int(error[1])))
        else:
            found["accepted_at" if kind == "a" else "retired_at"][engine].append(int(cycle))
    return found


def _check_retired(outcome: Outcome, programs: Mapping[str, Sequence[Record]], state: Mapping[str, int]) -> None:
    """Raise SimulationFailed unless every instruction retired, those from an error on excepted."""
    failed = [engine for engine in ENGINES if outcome.errors[engine]]
    for engine in ENGINES:
        retired = outcome.retired[engine]
        if engine in failed:
            expected = outcome.errors[engine][1]
        elif failed:
            expected = state[f"{engine}_accepted"]
        else:
            expected = len(programs[engine]) - len(outcome.refusals[engine])
        if retired != expected:
            raise SimulationFailed(f"the {engine} engine retired {retired} instructions, not {expected}")

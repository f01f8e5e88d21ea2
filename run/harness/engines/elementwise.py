"""Device of the vector and scalar engine on shared memories (`run/harness/engines/elementwise.v`)."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np
from amaranth.lib import wiring

from neuroncore_rtl.hdl.elementwise.frontend import ElementwiseCounters, engine_ports
from neuroncore_rtl.hdl.memory.port import ReadPort
from neuroncore_rtl.hdl.primitives.engine_error import EngineError
from neuroncore_rtl.hdl.verilog.text import module_ports
from neuroncore_rtl.run.harness.outcome import Ending, Outcome, events_of, fields_by_kind
from neuroncore_rtl.run.harness.verilog_text import arguments, connections, harness, plusargs, wires
from neuroncore_rtl.run.sim.elaboration import engine_verilog
from neuroncore_rtl.run.sim.images import memory_words, read_words, write_lines
from neuroncore_rtl.run.sim.layouts import layout_defines, plain
from neuroncore_rtl.run.sim.simulation import Design, SimulationFailed
from neuroncore_rtl.spec.config import PSUM_BANKS, Config
from neuroncore_rtl.spec.isa import DIMENSIONS, ELEMENTWISE_BITS, Elementwise
from neuroncore_rtl.spec.timing import REMAINDER_LATENCY

__all__ = ["ENGINES", "PROGRAM_DEPTH", "ElementwiseDevice", "ElementwiseWork", "EngineRecord", "Refusal"]

ENGINES = ("vector", "scalar")

PROGRAM_DEPTH = 1 << 16
"""Most instructions of one engine."""

COUNTERS = tuple(ElementwiseCounters.as_shape().members)

SLOWEST = 2 * REMAINDER_LATENCY
"""Upper bound on the cycles of an element, for limits."""


@dataclass(frozen=True, kw_only=True)
class EngineRecord:
    """An instruction of the engine `engine`, legal or not, as bits.

    It is offered once at least `vector` instructions of the vector engine and `scalar` ones of the scalar engine have
    retired.
    """

    engine: str
    word: int
    vector: int = 0
    scalar: int = 0


class Refusal(NamedTuple):
    """A refused instruction: the `spec.isa.Rule`, and its index in its engine, counted from the last error."""

    cause: int
    number: int


@dataclass(frozen=True, kw_only=True)
class ElementwiseWork:
    """A program for the vector and scalar engines, and disturbances of its run.

    Arguments:
        program: records of both engines, in an order that satisfies their dependences.
        sbuf, psum: initial memories, uint8 [partitions, multiple of 4]; an access beyond them fails.
        stall: probability of a random pause of a stream or memory port, in 256ths per cycle.
        events: whether the outcome has the cycles of each instruction.
        recover: whether an engine with an error is reset once it is idle, and continues; refused instructions do not
            count as retired.
    """

    program: Sequence[EngineRecord]
    sbuf: np.ndarray
    psum: np.ndarray
    stall: int = 0
    seed: int = 1
    events: bool = False
    recover: bool = False


@dataclass(frozen=True, kw_only=True)
class ElementwiseDevice:
    """The vector and the scalar engine, or one of them, for a faster build.

    The parts of its outcome are the engines by name, with refused instructions as errors and optionally the others as
    events. Cycles count from the first offered instruction to the last retirement.
    """

    config: Config
    engines: tuple[str, ...] = ENGINES

    label = "elementwise"
    ports = ("timeout", "stray", "cycles", "accepted", "retirements", "errors", "counts")

    def design(self, *, waves: bool = False, vectors: bool = False) -> Design:
        config = self.config
        texts = (engine_verilog(config, f"{engine}_engine", vectors=vectors) for engine in self.engines)
        text = _without_repetitions("\n".join(texts))
        numbers = ("limit", "stall", "seed", "recover", "vector_count")
        defines = {
            **_instances(config, self.engines),
            "ARGUMENTS": arguments(numbers, ("records",), images=("sbuf", "psum")),
            "PARTITIONS": config.partitions,
            "COLUMNS": config.columns,
            "INSTRUCTION": ELEMENTWISE_BITS,
            "PROGRAM_DEPTH": PROGRAM_DEPTH,
            "SBUF_DEPTH": Config.RANGES["sbuf_bytes"][1] // 4,
            "PSUM_DEPTH": PSUM_BANKS * Config.RANGES["psum_words"][1],
            "READ_LATENCY": ReadPort.LATENCY[config.port_latency],
            "COUNTERS": ElementwiseCounters.as_shape().size,
            **layout_defines("ERROR", EngineError),
        }
        blocks, kept = r"\w*_block_", r"(vector|activation)_lane$"
        return harness(__file__, "elementwise", defines, text, ports=self.ports, blocks=blocks, kept=kept)

    def load(self, work: ElementwiseWork, directory: Path) -> tuple[list[str], int]:
        _check_memories(work.sbuf, work.psum, self.config)
        programs = _programs(work)
        if max(map(len, programs.values())) > PROGRAM_DEPTH:
            most = f"{PROGRAM_DEPTH} instructions an engine"
            raise ValueError(f"a program must have at most {most}, not {len(work.program)}")
        files = {
            "records": "".join(map(_program_lines, programs.values())),
            "sbuf": memory_words(work.sbuf, 4),
            "psum": memory_words(work.psum, 4),
        }
        limit = int(sum(_cycles(record.word) for record in work.program) * 256 / (256 - work.stall)) + 2000
        words = plusargs(limit=limit, stall=work.stall, seed=work.seed, vector_count=len(programs["vector"]))
        words += plusargs(sbuf_out=directory / "sbuf_out", psum_out=directory / "psum_out")
        words += plusargs(events=directory / "events") if work.events or work.recover else []
        words += plusargs(recover=int(work.recover))
        return words + write_lines(directory, files), limit + 100

    def read_outcome(self, work: ElementwiseWork, directory: Path, state: Mapping[str, int]) -> Outcome:
        if state["timeout"]:
            raise SimulationFailed("an engine did not finish: it stalls forever")
        if state["stray"]:
            raise SimulationFailed("an engine accessed memory that the program does not have")
        logs = [{"a": [], "r": [], "e": []} for _ in ENGINES]
        if work.events or work.recover:
            for kind, lines in fields_by_kind(directory / "events").items():
                for engine, *fields in lines:
                    logs[int(engine)][kind].append([int(field) for field in fields])
        parts = {engine: _part(number, state, logs[number]) for number, engine in enumerate(ENGINES)}
        _check_retired(parts, work, state)
        memories = {
            "sbuf": _read_memory(directory / "sbuf_out", self.config.partitions, "SBUF words"),
            "psum": _read_memory(directory / "psum_out", self.config.columns, "PSUM words"),
        }
        ending = max(part.ending for part in parts.values())
        return Outcome(ending=ending, cycles=state["cycles"], parts={**parts}, memories=memories)


def _instances(config: Config, there: Sequence[str]) -> dict[str, str]:
    """Return the macros `PORT_WIRES` (two wires per port, one per engine) and `INSTANCES` (the engines)."""
    signature = wiring.Signature(engine_ports(config))
    found = {name: (member.flow, len(value)) for name, member, value in module_ports(signature, signature.create())}
    names = {port: port.replace("__", "_") for port in found}
    instances = []
    for number, engine in enumerate(ENGINES):
        ports = {port: f"{name}[{number}]" for port, name in names.items()}
        tied = connections({"clk": "clk", "rst": f"rst || restart[{number}]", **ports})
        outputs = ", ".join(ports[port] for port, (flow, _) in found.items() if flow == wiring.Out)
        instances.append(f"{engine}_engine {engine} ({tied});" if engine in there else f"assign {{{outputs}}} = 0;")
    declared = {names[port]: width for port, (_, width) in found.items() if port not in ("sbuf__data", "psum__data")}
    return {"PORT_WIRES": wires(declared, " [0:1]"), "INSTANCES": " ".join(instances)}


def _programs(work: ElementwiseWork) -> dict[str, list[EngineRecord]]:
    return {engine: [record for record in work.program if record.engine == engine] for engine in ENGINES}


def _without_repetitions(text: str) -> str:
    """Return a Verilog text without the second copy of each module that both engines contain."""
    count = Counter()

    def once(found: re.Match) -> str:
        count[found[1]] += 1
        return found[0] if count[found[1]] == 1 else ""

    return re.sub(r"^module (\S+?) ?\(.*?^endmodule", once, text, flags=re.MULTILINE | re.DOTALL)


def _check_memories(sbuf: np.ndarray, psum: np.ndarray, config: Config) -> None:
    for name, memory, partitions, most in (
        ("sbuf", sbuf, config.partitions, config.sbuf_bytes),
        ("psum", psum, config.columns, config.psum_bytes),
    ):
        size = memory.shape[-1]
        if memory.dtype != np.uint8 or memory.shape != (partitions, size) or size % 4 or size > most:
            raise ValueError(
                f"{name} must be uint8 [{partitions}, bytes], a multiple of 4 bytes up to {most}, "
                f"not {memory.dtype} {list(memory.shape)}"
            )


def _program_lines(records: Sequence[EngineRecord]) -> str:
    digits = -(-ELEMENTWISE_BITS // 4) + 16
    words = ((record.vector << 32 | record.scalar) << ELEMENTWISE_BITS | record.word for record in records)
    return "".join(f"{word:0{digits}x}\n" for word in words)


def _cycles(word: int) -> int:
    values = Elementwise.unpack(word)
    return SLOWEST * (min(prod(values[f"count{d}"] for d in range(DIMENSIONS)), 1 << 20) + 16)


def _read_memory(path: Path, partitions: int, what: str) -> np.ndarray:
    return np.ascontiguousarray(read_words(path, partitions, what).T.astype("<u4")).view(np.uint8)


def _of(state: Mapping[str, int], port: str, number: int, bits: int = 32) -> int:
    return state[port] >> bits * number & (1 << bits) - 1


def _part(number: int, state: Mapping[str, int], log: Mapping[str, list[list[int]]]) -> Outcome:
    """Return the outcome of an engine; `log` has its accepted (a), retired (r) and failed (e) instructions."""
    error = EngineError.from_bits(_of(state, "errors", number, EngineError.as_shape().size))
    errors = [Refusal(cause, place) for _, cause, place in log["e"]]
    if not errors and error.valid:
        errors = [Refusal(error.cause, error.number)]
    issued, retired = ([cycle for (cycle,) in log[kind]] for kind in "ar")
    ending, events = Ending.ERROR if error.valid else Ending.FINISHED, events_of(number, issued, retired)
    counters = plain(ElementwiseCounters, _of(state, "counts", number, ElementwiseCounters.as_shape().size))
    return Outcome(ending=ending, cycles=state["cycles"], errors=errors, counters=counters, events=events)


def _check_retired(parts: Mapping[str, Outcome], work: ElementwiseWork, state: Mapping[str, int]) -> None:
    """Raise SimulationFailed unless every instruction before the first error retired."""
    failed = [engine for engine in ENGINES if parts[engine].ending == Ending.ERROR]
    for number, (engine, program) in enumerate(_programs(work).items()):
        retired = _of(state, "retirements", number)
        if engine in failed:
            expected = parts[engine].errors[-1].number
        elif failed:
            expected = _of(state, "accepted", number)
        else:
            expected = len(program) - len(parts[engine].errors)
        if retired != expected:
            raise SimulationFailed(f"the {engine} engine retired {retired} instructions, not {expected}")

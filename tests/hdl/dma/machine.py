"""Runs copies on a DMA engine in bulk: files in, files out, Python waits for one edge."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from neuroncore_rtl.hdl.dma.counters import DmaCounters
from neuroncore_rtl.hdl.dma.engine import DmaEngine
from neuroncore_rtl.hdl.engine_error import DetailedError
from neuroncore_rtl.hdl.hierarchy import to_verilog
from neuroncore_rtl.spec.config import PSUM_BYTES, SBUF_BYTES, Config
from neuroncore_rtl.spec.isa import DMA_BITS, Storage
from neuroncore_rtl.tb.harness.run import run_harness
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.layouts import define_lines, layout_defines, plain
from neuroncore_rtl.tb.sim.simulation import SimulationFailed

__all__ = ["COUNTERS", "HBM_BYTES", "Error", "Memories", "Outcome", "built", "run_copies"]

HBM_BYTES = 1 << 18
"""Bytes of HBM that answer without an error, from the run's base."""

COUNTERS = tuple(DmaCounters.as_shape().members)

_PROGRAM_DEPTH = 4096

Memories = dict[Storage, np.ndarray]
"""uint8 [partitions, bytes]; HBM has one partition."""


@dataclass(frozen=True)
class Error:
    """The copy of the program that failed, and what the engine said about it."""

    copy: int
    cause: int
    detail: int


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The memories at the end; errors; cycles in which copies were taken and retired; counters (since an error)."""

    memories: Memories
    errors: Sequence[Error]
    taken: Sequence[int]
    retired: Sequence[int]
    counters: dict[str, int]


@lru_cache(maxsize=4)
def built(config: Config, sim: str = "verilator") -> simulation.Build:
    """Return the engine of `config` in its harness."""
    defines = {
        "SIZE": config.hbm_bytes,
        "INSTRUCTION": DMA_BITS,
        "COUNTERS": DmaCounters.as_shape().size,
        **layout_defines("ERROR", DetailedError),
        "PARTITIONS": config.partitions,
        "COLUMNS": config.columns,
        "SBUF_LINES": SBUF_BYTES // config.hbm_bytes,
        "PSUM_LINES": PSUM_BYTES // config.hbm_bytes,
        "HBM_LINES": HBM_BYTES // config.hbm_bytes,
        "PROGRAM_DEPTH": _PROGRAM_DEPTH,
    }
    head = define_lines(defines)
    # The harness is written for brevity: its widths are Verilog's.
    head += "/* verilator lint_off WIDTHEXPAND */\n/* verilator lint_off WIDTHTRUNC */\n"
    tail = "/* verilator lint_on WIDTHEXPAND */\n/* verilator lint_on WIDTHTRUNC */\n"
    harness = Path(__file__).with_suffix(".v").read_text()
    design = simulation.Design(
        "machine",
        f"{head}{harness}{tail}{to_verilog('dma_engine', DmaEngine(config))}",
        public=("done", "timeout", "stray", "counters"),
        clock="clk",
    )
    return simulation.build(design, sim)


def run_copies(
    config: Config,
    words: Sequence[int],
    memories: Memories,
    *,
    base: int = 0,
    bad: tuple[int, int] = (0, 0),
    latency: int = 50,
    stall: int = 0,
    seed: int = 1,
    sim: str = "verilator",
) -> Outcome:
    """Run instructions, legal or not, one after the other; behind one that fails the engine is reset.

    Arguments:
        config: the machine's parameters.
        words: the instructions.
        memories: whole, at the beginning.
        base: address of HBM's first byte; beyond `HBM_BYTES` of them it answers with an error.
        bad: first and last address, less one, of others that it answers so.
        latency: of HBM, in cycles.
        stall: every handshake pauses in so many of 256 cycles, at random. seed: of the pauses.
    """
    build = built(config, sim)
    limit = 200_000
    with simulation.run_directory("dma") as directory:
        plusargs = [f"+limit={limit}", f"+stall={stall}", f"+noise={seed}", f"+latency={latency}", f"+base={base}"]
        plusargs += [f"+bad_low={bad[0]}", f"+bad_high={bad[1]}", f"+program_count={len(words)}"]
        digits = -(-DMA_BITS // 4)
        files = {"program": "".join(f"{word:0{digits}x}\n" for word in words)}
        files |= {storage.name.lower(): _lines(memories[storage], config.hbm_bytes) for storage in Storage}
        for name, text in files.items():
            path = directory / f"{name}.hex"
            path.write_text(text)
            plusargs.append(f"+{name}={path.resolve()}")
        out = {storage: (directory / f"{storage.name}.out").resolve() for storage in Storage}
        plusargs += [f"+{storage.name.lower()}_out={path}" for storage, path in out.items()]
        events = (directory / "events").resolve()
        plusargs.append(f"+events={events}")
        state = run_harness(build, directory, ("timeout", "stray", "counters"), plusargs=plusargs, limit=limit + 100)
        if state["timeout"]:
            raise SimulationFailed("the engine did not finish: it waits for something that does not come")
        if state["stray"]:
            raise SimulationFailed(f"the engine broke the rules of a port (machine.v: stray <= {state['stray']})")
        found = {storage: _read(path, len(memories[storage]), config.hbm_bytes) for storage, path in out.items()}
        return Outcome(memories=found, counters=plain(DmaCounters, state["counters"]), **_events(events))


def _lines(memory: np.ndarray, size: int) -> str:
    """Return memory, a partition after the other, as hexadecimal words of a beat."""
    return "".join(line.tobytes().hex() + "\n" for line in memory.reshape(-1, size)[:, ::-1])


def _read(path: Path, partitions: int, size: int) -> np.ndarray:
    text = "".join(line for line in path.read_text().splitlines() if not line.startswith(("//", "@")))
    return np.frombuffer(bytes.fromhex(text), np.uint8).reshape(-1, size)[:, ::-1].reshape(partitions, -1)


def _events(path: Path) -> dict[str, list]:
    found = {"taken": [], "retired": [], "errors": []}
    first = 0
    for line in path.read_text().splitlines():
        kind, cycle, *error = line.split()
        if kind == "e":
            cause, number, detail = map(int, error)
            found["errors"].append(Error(first + number, cause, detail))
            first += number + 1
        else:
            found["taken" if kind == "a" else "retired"].append(int(cycle))
    return found

"""Runs copies on a DMA engine in bulk: files in, files out, Python waits for one edge."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from neuroncore_rtl.hdl.conversion import to_verilog
from neuroncore_rtl.hdl.dma.counters import DmaCounters
from neuroncore_rtl.hdl.dma.engine import DmaEngine
from neuroncore_rtl.hdl.engine_error import DetailedError
from neuroncore_rtl.spec.config import PSUM_BYTES, SBUF_BYTES, Config
from neuroncore_rtl.spec.isa import DMA_BITS, DmaCopy, Storage
from neuroncore_rtl.tb.harness.run import run_harness
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.layouts import layout_defines, plain
from neuroncore_rtl.tb.sim.simulation import SimulationFailed
from tests.hdl.harness.machines import hex_lines, hex_words, machine_design, read_lines, write_files

__all__ = ["COUNTERS", "HBM_BYTES", "Error", "Memories", "Outcome", "built", "run_copies"]

HBM_BYTES = 1 << 18
"""Bytes of HBM that answer without an error, from the run's base."""

COUNTERS = tuple(DmaCounters.as_shape().members)

_PROGRAM_DEPTH = 4096

_PORTS = ("timeout", "stray", "counters")

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
    engine = to_verilog("dma_engine", DmaEngine(config))
    harness = Path(__file__).with_suffix(".v")
    return simulation.build(machine_design(harness, defines, engine, public=("done", *_PORTS)), sim)


def run_copies(
    config: Config,
    copies: Sequence[DmaCopy],
    memories: Memories,
    *,
    base: int = 0,
    bad: tuple[int, int] = (0, 0),
    latency: int = 50,
    stall: int = 0,
    seed: int = 1,
    sim: str = "verilator",
) -> Outcome:
    """Run copies, legal or not, one after the other; behind one that fails the engine is reset.

    Arguments:
        config: the machine's parameters.
        copies: the program.
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
        plusargs += [f"+bad_low={bad[0]}", f"+bad_high={bad[1]}", f"+program_count={len(copies)}"]
        files = {"program": hex_words([copy.encode() for copy in copies], DMA_BITS)}
        files |= {storage.name.lower(): hex_lines(memories[storage], config.hbm_bytes) for storage in Storage}
        plusargs += write_files(directory, files)
        out = {storage: (directory / f"{storage.name}.out").resolve() for storage in Storage}
        plusargs += [f"+{storage.name.lower()}_out={path}" for storage, path in out.items()]
        events = (directory / "events").resolve()
        plusargs.append(f"+events={events}")
        state = run_harness(build, directory, _PORTS, plusargs=plusargs, limit=limit + 100)
        if state["timeout"]:
            raise SimulationFailed("the engine did not finish: it waits for something that does not come")
        if state["stray"]:
            raise SimulationFailed(f"the engine broke the rules of a port (harness: stray <= {state['stray']})")
        found = {storage: read_lines(path, len(memories[storage]), config.hbm_bytes) for storage, path in out.items()}
        return Outcome(memories=found, counters=plain(DmaCounters, state["counters"]), **_events(events))


def _events(path: Path) -> dict[str, list]:
    taken, retired, errors, first = [], [], [], 0
    for line in path.read_text().splitlines():
        kind, cycle, *error = line.split()
        if kind == "e":
            cause, number, detail = map(int, error)
            errors.append(Error(first + number, cause, detail))
            first += number + 1
        else:
            (taken if kind == "a" else retired).append(int(cycle))
    return {"taken": taken, "retired": retired, "errors": errors}

"""Runs copies on a DMA engine in bulk: the harness reads and writes files, and Python waits only for its end."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from neuroncore_rtl.hdl.dma.counters import DmaCounters
from neuroncore_rtl.hdl.dma.engine import DmaEngine
from neuroncore_rtl.hdl.memory.port import LineRead
from neuroncore_rtl.hdl.primitives.engine_error import DetailedError
from neuroncore_rtl.hdl.verilog.conversion import to_verilog
from neuroncore_rtl.run.harness import hbm, subject_ports, verilog_text
from neuroncore_rtl.run.harness.run import run_harness
from neuroncore_rtl.run.sim import layouts, simulation
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import DMA_BITS, DmaCopy, Storage
from tests.hdl.harness.machines import hex_lines, hex_words, machine_design, read_lines, write_files

__all__ = ["HBM_BYTES", "Error", "Memories", "Outcome", "run_copies"]

HBM_BYTES = 1 << 18
"""Size of HBM; addresses beyond it get an error response."""

Memories = dict[Storage, np.ndarray]
"""uint8 [partitions, bytes]; HBM has one partition."""


@dataclass(frozen=True)
class Error:
    """Index of the copy that failed, and the report of the engine."""

    copy: int
    cause: int
    detail: int


SEEN = ("busy", "wait_axi_read", "wait_axi_write", "wait_line_read", "wait_line_write", "bursts", "active")
"""Events at the engine's ports: HBM bursts, and cycles with a busy engine, with a stall, and with a clock edge."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of a run; `seen` are the events of `SEEN`, counted at the ports.

    `taken`, `retired` and `failed` are the cycles in which copies were accepted, retired and failed; `counters` has the
    engine's counters since its last error.
    """

    memories: Memories
    errors: Sequence[Error]
    taken: Sequence[int]
    retired: Sequence[int]
    failed: Sequence[int]
    counters: dict[str, int]
    seen: dict[str, int]


@lru_cache(maxsize=4)
def built(config: Config, sim: str = "verilator") -> simulation.Build:
    defines = {
        "SIZE": config.hbm_bytes,
        "INSTRUCTION": DMA_BITS,
        "COUNTERS": DmaCounters.as_shape().size,
        **layouts.layout_defines("ERROR", DetailedError),
        **subject_ports.hbm_defines(1, 1, config.hbm_bytes, 1, HBM_BYTES // config.hbm_bytes, check_axi=True),
        "AXI": verilog_text.connections(subject_ports.axi_connections(("axi",), config.hbm_bytes, 1)),
        "LINE_READ_LATENCY": LineRead.LATENCY[config.port_latency],
        "PARTITIONS": config.partitions,
        "COLUMNS": config.columns,
        "SBUF_LINES": config.sbuf_bytes // config.hbm_bytes,
        "PSUM_LINES": config.psum_bytes // config.hbm_bytes,
        "PROGRAM_DEPTH": 4096,
    }
    engine = to_verilog("dma_engine", DmaEngine(config))
    design = machine_design(Path(__file__).with_suffix(".v"), defines, engine, ("counters", "seen"))
    return simulation.build(design, sim)


def run_copies(
    config: Config,
    copies: Sequence[DmaCopy],
    memories: Memories,
    *,
    base: int = 0,
    bad: tuple[int, int] = (0, 0),
    latency: int = 50,
    stall: int = 0,
    unanswered: int = 0,
    unwritten: int = 0,
    seed: int = 1,
    sim: str = "verilator",
) -> Outcome:
    """Run copies, legal or not, in order; the engine is reset after a copy that fails.

    The first byte of HBM has the address `base`; accesses beyond `HBM_BYTES` get an error response, and in the range
    `bad` (first address and last + 1, relative to the base). `latency` is the latency of HBM. `stall` is the
    probability of a stall of any handshake, `unanswered` that HBM delays a write response, in 1/256 per cycle.
    `unwritten` cycles pass from the acceptance of a line to its write on chip.
    """
    limit = 200_000
    with simulation.run_directory("dma") as directory:
        # All bursts have one ID, so reordering only delays responses.
        behaviour = hbm.Hbm(latency=latency, stall=stall, reorder=unanswered, slverr=bad, seed=seed)
        on_chip = {storage.name.lower(): storage for storage in (Storage.SBUF, Storage.PSUM)}
        files = {"program": hex_words([copy.encode() for copy in copies], DMA_BITS)}
        files |= {name: hex_lines(memories[storage], config.hbm_bytes) for name, storage in on_chip.items()}
        out = {name: (directory / f"{name}.out").resolve() for name in (*on_chip, "events")}
        arguments = verilog_text.plusargs(
            limit=limit, stall=stall, noise=seed, hbm_base=base, unwritten=unwritten, program_count=len(copies)
        )
        arguments += verilog_text.plusargs(events=out["events"], **{f"{name}_out": out[name] for name in on_chip})
        arguments += [*behaviour.plusargs(), *hbm.write_memory(directory, memories[Storage.HBM][0], config.hbm_bytes)]
        arguments += write_files(directory, files)
        state = run_harness(built(config, sim), directory, ("counters", "seen"), plusargs=arguments, limit=limit + 100)
        found = {Storage.HBM: hbm.read_memory(directory).reshape(1, -1)}
        for name, storage in on_chip.items():
            found[storage] = read_lines(out[name], len(memories[storage]), config.hbm_bytes)
        seen = {name: state["seen"] >> 32 * place & 0xFFFF_FFFF for place, name in enumerate(SEEN)}
        counted = layouts.plain(DmaCounters, state["counters"])
        return Outcome(memories=found, counters=counted, seen=seen, **_events(out["events"]))


def _events(path: Path) -> dict[str, list]:
    cycles, errors, first = {"a": [], "r": [], "e": []}, [], 0
    for line in path.read_text().splitlines():
        kind, cycle, *error = line.split()
        cycles[kind].append(int(cycle))
        if kind == "e":
            cause, number, detail = map(int, error)
            errors.append(Error(first + number, cause, detail))
            first += number + 1
    return {"taken": cycles["a"], "retired": cycles["r"], "failed": cycles["e"], "errors": errors}

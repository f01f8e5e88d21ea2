"""Runs lists of collectives on engines with an ideal network between them: files in, files out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from amaranth.lib import data

from neuroncore_rtl.hdl.collective.counters import CollectiveCounters
from neuroncore_rtl.hdl.collective.engine import CollectiveEngine
from neuroncore_rtl.hdl.collective.peer import Peer
from neuroncore_rtl.hdl.engine_error import DetailedError
from neuroncore_rtl.hdl.hierarchy import to_verilog
from neuroncore_rtl.hdl.link.flit import flit_layout
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_BITS, Collective
from neuroncore_rtl.tb.harness.run import run_harness
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.layouts import layout_defines, plain
from neuroncore_rtl.tb.sim.simulation import SimulationFailed
from tests.hdl.harness.machines import hex_lines, hex_words, machine_design, read_lines, write_files

__all__ = ["HBM_BYTES", "Error", "Outcome", "built", "run_collectives"]

HBM_BYTES = 1 << 17
"""Bytes of a core's HBM; what lies beyond answers with an error."""

_DEPTH = 256

_PORTS = ("timeout", "stray", "counters", "peers")


@dataclass(frozen=True)
class Error:
    """What the engine of a core said: the number of the instruction, the cause and its detail."""

    core: int
    number: int
    cause: int
    detail: int


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Memories at the end, uint8 [cores, bytes]; errors; cycles in which each core retired; counters of each core; whom
    each core waits for at the end, if it does."""

    memories: np.ndarray
    errors: Sequence[Error]
    retired: Sequence[Sequence[int]]
    counters: Sequence[dict[str, int | dict[str, int]]]
    peers: Sequence[int | None]
    cycles: int


@lru_cache(maxsize=4)
def built(cores: int, link_bytes: int, hbm_bytes: int, sim: str = "verilator") -> simulation.Build:
    """Return engines in their harness."""
    defines = {
        "CORES": cores,
        "LINK": link_bytes,
        "SIZE": hbm_bytes,
        "INSTRUCTION": COLLECTIVE_BITS,
        "COUNTERS": CollectiveCounters.as_shape().size,
        "PEER": Peer.as_shape().size,
        **layout_defines("ERROR", DetailedError),
        **layout_defines("FLIT", flit_layout(link_bytes)),
        "LINES": HBM_BYTES // hbm_bytes,
        "DEPTH": _DEPTH,
    }
    engine = to_verilog("collective_engine", CollectiveEngine(link_bytes, hbm_bytes, cores))
    harness = Path(__file__).with_suffix(".v")
    design = machine_design(harness, defines, engine, hier_blocks=("collective_engine",), public=("done", *_PORTS))
    return simulation.build(design, sim)


def run_collectives(
    programs: Mapping[int, Sequence[Collective | int]],
    memories: np.ndarray,
    *,
    link_bytes: int = 16,
    hbm_bytes: int = 16,
    latency: int = 40,
    delay: int = 10,
    stall: int = 0,
    seed: int = 1,
    limit: int = 300_000,
    hangs: bool = False,
    dead: tuple[int, int] = (0, 0),
    sim: str = "verilator",
) -> Outcome:
    """Run the lists of all cores.

    Arguments:
        programs: of each core, instructions or their words, legal or not.
        memories: uint8 [cores, HBM_BYTES], at the beginning.
        latency: of HBM. delay: of the network, in cycles.
        stall: every handshake pauses in so many of 256 cycles, at random. seed: of the pauses.
        limit: cycles after which the run is given up. hangs: that it has to be is no failure.
        dead: the links of core 0's chip that die, a bit each, and when.
    """
    cores = len(memories)
    build = built(cores, link_bytes, hbm_bytes, sim)
    with simulation.run_directory("collective") as directory:
        plusargs = [f"+limit={limit}", f"+stall={stall}", f"+noise={seed}", f"+latency={latency}", f"+delay={delay}"]
        lists = [[i if isinstance(i, int) else i.encode() for i in programs.get(core, ())] for core in range(cores)]
        assert max(map(len, lists)) < _DEPTH
        files = {
            "program": hex_words([n for words in lists for n in words + [0] * (_DEPTH - len(words))], COLLECTIVE_BITS),
            "counts": hex_words(list(map(len, lists)), 32),
            "hbm": hex_lines(memories, hbm_bytes),
        }
        plusargs += write_files(directory, files)
        out, events = (directory / "hbm.out").resolve(), (directory / "events").resolve()
        plusargs += [f"+hbm_out={out}", f"+events={events}", f"+dead={dead[0]}", f"+death={dead[1]}"]
        state = run_harness(build, directory, _PORTS, plusargs=plusargs, limit=limit + 100)
        if state["timeout"] and not hangs:
            raise SimulationFailed(f"the engines did not finish: {events.read_text().splitlines()[-20:]}")
        if state["stray"]:
            raise SimulationFailed(f"an engine broke the rules of a port (harness: stray <= {state['stray']})")
        errors, retired, last = [], [[] for _ in range(cores)], 0
        for line in events.read_text().splitlines():
            kind, core, cycle, *rest = line.split()
            last = int(cycle)
            if kind == "r":
                retired[int(core)].append(int(cycle))
            elif kind == "e":
                cause, number, detail = map(int, rest)
                errors.append(Error(int(core), number, cause, detail))
        peers = plain(data.ArrayLayout(Peer, cores), state["peers"])
        return Outcome(
            memories=read_lines(out, cores, hbm_bytes),
            errors=errors,
            retired=retired,
            counters=plain(data.ArrayLayout(CollectiveCounters, cores), state["counters"]),
            peers=[peer["core"] if peer["valid"] else None for peer in peers],
            cycles=last,
        )

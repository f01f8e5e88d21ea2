"""Runs programs of collectives on engines with an ideal network; the harness reads and writes files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from amaranth import unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.collective.counters import CollectiveCounters
from neuroncore_rtl.hdl.collective.engine import CollectiveEngine
from neuroncore_rtl.hdl.collective.peer import Peer
from neuroncore_rtl.hdl.link.flit import flit_layout
from neuroncore_rtl.hdl.primitives.engine_error import DetailedError
from neuroncore_rtl.hdl.verilog.conversion import to_verilog
from neuroncore_rtl.run.harness import collective_faults, hbm, subject_ports, verilog_text
from neuroncore_rtl.run.harness.run import run_harness
from neuroncore_rtl.run.sim import layouts, simulation
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_BITS, Collective
from tests.hdl.harness.machines import hex_words, machine_design, write_files

__all__ = ["CORES", "FIRST", "HBM_BYTES", "LINK_BYTES", "Outcome", "run_collectives"]
CORES, LINK_BYTES, HBM_BEAT = 5, 8, 16

FIRST = 62
"""Index of the first simulated core; the indices of the cores, 62 to 66, have every bit both 0 and 1."""

HBM_BYTES = 1 << 17
"""Size of a core's HBM; addresses beyond it get an error response."""

_DEPTH = 4096
_COUNTED = ("awake", "named", "sent")

_PORTS = {
    **{"errors": DetailedError, "peers": Peer, "counters": CollectiveCounters},
    **dict.fromkeys(_COUNTED, unsigned(32)),
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of a run; a sequence has an entry per core.

    `errors` has the errors of all cores. `retired` has the cycles in which the core retired an instruction, `awake` the
    number of cycles with a clock edge. `peers` is the core for which the core waits at the end, or None; `named` is the
    sum, over all cycles, of the index of that core plus one. `sent` is the total number of flits; `flits` and `taken`
    are the numbers of flits that the core had sent and received at each retirement.
    """

    memories: np.ndarray
    errors: Sequence[collective_faults.CollectiveFault]
    retired: Sequence[Sequence[int]]
    counters: Sequence[dict[str, int | dict[str, int]]]
    peers: Sequence[int | None]
    awake: Sequence[int]
    named: Sequence[int]
    sent: Sequence[int]
    flits: Sequence[Sequence[int]]
    taken: Sequence[Sequence[int]]


def _engine(core: int) -> str:
    links = [
        f".{way}__{channel}__{name}({way}_{signal}[{2 * core + channel}]),"
        for way in "io"
        for channel in range(2)
        for name, signal in (("payload", "flit"), ("valid", "valid"), ("ready", "ready"))
    ]
    axi = verilog_text.connections(subject_ports.axi_connections(("axi__0", "axi__1"), HBM_BEAT, 1, first=2 * core))
    return (
        f"collective_engine engine_{core} (.clk(gated[{core}]), .rst(rst), .core({FIRST + core}),"
        f" {' '.join(links)} {axi},"
        f" .active(active[{core}]),"
        f" .instructions__payload(program_[{core} * `DEPTH + next[{core}]]), .instructions__valid(offered[{core}]),"
        f" .instructions__ready(accepts[{core}]), .retired(retired[{core}]), .busy(busy[{core}]),"
        f" .dead({core} == 0 && cycles >= death ? dead[3:0] : 4'd0), .error(errors[`ERROR * {core} +: `ERROR]),"
        f" .peer(peers[`PEER * {core} +: `PEER]), .counters(counters[`COUNTERS * {core} +: `COUNTERS]));"
    )


@cache
def built() -> simulation.Build:
    defines = {
        "CORES": CORES,
        "FIRST": FIRST,
        "INSTRUCTION": COLLECTIVE_BITS,
        "DEPTH": _DEPTH,
        "COUNTERS": CollectiveCounters.as_shape().size,
        **layouts.layout_defines("PEER", Peer),
        **layouts.layout_defines("ERROR", DetailedError),
        **layouts.layout_defines("FLIT", flit_layout(LINK_BYTES)),
        **subject_ports.hbm_defines(CORES, 2, HBM_BEAT, 1, CORES * HBM_BYTES // HBM_BEAT, check_axi=True),
        "ENGINES": " ".join(map(_engine, range(CORES))),
    }
    engine = to_verilog("collective_engine", CollectiveEngine(LINK_BYTES, HBM_BEAT, FIRST + CORES))
    harness = Path(__file__).with_suffix(".v")
    return simulation.build(machine_design(harness, defines, engine, _PORTS, hier_blocks=("collective_engine",)))


def run_collectives(
    programs: Mapping[int, Sequence[Collective]],
    memories: np.ndarray,
    *,
    latency: int = 40,
    delay: int = 10,
    stall: int = 0,
    rate: int = 0,
    limit: int = 300_000,
    dead: tuple[int, int] = (0, 0),
    late: tuple[int, int] = (0, 0),
    base: int = 0,
) -> Outcome:
    """Run the programs of all cores on memories [cores, HBM_BYTES]; the first byte of each HBM has the address `base`.

    Cores are numbered from 0, except in the details of errors. `latency` and `rate` are those of HBM, `delay` the
    latency of the network. `stall` is the probability of a stall of any handshake, in 1/256 per cycle. `dead` are
    failing links of core 0's chip, and the cycle; `late` cores without instructions before a cycle; one bit each.
    """
    lists = [list(map(_word, programs.get(core, ()))) for core in range(CORES)]
    assert max(map(len, lists)) < _DEPTH
    program = "".join(f"@{core * _DEPTH:x}\n" + hex_words(words, COLLECTIVE_BITS) for core, words in enumerate(lists))
    with simulation.run_directory("collective") as directory:
        files = {"program": program, "counts": hex_words(list(map(len, lists)), 32)}
        events = (directory / "events").resolve()
        arguments = verilog_text.plusargs(
            limit=limit,
            stall=stall,
            delay=delay,
            dead=dead[0],
            death=dead[1],
            late=late[0],
            begin=late[1],
            hbm_room=HBM_BYTES,
            hbm_base=base,
            events=events,
        )
        arguments += [*write_files(directory, files), *hbm.Hbm(latency=latency, stall=stall, rate=rate).plusargs()]
        arguments += hbm.write_memory(directory, memories.reshape(-1), HBM_BEAT)
        state = run_harness(built(), directory, _PORTS, plusargs=arguments, limit=limit + 100)
        values = {name: layouts.plain(data.ArrayLayout(shape, CORES), state[name]) for name, shape in _PORTS.items()}
        rows = [[int(number) for number in line.split()] for line in events.read_text().splitlines()]
        retired, flits, taken = (
            [[row[n] for row in rows if row[0] == core] for core in range(CORES)] for n in (1, 2, 3)
        )
        return Outcome(
            memories=hbm.read_memory(directory).reshape(memories.shape),
            errors=[
                collective_faults.CollectiveFault(core, error["cause"], error["number"], error["detail"])
                for core, error in enumerate(values["errors"])
                if error["valid"]
            ],
            retired=retired,
            counters=values["counters"],
            **{name: values[name] for name in _COUNTED},
            flits=flits,
            taken=taken,
            peers=[peer["core"] - FIRST if peer["valid"] else None for peer in values["peers"]],
        )


@cache
def _word(one: Collective) -> int:
    return replace(one, group=replace(one.group, base=FIRST + one.group.base)).encode()

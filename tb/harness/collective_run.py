"""Runs lists of collectives on the engines of an instance: HBM in, HBM out, Python waits for one edge (see
`tb/harness/collective.v`)."""

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path

import numpy as np

from neuroncore_rtl.hdl.collective.counters import CollectiveCounters
from neuroncore_rtl.hdl.engine_error import DetailedError
from neuroncore_rtl.hdl.link.counters import LinkCounters
from neuroncore_rtl.hdl.linked_engines import LinkedEngines
from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_BITS, Collective
from neuroncore_rtl.spec.link import CHANNELS
from neuroncore_rtl.tb.harness import disturbance, hbm
from neuroncore_rtl.tb.harness.axi_ports import axi_connections
from neuroncore_rtl.tb.harness.collective_faults import CollectiveFault
from neuroncore_rtl.tb.harness.harness import run_harness
from neuroncore_rtl.tb.harness.hbm import Hbm
from neuroncore_rtl.tb.harness.link_view import (
    ENGINE_VIEW,
    LINK_VIEW,
    Sample,
    engine_defines,
    engine_views,
    link_defines,
    link_views,
    read_samples,
    sampling,
)
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.elaboration import elaborated
from neuroncore_rtl.tb.sim.layouts import define_lines, enum_defines, plain

__all__ = [
    "ROOM_BYTES",
    "Ending",
    "Event",
    "Outcome",
    "design",
    "instance_label",
    "run_collectives",
]

_TEMPLATE = Path(__file__).with_name("collective.v")

ROOM_BYTES = 64 << 20
"""HBM of all cores that the harness has room for, unless it is built for more."""

STEPS = 1 << 17
"""Instructions of all cores that it has room for."""

PATIENCE = 20_000
"""Cycles without a movement after which nothing will move any more."""

ENGINES = "linked_engines"
"""Verilog module of the engines and the fabric."""

_BLOCKS = re.compile(r"collective_engine$")
"""Modules that Verilator builds once, apart. It takes every output of such a one to depend on every input, so that
routers and links in a ring, each of them apart, would look like circles of logic."""

_KEPT = re.compile(r"router_|link_end_|link_wire_|axi_checker$")
"""Modules whose instances stay apart."""


class Ending(enum.IntEnum):
    """How a run ended."""

    RETIRED = 0
    """Every core has retired its list."""
    ERROR = 1
    """An engine reported an error, and nothing moves any more."""
    DEAD = 2
    """A link is dead, and nothing moves any more."""
    STUCK = 3
    """Nothing moves any more, and nobody says why."""
    LIMIT = 4
    """The limit of cycles was reached."""


@dataclass(frozen=True)
class Event:
    """An instruction in an engine: whose, and the cycles in which it was taken and retired; None if it was not."""

    core: int
    taken: int
    retired: int | None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of the lists.

    Arguments:
        ending: how it ended.
        cycles: from the end of reset to the last retirement.
        taken, retired: of each core, the instructions of which that is true.
        faults: the engines' errors, by core.
        counters: by core, by the names of `hdl.collective.counters`.
        dead: wires whose link is dead, ascending.
        disturbed: by wire, the frames that were disturbed.
        links: by wire, the counters of the end that sends on it.
        events: of each core, its instructions in order.
        memories: uint8 [cores, bytes].
        seconds: wall time from the first clock edge to the end.
        samples: what the links had done in the course of the run; empty if it was not sampled.
    """

    ending: Ending
    cycles: int
    taken: Sequence[int]
    retired: Sequence[int]
    faults: Mapping[int, CollectiveFault]
    counters: Sequence[Mapping]
    dead: Sequence[int]
    disturbed: Sequence[int]
    links: Sequence[Mapping[str, int]]
    events: Sequence[Sequence[Event]]
    memories: np.ndarray
    seconds: float
    samples: Sequence[Sample] = ()


@lru_cache(maxsize=4)
def design(
    instance: Instance, *, room: int = ROOM_BYTES, check_axi: bool = True, waves: bool = False
) -> simulation.Design:
    """Return the collective engines and the fabric of an instance in their harness.

    Arguments:
        instance: the instance.
        room: bytes of HBM of all cores together.
        check_axi: whether every AXI port is watched for what the protocol forbids.
        waves: whether there are signals that only a waveform needs.
    """
    text = elaborated(ENGINES, instance_label(instance), lambda: LinkedEngines(instance), asdict(instance))
    wires = instance.chips * instance.directions
    ports = [f"axi__{port}" for port in range(CHANNELS * instance.cores)]
    defines = {
        **({"CHECK_AXI": ""} if check_axi else {}),
        **({"WAVES": ""} if waves else {}),
        "CORES": instance.cores,
        "WIRES": wires,
        "BYTES": instance.core.hbm_bytes,
        "DEPTH": room // instance.core.hbm_bytes,
        "STEPS": STEPS,
        "INSTRUCTION": COLLECTIVE_BITS,
        "ERROR": DetailedError.as_shape().size,
        **enum_defines("ENDING", Ending),
        "CORE_COUNTERS": CollectiveCounters.as_shape().size,
        "LISTS": _list_connections(instance),
        "AXI": axi_connections(ports, instance.core.hbm_bytes, 1),
        **link_defines(instance),
        "LINK_VIEWS": link_views(
            instance,
            "engines.fabric",
            "link_counters[{0} * `LINK_COUNTERS +: `LINK_COUNTERS]",
            disturbed="flip[{0}] | drop[{0}] | repeated[{0}] | cut[{0}]",
            waves=waves,
        ),
        **engine_defines(),
        "ENGINE_VIEWS": engine_views(instance) if waves else "",
    }
    head = define_lines(defines)
    parts = [_TEMPLATE.read_text(), hbm.VERILOG.read_text(), LINK_VIEW.read_text(), disturbance.VERILOG.read_text()]
    if waves:
        parts.append(ENGINE_VIEW.read_text())
    if check_axi:
        parts.append(_TEMPLATE.with_name("axi_checker.v").read_text())
    verilog = "\n".join([head, *parts, text])
    modules = re.findall(r"^module (\w+)", verilog, re.MULTILINE)
    return simulation.Design(
        "collective",
        verilog,
        hier_blocks=tuple(name for name in modules if _BLOCKS.match(name)),
        kept=tuple(name for name in modules if _KEPT.match(name)),
        public=("done",),
        clock="clk",
    )


def instance_label(instance: Instance) -> str:
    """Return what tells an instance from others, in a file's name."""
    shape = f"{instance.width}x{instance.chips // instance.width}" if instance.topology == Topology.TORUS else "ring"
    return f"{instance.chips}-{shape}-{instance.link_bytes}x{instance.link_latency}"


def _list_connections(instance: Instance) -> str:
    """Return the connections of the instruction streams to slices of the harness's vectors."""
    return " ".join(
        f".instructions__{core}__payload(instructions[{COLLECTIVE_BITS * core} +: {COLLECTIVE_BITS}]), "
        f".instructions__{core}__valid(offered[{core}]), .instructions__{core}__ready(accepts[{core}]),"
        for core in range(instance.cores)
    )


def run_collectives(
    built: simulation.Build,
    instance: Instance,
    lists: Mapping[int, Sequence[Collective | int]],
    memories: np.ndarray,
    *,
    delays: Mapping[int, Sequence[int]] | None = None,
    behaviour: Hbm | None = None,
    errors: float = 0.0,
    cut: disturbance.Cut | None = None,
    seed: int = 1,
    limit: int = 20_000_000,
    patience: int = PATIENCE,
    sampled: bool = False,
    waves: Path | None = None,
    waves_levels: int = 0,
) -> Outcome:
    """Run lists of collectives on a build of `design(instance)`.

    Arguments:
        built: the build.
        instance: the instance.
        lists: by core, its instructions, or words of bits in their place; cores without a list take no part.
        memories: uint8 [cores, bytes], what each core's HBM holds; bytes are a multiple of 4096. They stay as they are.
        delays: by core, the cycles that pass before each of its instructions is offered; none if not given.
        behaviour: of HBM; its `size` stays None, and the addresses of its errors count core after core.
        errors: share of the frames that are disturbed, of every wire.
        cut: a wire that dies.
        seed: of the disturbances.
        limit: cycles after which the run is given up.
        patience: cycles without a movement after which it is left; more than a link needs to be found dead.
        sampled: whether the links are sampled in the course of the run.
        waves: where to move the recorded waveform.
        waves_levels: see `tb.sim.simulation.run`.

    Raises:
        ValueError: if the memories or the lists are larger than the harness has room for.
        SimulationFailed: if the simulation breaks off, as it does where the AXI protocol is violated.
    """
    cores, room = memories.shape
    if cores != instance.cores or room % 4096:
        raise ValueError(f"memories must be [{instance.cores}, a multiple of 4096], not {list(memories.shape)}")
    words, starts = _words(instance, lists, delays or {})
    if len(words) > STEPS:
        raise ValueError(f"lists must have at most {STEPS:,} instructions, not {len(words):,}")
    with simulation.run_directory("collective") as directory:
        names = ("lists", "starts", "runs", "events")
        paths = {name: directory.resolve() / f"{name}.txt" for name in (*names, "samples")}
        paths["lists"].write_text("".join(f"{word:x}\n" for word in words or [0]))
        paths["starts"].write_text("".join(f"{start:x}\n" for start in starts))
        plusargs = [f"+{name}={paths[name]}" for name in names]
        plusargs += [f"+steps={max(len(words), 1)}", f"+room={room}", f"+limit={limit}", f"+patience={patience}"]
        plusargs += disturbance.disturbing(errors, seed, cut)
        plusargs += sampling(paths["samples"]) if sampled else []
        plusargs += (behaviour or Hbm()).plusargs() + [f"+hbm_size={cores * room}"]
        plusargs += hbm.write_memory(directory, memories.reshape(-1), instance.core.hbm_bytes)
        state = run_harness(
            built, directory, plusargs=plusargs, limit=limit + 1000, waves=waves, waves_levels=waves_levels
        )
        first, *lines = paths["runs"].read_text().splitlines()
        cycles, ending = map(int, first.split())
        per_core = [line.split() for line in lines[:cores]]
        per_wire = [line.split() for line in lines[cores:]]
        errors_found = [plain(DetailedError, int(fields[2], 16)) for fields in per_core]
        return Outcome(
            ending=Ending(ending),
            cycles=cycles,
            taken=[int(fields[0]) for fields in per_core],
            retired=[int(fields[1]) for fields in per_core],
            faults={
                core: CollectiveFault(core, error["cause"], error["number"], error["detail"])
                for core, error in enumerate(errors_found)
                if error["valid"]
            },
            counters=[plain(CollectiveCounters, int(fields[3], 16)) for fields in per_core],
            dead=[wire for wire, fields in enumerate(per_wire) if fields[0] == "1"],
            disturbed=[int(fields[1]) for fields in per_wire],
            links=[plain(LinkCounters, int(fields[2], 16)) for fields in per_wire],
            events=_events(cores, paths["events"].read_text()),
            memories=hbm.read_memory(directory)[: cores * room].reshape(cores, room),
            seconds=state["seconds"],
            samples=read_samples(paths["samples"].read_text()) if sampled else [],
        )


def _words(
    instance: Instance, lists: Mapping[int, Sequence[Collective | int]], delays: Mapping[int, Sequence[int]]
) -> tuple[list[int], list[int]]:
    """Return the lines of all lists, and where each core's begins and the last one's ends."""
    words, starts = [], [0]
    for core in range(instance.cores):
        for position, collective in enumerate(lists.get(core, ())):
            word = collective if isinstance(collective, int) else collective.encode()
            delay = delays[core][position] if core in delays else 0
            words.append(delay << COLLECTIVE_BITS | word)
        starts.append(len(words))
    return words, starts


def _events(cores: int, text: str) -> list[list[Event]]:
    taken, retired = ([[] for _ in range(cores)] for _ in range(2))
    for kind, core, cycle in map(str.split, text.splitlines()):
        {"i": taken, "r": retired}[kind][int(core)].append(int(cycle))
    return [
        [Event(core, begin, end) for begin, end in zip_longest(taken[core], retired[core][: len(taken[core])])]
        for core in range(cores)
    ]

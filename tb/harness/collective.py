"""Lists of collectives on the engines of an instance, without its cores (see `tb/harness/collective.v`)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path

import numpy as np

from neuroncore_rtl.hdl.collective.counters import CollectiveCounters
from neuroncore_rtl.hdl.engine_error import DetailedError
from neuroncore_rtl.hdl.linked_engines import LinkedEngines
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa import collective_queue
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_BITS, Collective
from neuroncore_rtl.spec.link import CHANNELS
from neuroncore_rtl.tb.harness import disturbance, hbm
from neuroncore_rtl.tb.harness.axi_ports import axi_connections, axi_defines, memories_verilog
from neuroncore_rtl.tb.harness.collective_faults import CollectiveFault
from neuroncore_rtl.tb.harness.cores import ROOM_BYTES
from neuroncore_rtl.tb.harness.hbm import Hbm
from neuroncore_rtl.tb.harness.link_view import (
    ENGINE_VIEW,
    LINK_VIEW,
    engine_defines,
    engine_views,
    instance_label,
    link_defines,
    link_views,
    sampling,
)
from neuroncore_rtl.tb.harness.outcome import Ending, Event, Outcome, link_activity
from neuroncore_rtl.tb.harness.verilog_text import assemble, modules_of
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.elaboration import elaborated
from neuroncore_rtl.tb.sim.layouts import enum_defines, plain

__all__ = ["CollectiveDevice", "CollectiveWork"]

_TEMPLATE = Path(__file__).with_suffix(".v")

STEPS = 1 << 17
"""Instructions of all cores that the harness has room for."""

PATIENCE = 20_000
"""Cycles without a movement after which nothing will move any more."""

_BLOCKS = r"collective_engine$"
"""Modules that Verilator builds once, apart. It takes every output of such a one to depend on every input, so that
routers and links in a ring, each of them apart, would look like circles of logic."""

_KEPT = r"router_|link_end_|link_wire_|axi_checker$"
"""Modules whose instances stay apart."""


@dataclass(frozen=True, kw_only=True)
class CollectiveWork:
    """Lists of collectives, and what befalls those who execute them.

    Arguments:
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
    """

    lists: Mapping[int, Sequence[Collective | int]]
    memories: np.ndarray
    delays: Mapping[int, Sequence[int]] = field(default_factory=dict)
    behaviour: Hbm = Hbm()
    errors: float = 0.0
    cut: disturbance.Cut | None = None
    seed: int = 1
    limit: int = 20_000_000
    patience: int = PATIENCE
    sampled: bool = False


@dataclass(frozen=True, kw_only=True)
class CollectiveDevice:
    """The collective engines and the fabric of an instance.

    Its outcome has the form of that of all cores, as far as they are there: the parts are the cores, with the events of
    the one queue and the counters `collective`; the memory `hbm` is uint8 [cores, bytes]. Cycles count from the end of
    reset to the last retirement.

    Arguments:
        instance: the instance.
        room: bytes of HBM of all cores together.
        check_axi: whether every AXI port is watched for what the protocol forbids.
    """

    instance: Instance
    room: int = ROOM_BYTES
    check_axi: bool = True

    label = "collective"
    ports = ()

    def design(self, *, waves: bool = False, vectors: bool = False) -> simulation.Design:
        """Return the engines in their harness."""
        instance, hbm_bytes = self.instance, self.instance.core.hbm_bytes
        label = instance_label(instance)
        text = elaborated("linked_engines", label, lambda: LinkedEngines(instance), asdict(instance))
        ports = [f"axi__{port}" for port in range(CHANNELS * instance.cores)]
        defines = {
            **({"CHECK_AXI": ""} if self.check_axi else {}),
            **({"WAVES": ""} if waves else {}),
            "CORES": instance.cores,
            "WIRES": instance.chips * instance.directions,
            "BYTES": hbm_bytes,
            "DEPTH": self.room // hbm_bytes,
            "STEPS": STEPS,
            "INSTRUCTION": COLLECTIVE_BITS,
            "ERROR": DetailedError.as_shape().size,
            **enum_defines("ENDING", Ending),
            "CORE_COUNTERS": CollectiveCounters.as_shape().size,
            "LISTS": _list_connections(instance),
            "AXI": axi_connections(ports, hbm_bytes, 1),
            **axi_defines(len(ports), hbm_bytes, 1),
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
        paths = [_TEMPLATE, LINK_VIEW, disturbance.VERILOG, *([ENGINE_VIEW] if waves else [])]
        parts = [*(path.read_text() for path in paths), *memories_verilog(self.check_axi)]
        verilog = assemble(defines, *parts, text)
        return simulation.Design(
            "collective",
            verilog,
            hier_blocks=modules_of(verilog, _BLOCKS),
            kept=modules_of(verilog, _KEPT),
            public=("done",),
            clock="clk",
        )

    def load(self, work: CollectiveWork, directory: Path) -> tuple[list[str], int]:
        """Write the lists and HBM."""
        cores, room = work.memories.shape
        if cores != self.instance.cores or room % 4096:
            raise ValueError(
                f"memories must be [{self.instance.cores}, a multiple of 4096], not {list(work.memories.shape)}"
            )
        words, starts = _words(self.instance, work)
        if len(words) > STEPS:
            raise ValueError(f"lists must have at most {STEPS:,} instructions, not {len(words):,}")
        (directory / "lists").write_text("".join(f"{word:x}\n" for word in words or [0]))
        (directory / "starts").write_text("".join(f"{start:x}\n" for start in starts))
        plusargs = [f"+{name}={directory / name}" for name in ("lists", "starts", "runs", "events")]
        plusargs += [f"+steps={max(len(words), 1)}", f"+room={room}", f"+limit={work.limit}"]
        plusargs += [f"+patience={work.patience}", *disturbance.disturbing(work.errors, work.seed, work.cut)]
        plusargs += sampling(directory / "samples") if work.sampled else []
        plusargs += [*work.behaviour.plusargs(), f"+hbm_size={cores * room}"]
        plusargs += hbm.write_memory(directory, work.memories.reshape(-1), self.instance.core.hbm_bytes)
        return plusargs, work.limit + 1000

    def read(self, work: CollectiveWork, directory: Path, state: Mapping[str, float]) -> Outcome:
        """Return what became of the lists."""
        found: dict[str, list[list[str]]] = {"core": [], "wire": [], "end": []}
        for line in (directory / "runs").read_text().splitlines():
            kind, *fields = line.split()
            found[kind].append(fields)
        ((cycles, ending),) = found["end"]
        events = _events(self.instance, (directory / "events").read_text())
        parts = {}
        for core, error, counters in found["core"]:
            fault = plain(DetailedError, int(error, 16))
            one = CollectiveFault(int(core), fault["cause"], fault["number"], fault["detail"])
            listed = events[int(core)]
            parts[int(core)] = Outcome(
                ending=Ending(int(ending)),
                cycles=int(cycles),
                errors=(one,) if fault["valid"] else (),
                counters={"collective": plain(CollectiveCounters, int(counters, 16))},
                events=listed,
            )
        return Outcome(
            ending=Ending(int(ending)),
            cycles=int(cycles),
            parts=parts,
            links=link_activity(found["wire"], directory / "samples" if work.sampled else None),
            memories={"hbm": hbm.read_memory(directory)[: work.memories.size].reshape(work.memories.shape)},
            seconds=state["seconds"],
        )


def _list_connections(instance: Instance) -> str:
    """Return the connections of the instruction streams to slices of the harness's vectors."""
    return " ".join(
        f".instructions__{core}__payload(instructions[{COLLECTIVE_BITS * core} +: {COLLECTIVE_BITS}]), "
        f".instructions__{core}__valid(offered[{core}]), .instructions__{core}__ready(accepts[{core}]),"
        for core in range(instance.cores)
    )


def _words(instance: Instance, work: CollectiveWork) -> tuple[list[int], list[int]]:
    """Return the lines of all lists, and where each core's begins and the last one's ends."""
    words, starts = [], [0]
    for core in range(instance.cores):
        for position, collective in enumerate(work.lists.get(core, ())):
            word = collective if isinstance(collective, int) else collective.encode()
            delay = work.delays[core][position] if core in work.delays else 0
            words.append(delay << COLLECTIVE_BITS | word)
        starts.append(len(words))
    return words, starts


def _events(instance: Instance, text: str) -> list[list[Event]]:
    taken, retired = ([[] for _ in range(instance.cores)] for _ in range(2))
    for kind, core, cycle in map(str.split, text.splitlines()):
        {"i": taken, "r": retired}[kind][int(core)].append(int(cycle))
    queue = collective_queue(instance.core)
    return [
        [
            Event(queue, number, begin, end)
            for number, (begin, end) in enumerate(zip_longest(begins, ends[: len(begins)]))
        ]
        for begins, ends in zip(taken, retired, strict=True)
    ]

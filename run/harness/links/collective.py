"""Device of the collective engines and links of an instance (`run/harness/links/collective.v`)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from neuroncore_rtl.hdl.collective.counters import CollectiveCounters
from neuroncore_rtl.hdl.linked_engines import LinkedEngines
from neuroncore_rtl.hdl.primitives.engine_error import DetailedError
from neuroncore_rtl.run.harness import link_view
from neuroncore_rtl.run.harness.collective_faults import CollectiveFault
from neuroncore_rtl.run.harness.cores import ROOM_BYTES
from neuroncore_rtl.run.harness.hbm import HbmWork
from neuroncore_rtl.run.harness.outcome import Ending, Event, Outcome, events_of, fields_by_kind, link_activity
from neuroncore_rtl.run.harness.subject_ports import axi_connections, hbm_defines, hbm_sources
from neuroncore_rtl.run.harness.verilog_text import arguments, connections, harness, plusargs
from neuroncore_rtl.run.sim import simulation
from neuroncore_rtl.run.sim.elaboration import elaborated
from neuroncore_rtl.run.sim.images import write_lines
from neuroncore_rtl.run.sim.layouts import enum_defines, plain
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa import collective_queue
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_BITS, Collective
from neuroncore_rtl.spec.link import CHANNELS

__all__ = ["CollectiveDevice", "CollectiveWork"]

STEPS = 1 << 17
"""Most instructions of all cores together."""

PATIENCE = 20_000
"""Idle cycles after which a run is stopped."""

_BLOCKS = r"collective_engine$"
"""Hierarchical blocks of Verilator; not routers and links, see `run.harness.cores`."""

_KEPT = r"router_|link_end_|link_wire_|axi_checker$"


@dataclass(frozen=True, kw_only=True)
class CollectiveWork(HbmWork):
    """Lists of collectives, and disturbances.

    Arguments (besides those of `HbmWork`):
        lists: instructions, or their words, of each participating core.
        delays: for each core, the cycles before each instruction is offered; default 0.
        limit: cycles after which the run is stopped.
        patience: idle cycles after which it is stopped; longer than the detection of a dead link.
    """

    lists: Mapping[int, Sequence[Collective | int]]
    delays: Mapping[int, Sequence[int]] = field(default_factory=dict)
    limit: int = 20_000_000
    patience: int = PATIENCE


@dataclass(frozen=True, kw_only=True)
class CollectiveDevice:
    """The collective engines and the fabric of an instance, with `room` bytes of HBM.

    The parts of its outcome are the cores, with the events of the collective queue and the counters `collective`; the
    memory `hbm` is uint8 [cores, bytes]. Cycles count from reset to the last retirement.
    """

    instance: Instance
    room: int = ROOM_BYTES
    check_axi: bool = True

    label = "collective"
    ports = ()

    def design(self, *, waves: bool = False, vectors: bool = False) -> simulation.Design:
        instance, hbm_bytes = self.instance, self.instance.core.hbm_bytes
        label = link_view.instance_label(instance)
        text = elaborated("linked_engines", label, lambda: LinkedEngines(instance), asdict(instance))
        ports = [f"axi__{port}" for port in range(CHANNELS * instance.cores)]
        defines = {
            "ARGUMENTS": arguments(("limit", "patience"), ("lists", "starts"), ("runs", "events")),
            "CORES": instance.cores,
            "STEPS": STEPS,
            "INSTRUCTION": COLLECTIVE_BITS,
            "ERROR": DetailedError.as_shape().size,
            **enum_defines("ENDING", Ending),
            "CORE_COUNTERS": CollectiveCounters.as_shape().size,
            "PORTS": connections(_list_connections(instance) | axi_connections(ports, hbm_bytes, 1)),
            **hbm_defines(instance.cores, CHANNELS, hbm_bytes, 1, self.room // hbm_bytes, check_axi=self.check_axi),
            **link_view.link_defines(instance, "engines.fabric", waves=waves),
            **link_view.engine_defines(),
            "ENGINE_VIEWS": link_view.engine_views(instance) if waves else "",
        }
        paths = [link_view.LINK_VIEW, link_view.LINK_DISTURBANCE, *([link_view.ENGINE_VIEW] if waves else [])]
        parts, modules = (*paths, *hbm_sources(self.check_axi), text), {"blocks": _BLOCKS, "kept": _KEPT}
        return harness(__file__, "collective", defines, *parts, **modules, waves=waves)

    def load(self, work: CollectiveWork, directory: Path) -> tuple[list[str], int]:
        work.check_memories(self.instance.cores)
        lines, starts = _lines(self.instance, work)
        if len(lines) > STEPS:
            raise ValueError(f"lists must have at most {STEPS:,} instructions, not {len(lines):,}")
        files = {"lists": "".join(f"{line:x}\n" for line in lines), "starts": "".join(f"{n:x}\n" for n in starts)}
        words = write_lines(directory, files) + plusargs(limit=work.limit, patience=work.patience)
        words += plusargs(runs=directory / "runs", events=directory / "events")
        words += work.hbm_plusargs(directory, self.instance.core.hbm_bytes, limited=True)
        return words + work.link_plusargs(directory), work.limit + 1000

    def read_outcome(self, work: CollectiveWork, directory: Path, state: Mapping[str, float]) -> Outcome:
        found = fields_by_kind(directory / "runs")
        ((cycles, ending),) = found["end"]
        whole = {"ending": Ending(int(ending)), "cycles": int(cycles)}
        events = _events(self.instance, directory / "events")
        parts = {}
        for core, error, counters in found["core"]:
            fault = plain(DetailedError, int(error, 16))
            one = CollectiveFault(int(core), fault["cause"], fault["number"], fault["detail"])
            counted = {"collective": plain(CollectiveCounters, int(counters, 16))}
            errors = (one,) if fault["valid"] else ()
            parts[int(core)] = Outcome(**whole, errors=errors, counters=counted, events=events[int(core)])
        links, memories = link_activity(found["wire"], directory, work.sampled), {"hbm": work.memories_after(directory)}
        return Outcome(**whole, parts=parts, links=links, memories=memories)


def _list_connections(instance: Instance) -> dict[str, str]:
    found = {}
    for core in range(instance.cores):
        port, payload = f"instructions__{core}__", f"instructions[{COLLECTIVE_BITS} * {core} +: {COLLECTIVE_BITS}]"
        found |= {f"{port}payload": payload, f"{port}valid": f"offered[{core}]", f"{port}ready": f"accepts[{core}]"}
    return found


def _lines(instance: Instance, work: CollectiveWork) -> tuple[list[int], list[int]]:
    """Return the words of all lists, and the index of each list's first word, followed by the number of all words."""
    lines, starts = [], [0]
    for core in range(instance.cores):
        for position, collective in enumerate(work.lists.get(core, ())):
            word = collective if isinstance(collective, int) else collective.encode()
            delay = work.delays[core][position] if core in work.delays else 0
            lines.append(delay << COLLECTIVE_BITS | word)
        starts.append(len(lines))
    return lines, starts


def _events(instance: Instance, path: Path) -> list[list[Event]]:
    cycles = {kind: [[] for _ in range(instance.cores)] for kind in "ir"}
    for kind, lines in fields_by_kind(path).items():
        for core, cycle in lines:
            cycles[kind][int(core)].append(int(cycle))
    queue = collective_queue(instance.core)
    assert queue is not None, "a core of an instance has one"
    return [events_of(queue, taken, retired) for taken, retired in zip(*cycles.values(), strict=True)]

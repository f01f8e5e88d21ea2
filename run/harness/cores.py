"""Device of whole cores: a lone core, or an instance with its links (`run/harness/cores.v`)."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from neuroncore_rtl.hdl.core_ports import axi_id_bits, core_counters
from neuroncore_rtl.hdl.instance import LinkedCores
from neuroncore_rtl.hdl.queue.errors import CoreError
from neuroncore_rtl.run.harness import subject_ports
from neuroncore_rtl.run.harness.activity import activity_defines, read_activity
from neuroncore_rtl.run.harness.hbm import HbmWork
from neuroncore_rtl.run.harness.link_view import LINK_DISTURBANCE, LINK_VIEW, instance_label, link_defines
from neuroncore_rtl.run.harness.outcome import Ending, Event, Outcome, fields_by_kind, link_activity
from neuroncore_rtl.run.harness.verilog_text import arguments, connections, harness, modules_of, plusargs
from neuroncore_rtl.run.sim import simulation
from neuroncore_rtl.run.sim.elaboration import elaborated, engine_verilog
from neuroncore_rtl.run.sim.images import write_lines
from neuroncore_rtl.run.sim.layouts import layout_defines, plain
from neuroncore_rtl.run.sim.side_by_side import SideBySide
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS, cause_name, queue_count

__all__ = ["ROOM_BYTES", "CoreDevice", "CoreFault", "CoreWork", "room_of"]

ROOM_BYTES = 16 << 20
"""Least HBM of all cores in a harness; the simulator zeroes it at each start, 64 MiB in 0.1 s of CPU time."""

LARGE_ROOM_BYTES = 64 << 20
"""Least HBM of all cores if they need more."""


def room_of(size: int) -> int:
    """Return the HBM of a harness that needs `size` bytes: one of few sizes, so that runs share builds."""
    return ROOM_BYTES if size <= ROOM_BYTES else max(LARGE_ROOM_BYTES, 1 << (size - 1).bit_length())


ROUNDS = 256
"""Most images that a lone core runs one after another."""

MANY = 8
"""Chips, from which on a chip is a hierarchical block, instead of a core: Verilator evaluates less around them."""

PATIENCE = 8192
"""Idle cycles after which a run is stopped."""

_BLOCKS = r"(block|edge|psum|vector_block|activation_block|sbuf_block)_"
"""Modules that Verilator compiles once for several instances, as hierarchical blocks. A block costs a call per clock
edge: a core with one instance of each runs 1.5 times as fast without."""

_KEPT = r"tile_|(vector|activation)_lane(_\w+)?$|(tensor|vector|scalar|dma|collective)_engine$|queue_|bank_384x64$"
"""Modules that Verilator does not inline. For the banks of SBUF this makes a build three times as fast, a run 9 %."""

_LINKS = r"router_|link_end_|link_wire_|axi_checker$"
"""Modules of links that Verilator does not inline. As hierarchical blocks their ring would be a combinational loop:
Verilator assumes that every output of a block depends on every input."""


@dataclass(frozen=True)
class CoreFault:
    """Error that a core reports: its queue, cause (`spec.isa.Rule` or `Cause`), record's HBM address, and detail."""

    queue: int
    cause: int
    address: int
    detail: int

    def __str__(self) -> str:
        return f"queue {self.queue}: record {self.address:#x}: {cause_name(self.cause)}, detail {self.detail:#x}"


@dataclass(frozen=True, kw_only=True)
class CoreWork(HbmWork):
    """Images in memory, and disturbances.

    Arguments (besides those of `HbmWork`):
        boots: address of the image of each core, None for a core that does not start. For a lone core, addresses of
            images that run one after another, each after a reset.
        delays: start delay of each core in cycles; default 0.
        limit: cycles after which an image is stopped; later images do not run.
        patience: idle cycles after which an unfinished run is stopped.
        host: cycle after each start in which the host interrupts the controllers; 0: never.
        profiled: whether outcomes have `activity`.
    """

    boots: Sequence[int | None] = (0,)
    delays: Sequence[int] | None = None
    limit: int = 1_000_000
    patience: int = PATIENCE
    host: int = 0
    profiled: bool = False


@dataclass(frozen=True, kw_only=True)
class CoreDevice:
    """A lone core, or all cores of an instance.

    The parts of its outcome are the images; the counter `simulated` has all cycles.

    Arguments:
        room: bytes of HBM of all cores.
        check_axi: whether a protocol checker watches every AXI port.
        watches_gates: whether a checker watches every clock gate for a clock that stops too early.
        inside: whether a waveform of an instance shows the inside of cores, which are then compiled separately.
    """

    machine: Config | Instance
    room: int = ROOM_BYTES
    check_axi: bool = True
    inside: bool = False
    watches_gates: bool = False

    ports = ()

    @property
    def instance(self) -> Instance | None:
        return self.machine if isinstance(self.machine, Instance) else None

    @property
    def core(self) -> Config:
        return self.machine.core if isinstance(self.machine, Instance) else self.machine

    @property
    def cores(self) -> int:
        return self.machine.cores if self.instance else 1

    @property
    def label(self) -> str:
        return "instance" if self.instance else "core"

    def verilog(self, *, cached: bool = True, vectors: bool = False) -> str:
        options = {"cached": cached, "watches_gates": self.watches_gates, "vectors": vectors}
        if self.instance is None:
            return engine_verilog(self.core, "core", **options)
        label = f"{instance_label(self.instance)}-{self.core.rows}x{self.core.columns}"
        cores, parameters = partial(LinkedCores, self.instance), asdict(self.instance)
        return elaborated("linked_cores", label, cores, parameters, **options)

    def design(self, *, waves: bool = False, vectors: bool = False) -> simulation.Design:
        core, cores, text = self.core, self.cores, self.verilog(vectors=vectors)
        prefixes = [f"cores__{number}__axi" if self.instance else "axi" for number in range(cores)]
        ports = [f"{prefix}__{port}" for prefix in prefixes for port in range(core.hbm_ports)]
        axi, depth = (core.hbm_bytes, axi_id_bits(core)), self.room // core.hbm_bytes
        defines = {
            "ARGUMENTS": arguments(("limit", "rounds", "host", "patience", "profile"), ("boots",), ("runs", "events")),
            "TOP": "machines" if self.instance else "machine",
            "SUBJECT": "linked_cores cores" if self.instance else "core core",
            "CORES": cores,
            "ROUNDS": 1 if self.instance else ROUNDS,
            "QUEUES": queue_count(core),
            "COUNTERS": core_counters(core).size,
            **layout_defines("ERROR", CoreError),
            **activity_defines(core),
            "CORE_WIRES": subject_ports.core_wires(core, cores),
            "CORE_LOGS": subject_ports.core_logs(cores, waves),
            "PORTS": connections(subject_ports.core_connections(cores) | subject_ports.axi_connections(ports, *axi)),
            **subject_ports.hbm_defines(cores, core.hbm_ports, *axi, depth, check_axi=self.check_axi),
        }
        links = []
        if self.instance:
            defines |= {"LINKS": ""} | link_defines(self.instance, "cores", node="chip_{chip}", waves=waves)
            links = [LINK_DISTURBANCE, LINK_VIEW]
        parts = (*subject_ports.hbm_sources(self.check_axi), *links, text)
        design = harness(__file__, defines["TOP"], defines, *parts, waves=waves)
        blocks, kept = _blocks_and_kept(design.verilog if self.instance else text)
        if self.instance:
            kept += modules_of(design.verilog, _LINKS)
            apart = ("core", cores) if waves or self.instance.chips < MANY else ("linked_chip", self.instance.chips)
            blocks, kept = ((), (*blocks, *kept)) if self.inside and waves else ((apart[0], *blocks), kept)
            counted = f"{design.top}.finished || {design.top}.profile != 0"
            parallel = SideBySide(*apart, seldom=r"(^|__)counters$", used=counted)
            design = replace(design, side_by_side=None if waves else parallel)
        return replace(design, hier_blocks=blocks, kept=kept)

    def load(self, work: CoreWork, directory: Path) -> tuple[list[str], int]:
        self._check(work)
        rounds = len(work.boots) // self.cores
        # A core of an instance starts one cycle later than a lone core.
        delays = [0] if self.instance is None else [1 + delay for delay in work.delays or [0] * self.cores]
        lines = [
            (boot is not None) << (HBM_ADDRESS_BITS + 32) | delay << HBM_ADDRESS_BITS | (boot or 0)
            for boot, delay in zip(work.boots, delays * rounds, strict=True)
        ]
        words = write_lines(directory, {"boots": "".join(f"{line:x}\n" for line in lines)})
        words += plusargs(runs=directory / "runs", events=directory / "events", rounds=rounds)
        words += plusargs(limit=work.limit, patience=work.patience, host=work.host, profile=int(work.profiled))
        words += work.hbm_plusargs(directory, self.core.hbm_bytes, limited=self.instance is not None)
        return words + work.link_plusargs(directory), rounds * (work.limit + 1000)

    def _check(self, work: CoreWork) -> None:
        cores, room = work.memories.shape
        if self.instance:
            work.check_memories(self.cores)
            if len(work.boots) != cores:
                raise ValueError(f"boots must be an address for each of {cores} cores, not {len(work.boots)}")
        elif cores != 1 or room > self.room:
            raise ValueError(f"memories must be [1, at most {self.room:,}], not {list(work.memories.shape)}")
        elif not 1 <= len(work.boots) <= ROUNDS:
            raise ValueError(f"boots must be 1 to {ROUNDS} addresses, not {len(work.boots)}")

    def read_outcome(self, work: CoreWork, directory: Path, state: Mapping[str, float]) -> Outcome:
        found = fields_by_kind(directory / "runs")
        # The sort is stable: a lone core's lines remain in the order of rounds.
        lines = sorted(found["core"], key=lambda fields: int(fields[0]))
        logs = _logs((directory / "events").read_text(), self.cores)
        parts: dict[int | str, Outcome] = {
            number: _part(fields[1:], self.core, log)
            for number, (fields, log) in enumerate(zip(lines, logs, strict=True))
        }
        links = link_activity(found["wire"], directory, work.sampled) if self.instance else None
        started = [part for part, boot in zip(parts.values(), work.boots, strict=False) if boot is not None]
        ending = _ending(any(int(fields[1]) for fields in found["end"]), parts, started, links)
        cycles = max(part.cycles for part in parts.values())
        counters = {"simulated": sum(int(fields[0]) for fields in found["end"])}
        memories = {"hbm": work.memories_after(directory)}
        return Outcome(ending=ending, cycles=cycles, counters=counters, parts=parts, links=links, memories=memories)


def _blocks_and_kept(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the modules that Verilator builds as hierarchical blocks, and the modules that it does not inline."""
    instances = Counter(re.findall(r"^  (\w+) \S+ \(", text, re.MULTILINE))
    blocks = tuple(name for name in modules_of(text, _BLOCKS) if instances[name] > 1)
    return blocks, tuple(name for name in modules_of(text, f"{_BLOCKS}|{_KEPT}") if name not in blocks)


def _ending(gave_up: bool, parts: Mapping[int | str, Outcome], started: Sequence[Outcome], links: Any) -> Ending:
    if gave_up:
        return Ending.LIMIT
    if any(part.errors for part in parts.values()):
        return Ending.ERROR
    if all(part.ending == Ending.FINISHED for part in started):
        return Ending.FINISHED
    return Ending.DEAD if links is not None and links.dead else Ending.STUCK


def _logs(text: str, cores: int) -> list[list[list[str]]]:
    """Return the log of each core for each image that it ran: the fields of its lines except the core's index."""
    logs: list[list[list[str]]] = []
    for kind, core, *fields in map(str.split, text.splitlines()):
        if kind == "s":
            logs += [[] for _ in range(cores)]
        else:
            logs[len(logs) - cores + int(core)].append([kind, *fields])
    return logs


def _read_events(lines: Iterable[Sequence[str]]) -> tuple[list[Event], str]:
    issued, retired, console = [], {}, []
    for kind, *fields in lines:
        if kind == "c":
            console.append(chr(int(fields[0])))
        if kind not in "ipr":
            continue
        queue, address, cycle = int(fields[0]), int(fields[1], 16), int(fields[2])
        if kind in "ip":
            issued.append((queue, address, cycle))
        if kind in "pr":
            # Executions of one address retire in the order of issue.
            retired.setdefault(address, []).append(cycle)
    ends = {address: iter(cycles) for address, cycles in retired.items()}
    events = [Event(queue, address, cycle, next(ends.get(address, iter(())), None)) for queue, address, cycle in issued]
    return events, "".join(console)


def _part(fields: Sequence[str], config: Config, log: Sequence[Sequence[str]]) -> Outcome:
    cycles, over, exit_code, gave_up, cause, queue, address, detail, counters = fields
    errors = (CoreFault(int(queue), int(cause), int(address, 16), int(detail, 16)),) if int(cause) else ()
    failed = Ending.LIMIT if int(gave_up) else Ending.ERROR if errors else Ending.STUCK
    ending = Ending.FINISHED if int(over) else failed
    events, console = _read_events(log)
    said = {"exit_code": int(exit_code, 16) if int(over) else None, "errors": errors, "console": console}
    counted = plain(core_counters(config), int(counters, 16))
    activity = read_activity((fields for kind, *fields in log if kind == "a"), config, int(cycles))
    return Outcome(ending=ending, cycles=int(cycles), **said, counters=counted, events=events, activity=activity)

"""Runs images on the core: HBM in, HBM out, Python waits for one edge (see `tb/harness/core.v`)."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from neuroncore_rtl.hdl.core import axi_id_bits, core_counters
from neuroncore_rtl.hdl.queue.errors import CoreError
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import cause_name, queue_count
from neuroncore_rtl.tb.harness import hbm
from neuroncore_rtl.tb.harness.axi_ports import axi_connections
from neuroncore_rtl.tb.harness.harness import run_harness
from neuroncore_rtl.tb.harness.hbm import Hbm
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.elaboration import engine_verilog
from neuroncore_rtl.tb.sim.layouts import define_lines, layout_defines, plain

__all__ = [
    "HBM_BYTES",
    "CoreFault",
    "Event",
    "Outcome",
    "Run",
    "blocks_and_kept",
    "design",
    "read_events",
    "read_run",
    "run_images",
]

_TEMPLATE = Path(__file__).with_suffix(".v")

HBM_BYTES = 64 << 20
"""HBM that the harness has room for."""

_BLOCKS = re.compile(r"(block|edge|psum|vector_block|activation_block|sbuf_block)_")
"""Modules that Verilator builds once, apart, if there are several instances: a call across its border at every edge of
the clock is what that costs, which a core of one block each runs half as fast again without."""

_KEPT = re.compile(
    r"tile_|vector_lane$|activation_lane$|(tensor|vector|scalar|dma|collective)_engine$|queue_|bank_384x64$"
)
"""Modules whose instances stay apart: of SBUF's banks because a build is then three times as fast, and a run 9 %."""

BOOTS = 256
"""Images that can be run one after the other."""


@dataclass(frozen=True)
class CoreFault:
    """The core's error: queue, cause (a `spec.isa.Rule` or `Cause`), HBM address of the record, detail."""

    queue: int
    cause: int
    address: int
    detail: int

    def __str__(self) -> str:
        return f"queue {self.queue}: record {self.address:#x}: {cause_name(self.cause)}, detail {self.detail:#x}"


@dataclass(frozen=True)
class Event:
    """A record in an engine.

    Arguments:
        queue: which one.
        address: of the record in HBM.
        issued, retired: cycles since the start; None if it did not come to that.
    """

    queue: int
    address: int
    issued: int
    retired: int | None


@dataclass(frozen=True, kw_only=True)
class Run:
    """What became of an image.

    Arguments:
        cycles: from the start until its program ended.
        exit_code: of its program; None if that did not end.
        gave_up: whether it was still busy at the limit.
        error: the first one, or None.
        counters: by the names of `hdl.core.core_counters`, nested.
        events: the records, in the order in which they were issued.
        console: what the program printed.
    """

    cycles: int
    exit_code: int | None
    gave_up: bool
    error: CoreFault | None
    counters: Mapping
    events: Sequence[Event]
    console: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of the images.

    Arguments:
        runs: one for each image that was run.
        hbm: uint8, as much as was given.
        seconds: wall time from the first clock edge to the end.
    """

    runs: Sequence[Run]
    hbm: np.ndarray
    seconds: float


@lru_cache(maxsize=4)
def design(config: Config, *, check_axi: bool = True, watches_gates: bool = False) -> simulation.Design:
    """Return the core of `config` in its harness.

    Arguments:
        config: the machine's parameters.
        check_axi: whether every AXI port is watched for what the protocol forbids.
        watches_gates: whether every clock gate is, for a clock that stands still too early.
    """
    text = engine_verilog(config, "core", watches_gates=watches_gates)
    defines = {
        **({"CHECK_AXI": ""} if check_axi else {}),
        "PORTS": config.hbm_ports,
        "BYTES": config.hbm_bytes,
        "ID_BITS": axi_id_bits(config),
        "DEPTH": HBM_BYTES // config.hbm_bytes,
        "QUEUES": queue_count(config),
        "COUNTERS": core_counters(config).size,
        **layout_defines("ERROR", CoreError),
        "CORE_AXI": axi_connections(
            [f"axi__{port}" for port in range(config.hbm_ports)], config.hbm_bytes, axi_id_bits(config)
        ),
    }
    head = define_lines(defines)
    parts = [_TEMPLATE.read_text(), hbm.VERILOG.read_text()]
    if check_axi:
        parts.append(_TEMPLATE.with_name("axi_checker.v").read_text())
    blocks, kept = blocks_and_kept(text)
    return simulation.Design(
        "machine",
        "\n".join([head, *parts, text]),
        hier_blocks=blocks,
        kept=kept,
        public=("done",),
        clock="clk",
    )


def blocks_and_kept(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return which modules of a core Verilator builds apart, and of which it keeps the instances apart."""
    modules = re.findall(r"^module (\w+)", text, re.MULTILINE)
    instances = Counter(re.findall(r"^  (\w+) \S+ \(", text, re.MULTILINE))
    apart = [name for name in modules if _BLOCKS.match(name)]
    blocks = tuple(name for name in apart if instances[name] > 1)
    return blocks, tuple(name for name in modules if name not in blocks and (name in apart or _KEPT.match(name)))


def run_images(
    built: simulation.Build,
    config: Config,
    memory: np.ndarray,
    boots: Sequence[int] = (0,),
    *,
    behaviour: Hbm | None = None,
    limit: int = 1_000_000,
    host: int = 0,
    waves: Path | None = None,
    waves_levels: int = 0,
) -> Outcome:
    """Boot images one after the other on a build of `design(config)`; the core is reset between them.

    Arguments:
        built: the build.
        config: the machine's parameters.
        memory: uint8 [bytes], what HBM holds from address 0 on, with the images.
        boots: their addresses.
        behaviour: of HBM.
        limit: cycles after which an image is given up, and those after it are not run.
        host: cycle after each start in which the host interrupts the controller; 0 for never.
        waves: where to move the recorded waveform.
        waves_levels: see `tb.sim.simulation.run`.

    Raises:
        ValueError: if memory is larger than the harness has room for, or there are too many images.
        SimulationFailed: if the simulation breaks off, as it does where the AXI protocol is violated.
    """
    if len(memory) > HBM_BYTES:
        raise ValueError(f"memory must have at most {HBM_BYTES:,} bytes, not {len(memory):,}")
    if not 1 <= len(boots) <= BOOTS:
        raise ValueError(f"boots must be 1 to {BOOTS} addresses, not {len(boots)}")
    with simulation.run_directory("core") as directory:
        paths = {name: directory.resolve() / f"{name}.txt" for name in ("boots", "runs", "events")}
        paths["boots"].write_text("".join(f"{boot:x}\n" for boot in boots))
        plusargs = [f"+limit={limit}", f"+boots_count={len(boots)}", f"+host={host}"]
        plusargs += [f"+{name}={paths[name]}" for name in ("boots", "runs", "events")]
        plusargs += (behaviour or Hbm()).plusargs() + hbm.write_memory(directory, memory, config.hbm_bytes)
        longest = len(boots) * (limit + 1000)
        state = run_harness(built, directory, plusargs=plusargs, limit=longest, waves=waves, waves_levels=waves_levels)
        events = _events(paths["events"].read_text())
        lines = paths["runs"].read_text().splitlines()
        runs = [read_run(line.split(), config, *events[number]) for number, line in enumerate(lines)]
        content = hbm.read_memory(directory)[: len(memory)]
        return Outcome(runs=runs, hbm=content, seconds=state["seconds"])


def _events(text: str) -> list[tuple[list[Event], str]]:
    """Return the records and the printed text of each image."""
    return [
        read_events(map(str.split, part.splitlines())) for part in re.split(r"^s \d+\n", text, flags=re.MULTILINE)[1:]
    ]


def read_events(lines: Iterable[Sequence[str]]) -> tuple[list[Event], str]:
    """Return the records and the printed text of a run, from the fields of the lines that tell of it."""
    issued, retired, console = [], {}, []
    for kind, *fields in lines:
        if kind == "c":
            console.append(chr(int(fields[0])))
        elif kind == "i":
            issued.append((int(fields[0]), int(fields[1], 16), int(fields[2])))
        else:
            # A record may be executed more than once: the times of one address come in the order of its issues.
            retired.setdefault(int(fields[1], 16), []).append(int(fields[2]))
    found = []
    for queue, address, cycle in issued:
        ends = retired.get(address)
        found.append(Event(queue, address, cycle, ends.pop(0) if ends else None))
    return found, "".join(console)


def read_run(fields: Sequence[str], config: Config, events: Sequence[Event], console: str) -> Run:
    """Return what became of an image, from the fields of the line that says so."""
    cycles, over, exit_code, gave_up, cause, queue, address, detail, counters = fields
    error = CoreFault(int(queue), int(cause), int(address, 16), int(detail, 16)) if int(cause) else None
    return Run(
        cycles=int(cycles),
        exit_code=int(exit_code, 16) if int(over) else None,
        gave_up=bool(int(gave_up)),
        error=error,
        counters=plain(core_counters(config), int(counters, 16)),
        events=events,
        console=console,
    )

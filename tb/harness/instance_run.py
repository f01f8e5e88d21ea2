"""Runs an image on every core of an instance: HBM in, HBM out, Python waits for one edge (see
`tb/harness/instance.v`)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from neuroncore_rtl.hdl.core_ports import axi_id_bits, core_counters
from neuroncore_rtl.hdl.instance import LinkedCores
from neuroncore_rtl.hdl.link.counters import LinkCounters
from neuroncore_rtl.hdl.queue.errors import CoreError
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa import queue_count
from neuroncore_rtl.tb.harness import disturbance, hbm
from neuroncore_rtl.tb.harness.axi_ports import axi_connections
from neuroncore_rtl.tb.harness.collective_run import instance_label
from neuroncore_rtl.tb.harness.core import Run, blocks_and_kept, read_events, read_run
from neuroncore_rtl.tb.harness.harness import run_harness
from neuroncore_rtl.tb.harness.hbm import Hbm
from neuroncore_rtl.tb.harness.instance_ports import core_connections, core_logs, core_wires
from neuroncore_rtl.tb.harness.link_view import LINK_VIEW, Sample, link_defines, link_views, read_samples, sampling
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.elaboration import elaborated
from neuroncore_rtl.tb.sim.layouts import define_lines, layout_defines, plain

__all__ = ["ROOM_BYTES", "InstanceOutcome", "design", "instance_verilog", "run_instance"]

_TEMPLATE = Path(__file__).with_name("instance.v")

ROOM_BYTES = 64 << 20
"""HBM of all cores that the harness has room for, unless it is built for more."""

CORES = "linked_cores"
"""Verilog module of the cores and what lies between them."""

PATIENCE = 8192
"""Cycles of rest after which nothing will move any more."""

_LINKS = re.compile(r"router_|link_end_|link_wire_|axi_checker$")
"""Modules of the links whose instances stay apart; they are not built apart: Verilator takes every output of such a
module to depend on every input, and a ring of them would look like a circle of logic."""


@dataclass(frozen=True, kw_only=True)
class InstanceOutcome:
    """What became of the images.

    Arguments:
        runs: of each core; their cycles count from when all of them could start.
        cycles: from then until the last program ended, or until the run was given up.
        gave_up: whether it was.
        dead: wires whose link is dead, ascending.
        disturbed: by wire, the frames that were disturbed.
        links: by wire, the counters of the end that sends on it.
        memories: uint8 [cores, bytes].
        seconds: wall time from the first clock edge to the end.
        simulated: cycles in that time.
        samples: what the links had done in the course of the run; empty if it was not sampled.
    """

    runs: Sequence[Run]
    cycles: int
    gave_up: bool
    dead: Sequence[int]
    disturbed: Sequence[int]
    links: Sequence[Mapping[str, int]]
    memories: np.ndarray
    seconds: float
    simulated: int
    samples: Sequence[Sample] = ()


@lru_cache(maxsize=4)
def design(
    instance: Instance,
    *,
    room: int = ROOM_BYTES,
    check_axi: bool = False,
    waves: bool = False,
    inside: bool = False,
    watches_gates: bool = False,
) -> simulation.Design:
    """Return all cores of an instance and its links in their harness.

    Arguments:
        instance: the instance.
        room: bytes of HBM of all cores together.
        check_axi: whether every AXI port is watched for what the protocol forbids.
        waves: whether there are signals that only a waveform needs. inside: whether it shows what is in a core, which
            Verilator then compiles for each of them.
        watches_gates: see `tb.harness.core.design`.
    """
    core = instance.core
    text = instance_verilog(instance, watches_gates=watches_gates)
    ports = [f"cores__{number}__axi__{port}" for number in range(instance.cores) for port in range(core.hbm_ports)]
    defines = {
        **({"CHECK_AXI": ""} if check_axi else {}),
        **({"WAVES": ""} if waves else {}),
        "CORES": instance.cores,
        "CORE_PORTS": core.hbm_ports,
        "WIRES": instance.chips * instance.directions,
        "BYTES": core.hbm_bytes,
        "ID_BITS": axi_id_bits(core),
        "DEPTH": room // core.hbm_bytes,
        "QUEUES": queue_count(core),
        "COUNTERS": core_counters(core).size,
        **layout_defines("ERROR", CoreError),
        "CORE_WIRES": core_wires(instance),
        "CORE_CONNECTIONS": core_connections(instance) + axi_connections(ports, core.hbm_bytes, axi_id_bits(core)),
        "CORE_LOGS": core_logs(instance, waves),
        **link_defines(instance),
        "LINK_VIEWS": link_views(
            instance,
            "cores",
            "link_counters[{0} * `LINK_COUNTERS +: `LINK_COUNTERS]",
            node="chip_{chip}.node",
            disturbed="flip[{0}] | drop[{0}] | repeated[{0}] | cut[{0}]",
            waves=waves,
        ),
    }
    head = define_lines(defines)
    parts = [path.read_text() for path in (_TEMPLATE, hbm.VERILOG, disturbance.VERILOG, LINK_VIEW)]
    if check_axi:
        parts.append(_TEMPLATE.with_name("axi_checker.v").read_text())
    verilog = "\n".join([head, *parts, text])
    blocks, kept = blocks_and_kept(verilog)
    apart, kept = ((), (*blocks, *kept)) if inside else (("core", *blocks), kept)
    links = tuple(name for name in re.findall(r"^module (\w+)", verilog, re.MULTILINE) if _LINKS.match(name))
    return simulation.Design(
        "machines", verilog, hier_blocks=apart, kept=(*kept, *links), public=("done",), clock="clk"
    )


def instance_verilog(instance: Instance, *, cached: bool = True, watches_gates: bool = False) -> str:
    """Return the Verilog of all cores of an instance and of what lies between them.

    Arguments:
        instance: the instance.
        cached: whether a text from an earlier call will do; a benchmark of elaboration wants a new one.
        watches_gates: see :func:`hdl.hierarchy.to_verilog`.
    """
    label = f"{instance_label(instance)}-{instance.core.rows}x{instance.core.columns}"
    cores = partial(LinkedCores, instance)
    return elaborated(CORES, label, cores, asdict(instance), cached=cached, watches_gates=watches_gates)


def run_instance(
    built: simulation.Build,
    instance: Instance,
    memories: np.ndarray,
    boots: Sequence[int | None],
    *,
    delays: Sequence[int] | None = None,
    behaviour: Hbm | None = None,
    errors: float = 0.0,
    cut: disturbance.Cut | None = None,
    seed: int = 1,
    limit: int = 20_000_000,
    patience: int = PATIENCE,
    sampled: bool = False,
    waves: Path | None = None,
    waves_levels: int = 0,
) -> InstanceOutcome:
    """Boot an image on every core of a build of `design(instance)`.

    Arguments:
        built: the build.
        instance: the instance.
        memories: uint8 [cores, bytes], what each core's HBM holds, with its image; bytes are a multiple of 4096. They
            stay as they are.
        boots: of each core, its image's address; None: it is not started.
        delays: of each core, the cycles that pass before it is started; none if not given.
        behaviour: of HBM; its `size` stays None, and the addresses of its errors count core after core.
        errors: share of the frames that are disturbed, of every wire.
        cut: a wire that dies.
        seed: of the disturbances.
        limit: cycles after which the run is given up.
        patience: cycles of rest after which it is left if some core's program cannot end.
        sampled: whether the links are sampled in the course of the run.
        waves: where to move the recorded waveform.
        waves_levels: see `tb.sim.simulation.run`.

    Raises:
        ValueError: if the memories or the boot addresses are not as many as the cores.
        SimulationFailed: if the simulation breaks off, as it does where the AXI protocol is violated.
    """
    cores, room = memories.shape
    if cores != instance.cores or room % 4096:
        raise ValueError(f"memories must be [{instance.cores}, a multiple of 4096], not {list(memories.shape)}")
    if len(boots) != cores:
        raise ValueError(f"boots must be an address for each of {cores} cores, not {len(boots)}")
    delays = [0] * cores if delays is None else delays
    with simulation.run_directory("instance") as directory:
        paths = {name: directory.resolve() / f"{name}.txt" for name in ("boots", "runs", "events", "samples")}
        lines = [
            (boot is not None) << 72 | delay << 40 | (boot or 0) for boot, delay in zip(boots, delays, strict=True)
        ]
        paths["boots"].write_text("".join(f"{line:x}\n" for line in lines))
        plusargs = [f"+{name}={paths[name]}" for name in ("boots", "runs", "events")]
        plusargs += [f"+room={room}", f"+limit={limit}", f"+patience={patience}"]
        plusargs += disturbance.disturbing(errors, seed, cut)
        plusargs += sampling(paths["samples"]) if sampled else []
        plusargs += (behaviour or Hbm()).plusargs() + [f"+hbm_size={cores * room}"]
        plusargs += hbm.write_memory(directory, memories.reshape(-1), instance.core.hbm_bytes)
        state = run_harness(
            built, directory, plusargs=plusargs, limit=limit + 1000, waves=waves, waves_levels=waves_levels
        )
        return _outcome(
            instance,
            paths["runs"].read_text(),
            paths["events"].read_text(),
            memories=hbm.read_memory(directory)[: cores * room].reshape(cores, room),
            seconds=state["seconds"],
            samples=read_samples(paths["samples"].read_text()) if sampled else [],
        )


def _outcome(instance: Instance, text: str, events: str, **others: object) -> InstanceOutcome:
    found: dict[str, dict[int, list[str]]] = {"core": {}, "wire": {}}
    for line in text.splitlines():
        kind, *fields = line.split()
        if kind == "end":
            simulated, gave_up = map(int, fields)
        else:
            found[kind][int(fields[0])] = fields[1:]
    lines: list[list[list[str]]] = [[] for _ in range(instance.cores)]
    for kind, core, *fields in map(str.split, events.splitlines()):
        lines[int(core)].append([kind, *fields])
    runs = [read_run(found["core"][core], instance.core, *read_events(own)) for core, own in enumerate(lines)]
    wires = [found["wire"][wire] for wire in sorted(found["wire"])]
    return InstanceOutcome(
        runs=runs,
        cycles=max(run.cycles for run in runs),
        gave_up=bool(gave_up),
        dead=[wire for wire, fields in enumerate(wires) if fields[0] == "1"],
        disturbed=[int(fields[1]) for fields in wires],
        links=[plain(LinkCounters, int(fields[2], 16)) for fields in wires],
        simulated=simulated,
        **others,
    )

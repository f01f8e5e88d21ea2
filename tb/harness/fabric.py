"""Runs traffic on the fabric of an instance, without cores; Python waits for one edge (see `tb/harness/fabric.v`)."""

import enum
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from neuroncore_rtl.hdl.link.counters import LinkCounters
from neuroncore_rtl.hdl.link.fabric import Fabric
from neuroncore_rtl.hdl.link.flit import flit_layout
from neuroncore_rtl.hdl.link.wire import DISTURBANCE
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.link import CHANNELS
from neuroncore_rtl.tb.harness.disturbance import Cut, disturbing
from neuroncore_rtl.tb.harness.harness import run_harness
from neuroncore_rtl.tb.harness.link_view import LINK_VIEW, Sample, link_defines, link_views, read_samples, sampling
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.elaboration import elaborated
from neuroncore_rtl.tb.sim.layouts import define_lines, enum_defines, layout_defines, plain

__all__ = ["Ending", "Outcome", "Traffic", "Way", "Wire", "Wrong", "design", "run_traffic"]

_TEMPLATE = Path(__file__).with_suffix(".v")

_BLOCKS = re.compile(r"link_node_")
"""Modules that Verilator builds once, apart. None of their inputs may depend on an output in the same cycle."""

SCALE = 1 << 16
"""What the shares of load and stalls are counted in."""


class Ending(enum.IntEnum):
    """How a run ended."""

    COMPLETE = 0
    """As many flits have come as were made."""
    STUCK = 1
    """Nothing moves any more."""
    LIMIT = 2
    """The limit of cycles was reached."""


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What the sources and the sinks do.

    Arguments:
        flits: that each source makes.
        pattern: number of how it chooses their destinations; see `tb/harness/fabric.v`.
        partners: of each port, the core that it sends to, for the pattern that needs it.
        load: share of the cycles, from 0 to 1, in which an idle source makes a flit.
        stall: share of the cycles in which a sink takes nothing.
        errors: share of the frames of every wire that is disturbed.
        cut: a wire that dies.
        seed: of all that is random.
    """

    flits: int
    pattern: int = 0
    partners: Sequence[int] = ()
    load: float = 1.0
    stall: float = 0.0
    errors: float = 0.0
    cut: Cut | None = None
    seed: int = 1


class Way(NamedTuple):
    """What flits have in common that stay in order: cores and channel."""

    source: int
    destination: int
    channel: int


class Wrong(NamedTuple):
    """A flit that was wrong: the port that took it, what it says of itself, the number it should have, and when."""

    port: int
    source: int
    channel: int
    number: int
    expected: int
    kind: int
    cycle: int

    def __str__(self) -> str:
        names = ("wrong data", "the wrong port", "out of order")
        kinds = ", ".join(name for bit, name in enumerate(names) if self.kind >> bit & 1)
        core, channel = divmod(self.port, CHANNELS)
        return (
            f"{kinds}: at core {core}, channel {channel}: flit {self.number} of core {self.source} on channel "
            f"{self.channel}, expected {self.expected}, in cycle {self.cycle}"
        )


@dataclass(frozen=True)
class Wire:
    """What became of a wire and the end that sends on it.

    Arguments:
        disturbed: frames that were.
        dead: the cycle in which that end gave its link up; None if it did not.
        counters: of that end, by the names of `hdl.link.counters`.
    """

    disturbed: int
    dead: int | None
    counters: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of the traffic.

    Arguments:
        ending: how it ended.
        cycles: until the last flit that moved.
        sent, received: flits by their way.
        wrong: how many flits were wrong in any respect.
        examples: the first of them.
        latency: mean cycles from the making of a flit to its taking.
        longest: the most that it took.
        wires: by number.
        seconds: wall time from the first clock edge to the end.
        samples: what the links had done in the course of the run; empty if it was not sampled.
    """

    ending: Ending
    cycles: int
    sent: Counter[Way]
    received: Counter[Way]
    wrong: int
    examples: Sequence[Wrong]
    latency: float
    longest: int
    wires: Sequence[Wire]
    seconds: float
    samples: Sequence[Sample] = ()


@lru_cache(maxsize=4)
def design(instance: Instance, *, waves: bool = False) -> simulation.Design:
    """Return the fabric of an instance in its harness.

    Arguments:
        instance: the instance.
        waves: whether there are signals that only a waveform needs.
    """
    parameters = {name: value for name, value in asdict(instance).items() if name != "core"}
    shape = f"{instance.topology}-{instance.chips}x{instance.link_bytes}"
    text = elaborated("fabric", shape, lambda: Fabric(instance), parameters)
    defines = {
        "CORES": instance.cores,
        "WIRES": instance.chips * instance.directions,
        **layout_defines("FLIT", flit_layout(instance.link_bytes)),
        **enum_defines("ENDING", Ending),
        "WORDS": instance.link_bytes // 8,
        "CONNECTIONS": _connections(instance),
        **({"WAVES": ""} if waves else {}),
        **link_defines(instance),
        "LINK_VIEWS": link_views(
            instance,
            "fabric",
            "link[{0}].counters",
            disturbed="link[{0}].flip | link[{0}].drop | link[{0}].again | link[{0}].cut",
            places=False,
            waves=waves,
        ),
    }
    head = define_lines(defines)
    return simulation.Design(
        "traffic",
        "\n".join([head, _TEMPLATE.read_text(), LINK_VIEW.read_text(), text]),
        hier_blocks=tuple(filter(_BLOCKS.match, re.findall(r"^module (\w+)", text, re.MULTILINE))),
        kept=("endpoint",),
        public=("done",),
        clock="clk",
    )


def _connections(instance: Instance) -> str:
    """Return the connections of the fabric's ports to the endpoints and to what disturbs the wires."""
    fields = {"flip": "flip", "flip_bit": "flip_bit", "drop": "drop", "repeat": "again", "cut": "cut"}
    parts = []
    for port in range(CHANNELS * instance.cores):
        for way, ours in (("i", "tx"), ("o", "rx")):
            parts.append(f".{way}__{port}__payload(port[{port}].{ours}),")
            parts += [f".{way}__{port}__{name}(port[{port}].{ours}_{name})," for name in ("valid", "ready")]
    for wire in range(instance.chips * instance.directions):
        bits = ", ".join(f"link[{wire}].{fields[name]}" for name, _ in reversed(list(DISTURBANCE)))
        parts.append(f".disturbance__{wire}({{{bits}}}), .counters__{wire}(link[{wire}].counters),")
    return " ".join(parts)


def run_traffic(
    built: simulation.Build,
    instance: Instance,
    traffic: Traffic,
    *,
    limit: int,
    patience: int,
    extra: Sequence[str] = (),
    sampled: bool = False,
    waves: Path | None = None,
    waves_levels: int = 0,
) -> Outcome:
    """Run traffic on a build of `design(instance)`.

    Arguments:
        built: the build.
        instance: the instance.
        traffic: what the sources and sinks do.
        limit: cycles after which the run is given up.
        patience: cycles without a flit that moves, after which it is; more than a link needs to be found dead.
        extra: further arguments of the simulation.
        sampled: whether the links are sampled in the course of the run.
        waves: where to move the recorded waveform.
        waves_levels: see `tb.sim.simulation.run`.
    """
    with simulation.run_directory("fabric") as directory:
        names = ("partners.txt", "result.txt", "samples.txt")
        partners, result, samples = (directory.resolve() / name for name in names)
        ports = CHANNELS * instance.cores
        partners.write_text("".join(f"{partner:x}\n" for partner in traffic.partners or [0] * ports))
        plusargs = {
            "flits": traffic.flits,
            "pattern": traffic.pattern,
            "partners": partners,
            "load": round(traffic.load * SCALE),
            "stall": round(traffic.stall * SCALE),
            "limit": limit,
            "patience": patience,
            "result": result,
        }
        words = [f"+{name}={value}" for name, value in plusargs.items()]
        words += disturbing(traffic.errors, traffic.seed, traffic.cut)
        words += sampling(samples) if sampled else []
        state = run_harness(
            built, directory, plusargs=[*words, *extra], limit=limit + 1000, waves=waves, waves_levels=waves_levels
        )
        found = read_samples(samples.read_text()) if sampled else []
        return _outcome(result.read_text(), state["seconds"], found)


def _outcome(text: str, seconds: float, samples: Sequence[Sample]) -> Outcome:
    """Return what a result file says."""
    lines: dict[str, list[list[str]]] = {kind: [] for kind in "xsrpwt"}
    for kind, *fields in map(str.split, text.splitlines()):
        lines[kind].append(fields)
    sent, received = Counter(), Counter()
    for port, core, flits in (map(int, fields) for fields in lines["s"]):
        sent[Way(port // CHANNELS, core, port % CHANNELS)] += flits
    for port, core, flits in (map(int, fields) for fields in lines["r"]):
        received[Way(core, port // CHANNELS, port % CHANNELS)] += flits
    at_ports = [list(map(int, fields)) for fields in lines["p"]]
    wires = {}
    for wire, disturbed, dead, counters in lines["w"]:
        named = plain(LinkCounters, int(counters, 16))
        wires[int(wire)] = Wire(int(disturbed), None if int(dead) < 0 else int(dead), named)
    ((cycles, ending),) = (map(int, fields) for fields in lines["t"])
    taken = received.total()
    return Outcome(
        ending=Ending(ending),
        cycles=cycles,
        sent=sent,
        received=received,
        wrong=sum(wrong for *_, wrong in at_ports),
        examples=sorted((Wrong(*map(int, fields)) for fields in lines["x"]), key=lambda wrong: wrong.cycle),
        latency=sum(latencies for _, latencies, *_ in at_ports) / taken if taken else 0.0,
        longest=max(longest for _, _, longest, _ in at_ports),
        wires=[wires[number] for number in sorted(wires)],
        seconds=seconds,
        samples=samples,
    )

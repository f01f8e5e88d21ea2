"""Links in a harness: disturbances, samples of counters, and views for waveforms.

The Verilog is in `disturbance.v`, `link_view.v` and `engine_view.v`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from neuroncore_rtl.hdl.collective.counters import CollectiveCounters
from neuroncore_rtl.hdl.link.counters import LinkCounters
from neuroncore_rtl.hdl.link.end import sequence_window
from neuroncore_rtl.hdl.link.flit import frame_layout
from neuroncore_rtl.run.harness.collective_faults import link_name
from neuroncore_rtl.run.harness.verilog_text import bounds, connections, plusargs
from neuroncore_rtl.run.sim.layouts import plain
from neuroncore_rtl.spec.instance import Instance, Topology
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_FIELDS

__all__ = [
    "ENGINE_VIEW", "FIRST_WINDOW", "LINK_DISTURBANCE", "LINK_VIEW", "SAMPLES", "Cut", "LinkSample", "LinkWork",
    "engine_defines", "engine_views", "instance_label", "link_defines", "link_views", "read_samples",
]  # fmt: skip

LINK_DISTURBANCE = Path(__file__).with_name("disturbance.v")
LINK_VIEW = Path(__file__).with_suffix(".v")
ENGINE_VIEW = Path(__file__).with_name("engine_view.v")

SAMPLES = 200
"""Most samples of a run."""

FIRST_WINDOW = 16
"""Cycles between samples of a short run."""


def instance_label(instance: Instance) -> str:
    """Return the parameters of an instance's links as part of file names."""
    shape = f"{instance.width}x{instance.chips // instance.width}" if instance.topology == Topology.TORUS else "ring"
    return f"{instance.chips}-{shape}-{instance.link_bytes}x{instance.link_latency}"


@dataclass(frozen=True)
class LinkSample:
    """Counters, and number of used credits, of the sender of each wire in a cycle."""

    cycle: int
    credits_used: Sequence[int]
    counters: Sequence[Mapping[str, int]]


class Cut(NamedTuple):
    """A wire that transmits nothing from a cycle on."""

    wire: int
    cycle: int


@dataclass(frozen=True, kw_only=True)
class LinkWork:
    """Base of work of devices with links.

    Arguments:
        errors: share of the frames that are disturbed, from 0 to 1.
        cut: a wire that transmits nothing from a cycle on.
        seed: seed of all random behaviour.
        sampled: whether the run writes samples of the links to a file.
    """

    errors: float = 0.0
    cut: Cut | None = None
    seed: int = 1
    sampled: bool = False

    def link_plusargs(self, directory: Path) -> list[str]:
        words = plusargs(errors=round(self.errors * 2**32), seed=self.seed)
        words += [] if self.cut is None else plusargs(cut=self.cut.wire, cut_cycle=self.cut.cycle)
        return words + (plusargs(window=FIRST_WINDOW, samples=directory / "samples") if self.sampled else [])


def read_samples(text: str) -> list[LinkSample]:
    """Return the samples of a file, thinned to at most `SAMPLES` at equal distances, and the last one."""
    lines: dict[int, dict[int, list[str]]] = {}
    for line in text.splitlines():
        cycle, wire, *fields = line.split()
        lines.setdefault(int(cycle), {})[int(wire)] = fields
    cycles = sorted(lines)
    distance = FIRST_WINDOW
    while cycles and cycles[-1] // distance >= SAMPLES:
        distance *= 2
    found = []
    for cycle in cycles:
        if cycle % distance == 0 or cycle == cycles[-1]:
            wires = [lines[cycle][wire] for wire in sorted(lines[cycle])]
            used = [int(first) + int(second) for first, second, _ in wires]
            found.append(LinkSample(cycle, used, [plain(LinkCounters, int(counters, 16)) for *_, counters in wires]))
    return found


def link_defines(instance: Instance, fabric: str, **views: Any) -> dict[str, Any]:
    """Return the macros of `link_view.v` and `disturbance.v`; arguments: see `link_views`."""
    frame = frame_layout(instance.link_bytes)
    body = frame["body"]
    header = body.shape["flit"].shape["header"]
    at = body.offset + body.shape["flit"].offset + header.offset
    fields = [(name, body.offset + body.shape[name].offset, body.shape[name].width) for name in _FRAME]
    fields += [(name, at + field.offset, field.width) for name, field in header.shape]
    fields = [(_RENAMED.get(name, name), low, width) for name, low, width in fields]
    counters = [(name, field.offset, field.width) for name, field in LinkCounters.as_shape()]
    return {
        "WIRES": instance.chips * instance.directions,
        "FRAME": frame.size,
        "FRAME_FIELDS": _wires("frame", fields),
        "LINK_COUNTERS": LinkCounters.as_shape().size,
        "LINK_COUNTER_FIELDS": _wires("counters", counters),
        "WINDOW": sequence_window(instance.link_latency),
        "LINK_VIEWS": link_views(instance, fabric, **views),
    }


_FRAME = ("valid", "vc", "sequence", "expected", "retry")
"""Fields of a frame in a waveform, besides those of its flit's header."""

_RENAMED = {"sequence": "number"}
"""Replacements of Verilog keywords."""


def link_views(
    instance: Instance,
    fabric: str,
    counters: str = "link_counters[{0} * `LINK_COUNTERS +: `LINK_COUNTERS]",
    *,
    node: str = "node_{chip}",
    disturbed: str = "flip[{0}] | drop[{0}] | repeated[{0}] | cut[{0}]",
    credits: bool = True,
    waves: bool = False,
) -> str:
    """Return an instance of the view of each wire, named as its link.

    Arguments:
        instance: the instance.
        fabric: path of the fabric in the harness.
        counters: expression of a sender's counters, with {} for the wire's number.
        node: path of a chip, or of its node, in the fabric.
        disturbed: expression, set when a frame is disturbed, with {} for the wire's number.
        credits: whether the senders' credit counters are visible.
        waves: whether a waveform is recorded.
    """
    parts = []
    for wire in range(instance.chips * instance.directions):
        chip, direction = divmod(wire, instance.directions)
        at = f"{fabric}.{node.format(chip=chip)}"
        ports = {name: name for name in ("clk", "sampling", "cycle", "samples")} | {"wire_number": f"32'd{wire}"}
        for vc in (0, 1):
            ports[f"credits_used{vc}"] = f"credits_used[{16 * wire + 8 * vc} +: 8]" if credits else "8'd0"
        if waves:
            ports["frame"] = f"{at}__tx__{direction}"
            ports |= {"disturbed": disturbed.format(wire), "dead": f"dead[{wire}]"}
        ports["counters"] = counters.format(wire)
        name = link_name(instance, wire).partition(" ->")[0].replace("+", "plus ").replace("-", "minus ")
        parts.append(f"link_view {name.replace(' ', '_')} ({connections(ports)});")
    return " ".join(parts)


def engine_defines() -> dict[str, object]:
    """Return the macros of `engine_view.v`."""
    lows = accumulate((width for _, width in COLLECTIVE_FIELDS), initial=0)
    fields = [(name, low, width) for (name, width), low in zip(COLLECTIVE_FIELDS, lows, strict=False)]
    shape = CollectiveCounters.as_shape()
    counters = [
        (f"{name.removeprefix('wait_')}{channel}", shape[f"channel{channel}"].offset + field.offset, field.width)
        for channel in (0, 1)
        for name, field in shape[f"channel{channel}"].shape.as_shape()
    ]
    return {
        "INSTRUCTION_FIELDS": _wires("instruction", [field for field in fields if field[0] in _SHOWN]),
        "CORE_COUNTER_FIELDS": _wires("counters", counters),
    }


_SHOWN = ("kind", "op", "dtype", "ranks", "base", "stride", "rank", "root", "count")
"""Fields of an instruction in a waveform."""


def engine_views(instance: Instance) -> str:
    """Return an instance of the view of each collective engine, named as its core."""
    ports = {
        "clk": "clk",
        "active": "next[{0}] != starts[{0}] + retirements[{0}]",
        "number": "retirements[{0}]",
        "next": "lists[starts[{0}] + retirements[{0}]][`INSTRUCTION-1:0]",
        "counters": "core_counters[{0} * `CORE_COUNTERS +: `CORE_COUNTERS]",
    }
    view = f"engine_view engine_core_{{0}} ({connections(ports)});"
    return " ".join(view.format(core) for core in range(instance.cores))


def _wires(source: str, fields: Sequence[tuple[str, int, int]]) -> str:
    """Return wires for the fields (name, lowest bit, width) of the word `source`."""
    return " ".join(f"wire {bounds(width)}{name} = {source}[{low} +: {width}];" for name, low, width in fields)

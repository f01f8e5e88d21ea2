"""Device of the fabric of an instance, and its traffic (`run/harness/links/fabric.v`)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from neuroncore_rtl.hdl.link.fabric import Fabric
from neuroncore_rtl.hdl.link.flit import flit_layout
from neuroncore_rtl.hdl.link.wire import DISTURBANCE
from neuroncore_rtl.run.harness.link_view import LINK_VIEW, LinkWork, link_defines
from neuroncore_rtl.run.harness.outcome import Ending, Outcome, fields_by_kind, link_activity
from neuroncore_rtl.run.harness.verilog_text import arguments, connections, harness, plusargs
from neuroncore_rtl.run.sim import simulation
from neuroncore_rtl.run.sim.elaboration import elaborated
from neuroncore_rtl.run.sim.images import write_lines
from neuroncore_rtl.run.sim.layouts import enum_defines, layout_defines
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.link import CHANNELS

__all__ = ["FabricDevice", "Traffic", "Way", "Wrong"]

_BLOCKS = r"link_node_"
"""Hierarchical blocks of Verilator: no input may depend combinationally on an output."""

_NUMBERS = ("flits", "pattern", "load", "limit", "patience", "stall", "errors", "seed")

SCALE = 1 << 16
"""Denominator of load and stall in plusargs."""


@dataclass(frozen=True, kw_only=True)
class Traffic(LinkWork):
    """Traffic of the sources and sinks.

    Arguments (besides those of `LinkWork`):
        limit: cycles after which the run is stopped.
        patience: idle cycles after which it is stopped; longer than the detection of a dead link.
        pattern: number of the pattern of destinations in `run/harness/links/fabric.v`.
        partners: destination core of each port, if the pattern needs it.
        load: probability per cycle that an idle source offers a flit.
        stall: probability per cycle that a sink is not ready.
    """

    flits: int
    limit: int
    patience: int
    pattern: int = 0
    partners: Sequence[int] = ()
    load: float = 1.0
    stall: float = 0.0


class Way(NamedTuple):
    """Path of a stream of flits, which must be received in the order in which they were sent."""

    source: int
    destination: int
    channel: int


class Wrong(NamedTuple):
    """A wrong flit that a port received; `expected` is the right flit's number, and `kind` has a bit for each fault."""

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


@dataclass(frozen=True, kw_only=True)
class FabricDevice:
    """The fabric of an instance, with a source and a sink at each of its ports.

    Counters of its outcome: `sent` and `received` flits by `Way`, number of `wrong` flits, mean `latency` and the
    `longest` in cycles; errors are wrong flits. It is finished if all sent flits were received; cycles count to the
    last transfer.
    """

    instance: Instance

    label = "fabric"
    ports = ()

    def design(self, *, waves: bool = False, vectors: bool = False) -> simulation.Design:
        instance = self.instance
        parameters = {name: value for name, value in asdict(instance).items() if name != "core"}
        shape = f"{instance.topology}-{instance.chips}x{instance.link_bytes}"
        text = elaborated("fabric", shape, lambda: Fabric(instance), parameters)
        disturbed = " | ".join(f"link[{{0}}].{name}" for name in ("flip", "drop", "again", "cut"))
        views = {"counters": "link[{0}].counters", "disturbed": disturbed}
        defines = {
            "ARGUMENTS": arguments(_NUMBERS, ("partners",), ("result",)),
            "CORES": instance.cores,
            **layout_defines("FLIT", flit_layout(instance.link_bytes)),
            **enum_defines("ENDING", Ending),
            "WORDS": instance.link_bytes // 8,
            "PORTS": connections(_ports(instance)),
            **link_defines(instance, "fabric", **views, credits=False, waves=waves),
        }
        return harness(__file__, "traffic", defines, LINK_VIEW, text, blocks=_BLOCKS, kept="endpoint$", waves=waves)

    def load(self, work: Traffic, directory: Path) -> tuple[list[str], int]:
        partners = work.partners or [0] * CHANNELS * self.instance.cores
        words = write_lines(directory, {"partners": "".join(f"{partner:x}\n" for partner in partners)})
        words += plusargs(flits=work.flits, pattern=work.pattern, limit=work.limit, patience=work.patience)
        words += plusargs(load=round(work.load * SCALE), stall=round(work.stall * SCALE), result=directory / "result")
        return words + work.link_plusargs(directory), work.limit + 1000

    def read_outcome(self, work: Traffic, directory: Path, state: Mapping[str, float]) -> Outcome:
        lines = fields_by_kind(directory / "result")
        sent, received = Counter(), Counter()
        for port, core, flits in (map(int, fields) for fields in lines["s"]):
            sent[Way(port // CHANNELS, core, port % CHANNELS)] += flits
        for port, core, flits in (map(int, fields) for fields in lines["r"]):
            received[Way(core, port // CHANNELS, port % CHANNELS)] += flits
        at_ports = [list(map(int, fields)) for fields in lines["p"]]
        wires = [
            [wire, str(int(int(dead) >= 0)), disturbed, counters, dead]
            for wire, disturbed, dead, counters in lines["w"]
        ]
        ((cycles, ending),) = (map(int, fields) for fields in lines["t"])
        taken = received.total()
        return Outcome(
            ending=Ending(ending),
            cycles=cycles,
            errors=sorted((Wrong(*map(int, fields)) for fields in lines["x"]), key=lambda wrong: wrong.cycle),
            counters={
                "sent": sent,
                "received": received,
                "wrong": sum(wrong for *_, wrong in at_ports),
                "latency": sum(latencies for _, latencies, *_ in at_ports) / taken if taken else 0.0,
                "longest": max(longest for _, _, longest, _ in at_ports),
            },
            links=link_activity(wires, directory, work.sampled),
        )


def _ports(instance: Instance) -> dict[str, str]:
    fields = {"flip": "flip", "flip_bit": "flip_bit", "drop": "drop", "repeat": "again", "cut": "cut"}
    ports = {"credits_used": ""}
    for port in range(CHANNELS * instance.cores):
        for way, ours in (("i", "tx"), ("o", "rx")):
            ports[f"{way}__{port}__payload"] = f"port[{port}].{ours}"
            ports |= {f"{way}__{port}__{name}": f"port[{port}].{ours}_{name}" for name in ("valid", "ready")}
    for wire in range(instance.chips * instance.directions):
        bits = ", ".join(f"link[{wire}].{fields[name]}" for name, _ in reversed(list(DISTURBANCE)))
        ports |= {f"disturbance__{wire}": f"{{{bits}}}", f"counters__{wire}": f"link[{wire}].counters"}
    return ports

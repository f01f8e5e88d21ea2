import re

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.memory.axi import AxiPort, connect_channels
from neuroncore_rtl.hdl.verilog.conversion import to_verilog

SIZE = 8

SIGNALS = {
    **{f"{channel}{name}": width for channel in ("aw", "ar") for name, width in (("id", 2), ("addr", 40), ("len", 8))},
    **{"wdata": 64, "wstrb": 8, "wlast": 1, "bid": 2, "bresp": 2, "rid": 2, "rdata": 64, "rresp": 2, "rlast": 1},
    **{f"{channel}{name}": 1 for channel in ("aw", "w", "b", "ar", "r") for name in ("valid", "ready")},
}
"""Widths of a port with 2-bit IDs, by the specification's names."""

FROM_THE_MEMORY = {"awready", "wready", "arready", "bvalid", "bid", "bresp", "rvalid", "rid", "rdata", "rresp", "rlast"}


class Passing(wiring.Component):
    def __init__(self):
        byte = stream.Signature(8, always_ready=True)
        port = AxiPort(SIZE, 2)
        super().__init__({"manager": In(port), "memory": Out(port).array(1), "i": In(byte), "o": Out(byte)})

    def elaborate(self, platform):
        m = Module()
        manager = wiring.flipped(self.manager)
        connect_channels(m, manager, self.memory[0], "ar", "r")
        connect_channels(m, manager, self.memory[0], "aw", "w", "b")
        wiring.connect(m, wiring.flipped(self.i), wiring.flipped(self.o))
        return m


def test_ports_of_a_verilog_module():
    # A stream that is always ready has no `ready` port; connecting a channel adds no register.
    text = to_verilog("passing", Passing())
    found = re.findall(r"^  (input|output) (?:\[(\d+):0\] )?(\w+);", text, re.M)
    ports = {name: (direction, int(top or 0) + 1) for direction, top, name in found}
    streams = {"i__payload", "i__valid", "o__payload", "o__valid"}
    assert set(ports) == streams | {f"{port}__{name}" for port in ("manager", "memory__0") for name in SIGNALS}
    for name, width in SIGNALS.items():
        directions = ("output", "input") if name in FROM_THE_MEMORY else ("input", "output")
        assert [ports[f"{port}__{name}"] for port in ("manager", "memory__0")] == [(one, width) for one in directions]
    assert "posedge" not in text

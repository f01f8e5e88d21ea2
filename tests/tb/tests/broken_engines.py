"""Small instances of collective engines or whole cores; a plusarg selects a fault."""

import enum
from functools import cache

from neuroncore_rtl.run.harness.cores import CoreDevice
from neuroncore_rtl.run.harness.links.collective import CollectiveDevice
from neuroncore_rtl.run.harness.run import Device
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa.collective import CollectiveKind, CollectiveType
from neuroncore_rtl.tb.cli.registry import command_named
from neuroncore_rtl.tb.tests.links.options import instance_of
from tests.hdl.tensor.engines import FaultyDevice, faulty

__all__ = ["CORES", "DISAGREEMENTS", "ENGINES", "SETTINGS", "WORDS", "Fault", "broken_cores", "broken_engines"]

Fault = enum.IntEnum("Fault", "NONE WRONG HASTY SILENT STRAY LOST", start=0)
"""WRONG: core 1 flips a bit of a flit. HASTY: all engines retire 40 cycles after they accept an instruction. SILENT:
core 1 accepts no instructions. STRAY: all engines write whole HBM beats. LOST: core 1 drops a flit."""

ENGINES = Instance(chips=2, width=2, link_bytes=8, link_latency=1, core=PRESETS["tiny"].with_overrides(hbm_bytes=8))
"""Instance with collective engines only."""

WORDS = "CHIPS=2 TARGET=core"
SETTINGS = command_named("allreduce").settings(WORDS.split())
CORES = instance_of(SETTINGS)

DISAGREEMENTS = {
    "count": {"count": 99},
    "dtype": {"dtype": CollectiveType.INT32},
    "op": {"op": 1},
    "kind": {"kind": CollectiveKind.BROADCAST},
}
"""Changes of one rank's all-reduce of 100 FP32, by the field that errors name."""


@cache
def broken_engines() -> FaultyDevice:
    return _broken(CollectiveDevice(instance=ENGINES, room=1 << 20), ENGINES.core.hbm_bytes)


@cache
def broken_cores(watches_gates: bool = False) -> FaultyDevice:
    return _broken(CoreDevice(machine=CORES, watches_gates=watches_gates), CORES.core.hbm_bytes)


def _broken(device: Device, hbm_bytes: int) -> FaultyDevice:
    ports = {
        "o__0__payload": "flit",
        "retired": "ends",
        "axi__1__wstrb": "strobes",
        "instructions__valid": f"instructions__valid & (fault != {Fault.SILENT} || core != 1)",
        "instructions__ready": "accepts",
        "o__0__valid": "offers",
        "o__0__ready": "o__0__ready | lost",
    }
    body = f"""
    reg [3:0] fault;
    reg [15:0] seen;
    reg [7:0] since;
    initial if (!$value$plusargs("fault=%d", fault)) fault = 0;
    wire ends, accepts, offers;
    wire [{hbm_bytes - 1}:0] strobes;
    wire [80:0] flit;
    wire data = core == 1 && offers && flit[16:15] == 2'd0;
    wire lost = fault == {Fault.LOST} && data && seen == 5;
    assign o__0__valid = offers & ~lost;
    assign o__0__payload = flit ^ {{63'd0, fault == {Fault.WRONG} && data && seen == 3, 17'd0}};
    assign retired = fault == {Fault.HASTY} ? since == 8'd40 : ends;
    assign instructions__ready = accepts & (fault != {Fault.SILENT} || core != 1);
    assign axi__1__wstrb = strobes | {{{hbm_bytes}{{fault == {Fault.STRAY}}}}};
    always @(posedge clk) if (rst) seen <= 0; else if (data && (o__0__ready || lost)) seen <= seen + 16'd1;
    always @(posedge clk) if (rst || since == 8'd40) since <= 0;
        else if (instructions__valid && accepts || since != 0) since <= since + 8'd1;
"""
    return faulty(device, "collective_engine", ports=ports, body=body)

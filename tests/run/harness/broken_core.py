"""Core with several built-in faults, selected by a plusarg; without one it is correct.

Its shape differs from the presets: more columns than rows, two HBM ports, narrow beats.
"""

import enum
from functools import cache

from neuroncore_rtl.run.harness.cores import CoreDevice
from neuroncore_rtl.tb.tests.core.program import TEST
from tests.hdl.tensor.engines import FaultyDevice, faulty

__all__ = ["CONFIG", "WORDS", "Fault", "broken_core"]

Fault = enum.IntEnum("Fault", "NONE SILENT DROPPED LOST TWICE SWAPPED IGNORED HASTY MISPLACED BEYOND", start=0)

WORDS = "ROWS=2 COLUMNS=3 DMA_ENGINES=3 HBM_PORTS=2 HBM_BYTES=8"
CONFIG = TEST.settings(WORDS.split()).config  # for these variables

SHELLS = {
    "vector_engine": ({"retired": "ends"}, f"wire ends; assign retired = ends & (fault != {Fault.SILENT});", "1'b0"),
    "scalar_engine": (
        {"instructions__valid": f"instructions__valid | (fault == {Fault.TWICE} && seen != 0 && seen < 3)"}, "",
        "instructions__valid & instructions__ready"),
    "tensor_engine": (
        {"psum__ready": "serves", "psum_shared__ready": "serves_shared"}, f"""
    wire serves, serves_shared;
    assign psum__ready = serves | (fault == {Fault.IGNORED} && psum__valid);
    assign psum_shared__ready = serves_shared | (fault == {Fault.IGNORED} && psum_shared__valid);""", "1'b0"),
    "dma_engine": (
        {"write__data": "bytes", "write__address": "address"}, f"""
    wire [63:0] bytes;
    wire [17:0] address;
    assign write__data = fault == {Fault.SWAPPED} && seen[2:0] == 3 ? {{bytes[63:16], bytes[7:0], bytes[15:8]}} : bytes;
    assign write__address = fault == {Fault.BEYOND} && seen == 40 ? address ^ 18'h10000 : address;""",
        "write__valid & write__ready"),
    "queue_dma": (
        {"update__valid": "updates", "update__ready": "update__ready | lost"}, f"""
    wire updates, lost;
    assign lost = fault == {Fault.LOST} && seen == 2;
    assign update__valid = updates & ~lost;""",
        "updates & (update__ready | lost)"),
    "queue_vector": (
        {"completions": f"completions & ~(fault == {Fault.DROPPED} && seen == 2)", "error": "report"}, f"""
    wire [80:0] report;
    assign error = fault == {Fault.MISPLACED} && report[0] ? report ^ (81'd1 << 16) : report;""",
        "completions"),
    "queue_scalar": ({"wait_satisfied": f"wait_satisfied | (fault == {Fault.HASTY})"}, "", "1'b0"),
}  # fmt: skip
"""Faulty shells by module: the changed connections, the Verilog that drives them from `fault` (the selected fault) and
`seen`, and the event that `seen` counts since the reset."""


@cache
def broken_core(watches_gates: bool = False) -> FaultyDevice:
    changed = CoreDevice(machine=CONFIG, watches_gates=watches_gates)
    for module, (ports, body, event) in SHELLS.items():
        text = f"""
    reg [3:0] fault;
    reg [15:0] seen;
    initial if (!$value$plusargs("fault=%d", fault)) fault = 0;
    {body}
    always @(posedge clk) if (rst) seen <= 0; else if ({event}) seen <= seen + 16'd1;
"""
        changed = faulty(changed, module, ports=ports, body=text)
    return changed

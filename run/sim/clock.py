"""Clock of a bench; with Verilator no Python runs per cycle."""

import cocotb
from cocotb.clock import Clock

__all__ = ["PERIOD_NS", "TIMEOUT_VARIABLE", "start_clock"]

PERIOD_NS = 2
"""Clock period in simulated nanoseconds."""

TIMEOUT_VARIABLE = "TIMEOUT_NS"
"""Environment variable with a cocotb test's limit in simulated time."""


def start_clock(dut) -> None:
    """Start the clock on `dut.clk`, unless the simulator's main program drives it (Verilator)."""
    if "verilator" not in cocotb.SIM_NAME.lower():
        Clock(dut.clk, PERIOD_NS, unit="ns", impl="gpi").start()

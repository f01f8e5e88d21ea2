"""Cocotb test of every self-contained harness: run until `done` and store the values of ports.

Every simulation loads this module, so it imports only cocotb.
"""

import json
import os
import time
from pathlib import Path

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge

from neuroncore_rtl.run.sim.clock import TIMEOUT_VARIABLE, start_clock

__all__ = ["PORTS_VARIABLE", "STATE_VARIABLE", "run_to_end"]

PORTS_VARIABLE = "HARNESS_PORTS"
"""Environment variable: names of the ports, separated by commas."""

STATE_VARIABLE = "HARNESS_STATE"
"""Environment variable: JSON file for the ports' values and `seconds`, the wall time of the run."""


@cocotb.test(timeout_time=int(os.environ.get(TIMEOUT_VARIABLE, 1_000_000)), timeout_unit="ns")
async def run_to_end(dut):
    """Run the clock until `done` rises."""
    start_clock(dut)
    await ReadOnly()  # end of time step 0: the harness has read its files
    started = time.perf_counter()
    await RisingEdge(dut.done)
    seconds = time.perf_counter() - started
    names = filter(None, os.environ[PORTS_VARIABLE].split(","))
    state = {name: int(getattr(dut, name).value) for name in names} | {"seconds": seconds}
    Path(os.environ[STATE_VARIABLE]).write_text(json.dumps(state))

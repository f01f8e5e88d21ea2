"""The cocotb test of every harness that runs by itself: let it run until it is done, and store what its ports say.

Every simulation loads this module anew, hence it imports nothing but cocotb.
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
"""Environment variable: names of the ports, with commas between them."""

STATE_VARIABLE = "HARNESS_STATE"
"""Environment variable: the JSON file that their values go to, and `seconds`, the wall time of the run."""


@cocotb.test(timeout_time=int(os.environ.get(TIMEOUT_VARIABLE, 1_000_000)), timeout_unit="ns")
async def run_to_end(dut):
    """Give the harness its clock until `done` rises."""
    start_clock(dut)
    await ReadOnly()  # of time 0, when the harness has read its files
    started = time.perf_counter()
    await RisingEdge(dut.done)
    seconds = time.perf_counter() - started
    names = filter(None, os.environ[PORTS_VARIABLE].split(","))
    state = {name: int(getattr(dut, name).value) for name in names} | {"seconds": seconds}
    Path(os.environ[STATE_VARIABLE]).write_text(json.dumps(state))

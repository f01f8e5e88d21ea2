"""Cocotb test of every self-contained harness: run until `done` and store the values of ports.

Every simulation loads this module, so it imports only cocotb.
"""

import json
import os
import time
from pathlib import Path

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge, Timer

from neuroncore_rtl.run.sim.clock import PERIOD_NS, TIMEOUT_VARIABLE, start_clock

__all__ = ["PORTS_VARIABLE", "PULSE", "STATE_VARIABLE", "run_to_end"]

PORTS_VARIABLE = "HARNESS_PORTS"
"""Environment variable: names of the ports, separated by commas."""

STATE_VARIABLE = "HARNESS_STATE"
"""Environment variable: JSON file for the ports' values and `seconds`, the wall time of the run."""

PULSE = "pulse"
"""File beside the state: cycles and seconds so far, and bytes of memory of the simulator."""

PULSE_SECONDS = 0.5
"""Least time between two pulses; the run is interrupted about as often."""


@cocotb.test(timeout_time=int(os.environ.get(TIMEOUT_VARIABLE, 1_000_000)), timeout_unit="ns")
async def run_to_end(dut):
    """Run the clock until `done` rises."""
    start_clock(dut)
    await ReadOnly()  # end of time step 0: the harness has read its files
    started = time.perf_counter()
    cocotb.start_soon(_beat(Path(os.environ[STATE_VARIABLE]).with_name(PULSE), started))
    await RisingEdge(dut.done)
    seconds = time.perf_counter() - started
    names = filter(None, os.environ[PORTS_VARIABLE].split(","))
    state = {name: int(getattr(dut, name).value) for name in names} | {"seconds": seconds}
    Path(os.environ[STATE_VARIABLE]).write_text(json.dumps(state))


async def _beat(file: Path, started: float) -> None:
    """Write pulses, each after a number of cycles that takes between one and four times `PULSE_SECONDS`."""
    cycles, step, woken, told = 0, 64, started, started
    while True:
        await Timer(step * PERIOD_NS, "ns")
        cycles, now = cycles + step, time.perf_counter()
        if now - told >= PULSE_SECONDS:
            _tell(file, cycles, now - started)
            told = now
        seconds, woken = now - woken, now
        if seconds < PULSE_SECONDS:
            step *= 2
        elif seconds > 4 * PULSE_SECONDS:
            step = max(1, int(step * 2 * PULSE_SECONDS / seconds))


def _tell(file: Path, cycles: int, seconds: float) -> None:
    import ctypes  # a short run needs neither

    from neuroncore_rtl.run.resident import most_resident

    ctypes.CDLL(None).fflush(None)  # files that the harness writes
    file.write_text(f"{cycles} {seconds} {most_resident()}")

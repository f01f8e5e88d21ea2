"""The cocotb test of the DMA engine's harness, which waits for its end; light, as every run loads it."""

import json
import os
from pathlib import Path

import cocotb
from cocotb.triggers import RisingEdge

from tb import simulation
from tb.clock import start_clock

__all__ = ["STATE", "run_to_end"]

STATE = ("counters",)
"""Outputs of the harness that are stored at the end."""


@cocotb.test(timeout_time=int(os.environ.get(simulation.TIMEOUT_VARIABLE, 1_000_000)), timeout_unit="ns")
async def run_to_end(dut):
    """Let the engine run until it rests, and store what the harness counted."""
    start_clock(dut)
    await RisingEdge(dut.done)
    assert not int(dut.timeout.value), "the engine did not finish: it waits for something that does not come"
    stray = int(dut.stray.value)
    assert not stray, f"the engine broke the rules of a port (machine.v: stray <= {stray})"
    Path(os.environ["STATE"]).write_text(json.dumps({name: int(getattr(dut, name).value) for name in STATE}))

"""cocotb part of test_simulation.py; EXPECTED is the value after five cycles."""

import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge

from neuroncore_rtl.run.sim.clock import TIMEOUT_VARIABLE

PERIOD_NS = 10


@cocotb.test()
async def counts(dut):
    Clock(dut.clk, PERIOD_NS, unit="ns").start()
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    await ClockCycles(dut.clk, 5)
    await ReadOnly()
    assert int(dut.count.value) == int(os.environ["EXPECTED"])


@cocotb.test(timeout_time=int(os.environ.get(TIMEOUT_VARIABLE, 1000)), timeout_unit="ns")
async def hangs(dut):
    Clock(dut.clk, PERIOD_NS, unit="ns").start()
    await RisingEdge(dut.never)

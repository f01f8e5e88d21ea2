"""The cocotb test of a simulated board: it does for a host in another process what a serial port would do.

Every simulation loads this module anew, hence it imports nothing but cocotb.
"""

import os
from multiprocessing.connection import Client

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge, Timer, ValueChange

from neuroncore_rtl.run.sim.clock import start_clock

__all__ = ["SOCKET_VARIABLE"]

SOCKET_VARIABLE = "BOARD_SOCKET"
"""Environment variable: where the host listens."""


@cocotb.test()
async def serve(dut):
    """Take turns (bytes, wanted, patience) until there is None; answer each with what came back, and the cycle."""
    start_clock(dut)
    dut.turn.value = 0
    await RisingEdge(dut.clk)
    with Client(os.environ[SOCKET_VARIABLE]) as host:
        while (turn := host.recv()) is not None:
            data, wanted, patience = turn
            dut.bytes.value = int.from_bytes(data, "little")
            for name, value in (("count", len(data)), ("wanted", wanted), ("patience", patience)):
                getattr(dut, name).value = value
            dut.turn.value = int(dut.done_turn.value) ^ 1
            await ValueChange(dut.done_turn)
            await ReadOnly()
            count = int(dut.answers.value)
            answer = int(dut.answer.value) & ((1 << 8 * count) - 1)
            host.send((answer.to_bytes(count, "little"), int(dut.cycle.value)))
            await Timer(1, unit="step")

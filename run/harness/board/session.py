"""Cocotb test that is the serial port of a host in another process.

Every simulation loads this module, so it imports only cocotb.
"""

import os
from multiprocessing.connection import Client

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge, Timer, ValueChange

from neuroncore_rtl.run.sim.clock import start_clock

__all__ = ["SOCKET_VARIABLE"]

SOCKET_VARIABLE = "BOARD_SOCKET"
"""Environment variable with the address of the host's socket."""


@cocotb.test()
async def serve(dut):
    """Execute the exchanges requested over the connection until the request None.

    A request is the bytes to send, the number of wanted bytes, and the patience; the answer is bytes and cycle.
    """
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

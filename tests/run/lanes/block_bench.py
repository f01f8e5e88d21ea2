"""cocotb part of test_blocks.py."""

import json
from pathlib import Path

import cocotb
from cocotb.triggers import RisingEdge


@cocotb.test()
async def compares(dut):
    await RisingEdge(dut.done)
    counts = {name: int(getattr(dut, name).value) for name in ("cycles", "edges", "compared", "wrong")}
    Path("counts.json").write_text(json.dumps(counts))

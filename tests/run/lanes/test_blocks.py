"""Blocks of lanes of the core, as vectors against modules."""

import json

import pytest
from amaranth.lib import wiring

from neuroncore_rtl.hdl.verilog.conversion import below, to_verilog
from neuroncore_rtl.hdl.verilog.text import module_ports
from neuroncore_rtl.run.sim import simulation, vectors
from tests.run.lanes.block_harness import TOP, harness
from tests.run.lanes.core_blocks import KINDS, Block, core_blocks

SEED = 20260718

LARGE = ("vector_lanes", "activation_lanes", "sbuf_partitions", "datapath")
"""Blocks that are slow to build as modules; the programs of the core's tests also check these blocks, as vectors."""


def design(block: Block) -> simulation.Design:
    ports = {wiring.In: {"rst": 1}, wiring.Out: {}}
    for port, member, value in module_ports(block.component.signature, block.component):
        ports[member.flow][port] = len(value)
    scalar = f"scalar_{block.name}"
    vector = vectors.vectorised(block.name, block.of, below(block.name, block.component))
    assert vector is not None
    text = to_verilog(scalar, block.component)
    lanes = tuple(module for module in below(block.name, block.component) if module.startswith(block.of))
    whole = "\n".join([text, vector, harness(scalar, block.name, ports[wiring.In], ports[wiring.Out])])
    # Verilator's wrapper of a hierarchical block does not escape the activation lane's port `function`.
    apart = {"kept" if block.name.startswith("activation") else "hier_blocks": lanes}
    public = ("done", "cycles", "edges", "compared", "wrong")
    return simulation.Design(TOP, whole, **apart, public=public, clock="clk")


def counts(block: Block, cycles: int) -> dict[str, int]:
    built = simulation.build(design(block))
    with simulation.run_directory(block.name) as directory:
        plusargs = [f"+CYCLES={cycles}", f"+verilator+seed+{SEED}"]
        simulation.run_simulation(built, "tests.run.lanes.block_bench", run_dir=directory, plusargs=plusargs)
        result = json.loads((directory / "counts.json").read_text())
        print(block.name, f"seed {SEED}", result, (directory / "simulation.log").read_text()[-4000:])
    return result


def test_kinds_are_all_blocks_of_the_core():
    assert sorted(core_blocks()) == sorted(KINDS)


@pytest.mark.parametrize(
    ("kind", "cycles"),
    [
        *(pytest.param(kind, 20_000, marks=[pytest.mark.slow] * (kind in LARGE)) for kind in KINDS),
        *(pytest.param(kind, 1_000_000, marks=pytest.mark.slow) for kind in KINDS),
    ],
)
def test_vectors_show_what_the_modules_show(kind, cycles):
    result = counts(core_blocks()[kind], cycles)
    assert result["wrong"] == 0
    assert result["cycles"] == cycles and result["edges"] > cycles // 2 and result["compared"] > 100 * cycles


def broken_add(cell: dict) -> bool:
    if cell["type"] != "$add" or len(cell["connections"]["B"]) < 8:
        return False
    cell["type"] = "$sub"
    return True


def broken_mux(cell: dict) -> bool:
    sides = cell["connections"]
    if cell["type"] != "$mux" or len(sides["Y"]) < 8:
        return False
    sides["A"], sides["B"] = sides["B"], sides["A"]
    return True


@pytest.mark.parametrize("broken", [pytest.param(broken_add, marks=pytest.mark.slow), broken_mux])
def test_wrong_cell_is_noticed(broken, monkeypatch, tmp_path):
    block = core_blocks()["psum_partitions"]
    simulation.build(design(block))

    def netlists(*arguments):
        modules = extracted(*arguments)
        cells = (
            cell for name, module in modules.items() if name.startswith(block.of) for cell in module["cells"].values()
        )
        assert any(broken(cell) for cell in cells)
        return modules

    extracted = vectors.netlists
    monkeypatch.setattr(vectors, "netlists", netlists)
    monkeypatch.setattr(vectors, "libraries_folder", tmp_path)  # recompiled under the same names
    assert counts(block, 2_000)["wrong"] > 0

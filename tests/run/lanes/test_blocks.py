"""Blocks of lanes of the core: the vectorised simulation against the original modules, on the same random inputs.

Each port has a random mode, such as sparse, constant or rarely changing. Resets and pauses of the clock are random.
"""

import json
from collections.abc import Mapping
from itertools import product

import pytest
from amaranth.lib import wiring

from neuroncore_rtl.hdl.verilog.conversion import below, to_verilog
from neuroncore_rtl.hdl.verilog.text import module_ports
from neuroncore_rtl.run.harness.verilog_text import modules_of
from neuroncore_rtl.run.sim import simulation, vectors
from tests.hdl.simulation import slow, slow_if
from tests.run.lanes.core_blocks import KINDS, Block, core_blocks

TOP = "block_harness"

TEXT = """
/* verilator lint_off WIDTH */
module {top}(input wire clk, output reg done, output reg [63:0] cycles, edges, compared, wrong);
  reg        run = 0;
  reg [15:0] pause = 0;
  reg [63:0] limit;
  integer    part;
  wire gated = clk & run;
{declarations}
  {scalar} scalar(.clk(gated){scalar_ports});
  {vector} vector(.clk(gated){vector_ports});

  initial begin
    done = 0; cycles = 0; edges = 0; compared = 0; wrong = 0;
    if (!$value$plusargs("CYCLES=%d", limit)) limit = 1000;
  end

  always @(negedge clk) if (!done) begin
    // What the last edge left.
    compared <= compared + {output_bits};
    if ({differ}) begin
      wrong <= wrong + 1;
      if (wrong < 4) begin
{complaints}
      end
    end
    // The next one.
    pause <= pause != 0 ? pause - 1 : $urandom % 512 == 0 ? 16'($urandom % 64) : 0;
    run <= pause == 0 && $urandom % 8 != 0;
    if (run) edges <= edges + 1;
    cycles <= cycles + 1;
    done <= cycles + 1 == limit;
{draws}
  end
endmodule
/* verilator lint_on WIDTH */
"""

DRAW = """\
    if ($urandom % 64 == 0) {port}_calm <= !{port}_calm;
    if ({port}_calm ? $urandom % 16 == 0 : $urandom % 4 != 0) begin
      {port}_mood = $urandom % 8;
      for (part = 0; part < {parts}; part = part + 1)
        case ({port}_mood)
          0: {port}[32*part +: 32] <= 0;
          1: {port}[32*part +: 32] <= ~0;
          2: {port}[32*part +: 32] <= $urandom & $urandom & $urandom;
          3: {port}[32*part +: 32] <= $urandom | $urandom | $urandom;
          4: {port}[32*part +: 32] <= {port}[32*part +: 32] ^ ($urandom & $urandom & $urandom & $urandom & $urandom);
          default: {port}[32*part +: 32] <= $urandom;
        endcase
    end"""


def harness(scalar: str, vector: str, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> str:
    declarations, draws, complaints, common, ports = [], [], [], [], {"scalar": [], "vector": []}
    for port, width in inputs.items():
        parts = -(-width // 32)
        declarations.append(f"  reg [{32 * parts - 1}:0] {port} = 0;")
        common.append(f".{port}({port}[{width - 1}:0])")
        if port == "rst":
            draws.append("    rst <= 32'($urandom % 128 == 0);")
            continue
        declarations.append(f"  reg [2:0] {port}_mood;")
        declarations.append(f"  reg {port}_calm = 0;")
        draws.append(DRAW.format(port=port, parts=parts))
    for port, width in outputs.items():
        for which, connections in ports.items():
            declarations.append(f"  wire [{width - 1}:0] {which}_{port};")
            connections.append(f".{port}({which}_{port})")
        complaint = f'"cycle %0d, {port}: %h as vectors, not %h", cycles, vector_{port}, scalar_{port}'
        complaints.append(f"        if (scalar_{port} != vector_{port}) $display({complaint});")
    return TEXT.format(
        top=TOP,
        scalar=scalar,
        vector=vector,
        declarations="\n".join(declarations),
        draws="\n".join(draws),
        complaints="\n".join(complaints),
        differ=" || ".join(f"scalar_{port} != vector_{port}" for port in outputs),
        output_bits=sum(outputs.values()),
        **{f"{which}_ports": "".join(f", {each}" for each in [*common, *own]) for which, own in ports.items()},
    )


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
    assert not modules_of(vector, block.name), "a wrapper around a vector library only costs time"
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
    slow_if(lambda kind, cycles: cycles > 20_000 or kind in LARGE, product(KINDS, (20_000, 1_000_000))),
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


@pytest.mark.parametrize("broken", [*slow(broken_add), broken_mux])
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

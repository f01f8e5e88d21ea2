"""Tests of the clamp; `clamp` assigns them to units."""

from neuroncore_rtl.hdl.verilog.conversion import to_verilog
from neuroncore_rtl.run.harness.run import run_harness
from neuroncore_rtl.run.sim import simulation
from tests.hdl.simulation import simulate
from tests.tb.campaign.clamp import Clamp

NUMBERS = (*range(256), *reversed(range(256)))

HARNESS = """
module machine(input clk, output reg done, output reg [31:0] seen);
  reg [9:0] cycle;
  wire [7:0] o;
  wire cut;
  clamp clamp(.clk(clk), .rst(1'b0), .i(cycle[8] ? ~cycle[7:0] : cycle[7:0]), .o(o), .\\large (cut));
  initial {done, seen, cycle} = 0;
  always @(posedge clk) begin
    cycle <= cycle + 10'd1;
    seen <= seen * 32'd31 + {23'd0, cut, o};
    done <= cycle == 10'd512;
  end
endmodule
"""


def expected(number: int) -> int:
    return min(number if number < 128 else number & 254, 200)


def outputs() -> list[tuple[int, int]]:
    dut = Clamp()

    async def bench(ctx):
        results = []
        for number in NUMBERS:
            ctx.set(dut.i, number)
            *_, before = await ctx.tick().sample(dut.o)
            results.append((ctx.get(dut.o), ctx.get(dut.large)))
        return results

    return simulate(dut, bench)


def test_all_in_harness():
    seen = 0
    for number in NUMBERS:
        seen = (seen * 31 + expected(number) + 256 * (expected(number) == 200)) % (1 << 32)
    design = simulation.Design("machine", HARNESS + to_verilog("clamp", Clamp()), public=("done", "seen"), clock="clk")
    built = simulation.build(design)
    with simulation.run_directory("clamp") as directory:
        assert run_harness(built, directory, ("seen",), plusargs=[], limit=2000)["seen"] == seen


def test_o_only():
    assert [number for number, _ in outputs()][:256] == [expected(number) for number in range(256)]


def test_numbers():
    assert outputs() == []


def test_width_without_simulation():
    assert len(Clamp().i) == len(Clamp().o) == 8

"""A test of the clamp in a harness, which notices every mutant that differs."""

from neuroncore_rtl.hdl.verilog.conversion import to_verilog
from neuroncore_rtl.run.harness.run import run_harness
from neuroncore_rtl.run.sim import simulation
from tests.tb.campaign.clamp import Clamp
from tests.tb.campaign.clamp_seen import expected

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


def test_all():
    """What is seen of all inputs, up and down, is one number."""
    seen = 0
    for number in NUMBERS:
        seen = (seen * 31 + expected(number) + 256 * (expected(number) == 200)) % (1 << 32)
    design = simulation.Design("machine", HARNESS + to_verilog("clamp", Clamp()), public=("done", "seen"), clock="clk")
    built = simulation.build(design)
    with simulation.run_directory("clamp") as directory:
        assert run_harness(built, directory, ("seen",), plusargs=[], limit=2000)["seen"] == seen

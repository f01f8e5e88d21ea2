"""A gated unit runs beside a twin without a gate, and a simulation stops where they differ."""

import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.primitives.clock_gate import gated
from neuroncore_rtl.hdl.verilog.conversion import to_verilog
from neuroncore_rtl.run import job as run_job
from neuroncore_rtl.run.harness.run import run_harness
from neuroncore_rtl.run.sim import simulation
from neuroncore_rtl.run.sim.simulation import SimulationFailed
from tests.run.harness.broken_core import WORDS as CORE
from tests.run.harness.broken_core import broken_core
from tests.tb.reports import passed
from tests.tb.tests.broken_engines import WORDS as CORES
from tests.tb.tests.broken_engines import broken_cores


@pytest.mark.slow
@pytest.mark.parametrize(
    ("device", "test", "words"),
    [
        pytest.param(broken_core, "program", f"{CORE} COUNT=6 INSTRUCTIONS=50 SEED=3", id="core"),
        pytest.param(broken_cores, "allreduce", CORES, id="collective engines"),
    ],
)
def test_no_unit_loses_anything(device, test, words, monkeypatch):
    # This is the broken machine of another test, with twins; none of its faults is selected.
    assert device(True).watches_gates
    monkeypatch.setattr(run_job, "CoreDevice", lambda **options: device(True))
    passed(test, words)


CYCLES = 3


class Blinker(wiring.Component):
    """Drive `lit` for `CYCLES` cycles after a pulse at `go`; `active` falls with it, or one cycle before if `early`."""

    go: In(1)
    early: In(1)
    lit: Out(1)
    active: Out(1)

    def elaborate(self, platform):
        m = Module()
        left = Signal(range(CYCLES + 1))
        with m.If(self.go):
            m.d.sync += left.eq(CYCLES)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        m.d.comb += [self.lit.eq(left != 0), self.active.eq(self.go | (left > self.early))]
        return m


class Gated(wiring.Component):
    go: In(1)
    early: In(1)
    lit: Out(1)

    def elaborate(self, platform):
        m = Module()
        unit = gated(m, "unit", "blinker", Blinker, platform)
        m.d.comb += [unit.go.eq(self.go), unit.early.eq(self.early), self.lit.eq(unit.lit)]
        return m


HARNESS = """\
`timescale 1ns / 1ps
module machine(input wire clk, output reg done);
  reg [7:0] cycle = 0;
  reg early;
  wire lit;
  gated unit(.clk(clk), .rst(cycle < 4), .go(cycle % 16 == 9), .early(early), .lit(lit));
  initial begin
    done = 0;
    early = $test$plusargs("early") != 0;
  end
  always @(posedge clk) begin
    cycle <= cycle + 1;
    if (cycle == 60) done <= 1;
  end
endmodule
"""


def test_a_clock_that_stops_a_cycle_early_is_found():
    text = to_verilog("gated", Gated(), watches_gates=True)
    built = simulation.build(simulation.Design("machine", HARNESS + text, public=("done",), clock="clk"), "verilator")
    with simulation.run_directory("gates") as directory:
        run_harness(built, directory, plusargs=[], limit=100)
        with pytest.raises(SimulationFailed, match="the clock of unit stood still"):
            run_harness(built, directory, plusargs=["+early"], limit=100)

# amaranth: UnusedElaboratable=no

"""A clock that is gated never stands still too early: every gated unit has a twin without a gate in these runs, and a
simulation ends where they differ."""

from functools import partial

import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.clock_gate import gated
from neuroncore_rtl.hdl.conversion import to_verilog
from neuroncore_rtl.tb.benches import images, program
from neuroncore_rtl.tb.cli.registry import bench_named
from neuroncore_rtl.tb.harness.cores import CoreDevice
from neuroncore_rtl.tb.harness.run import run_harness
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.simulation import SimulationFailed


@pytest.mark.parametrize(
    ("module", "bench", "settings"),
    [
        pytest.param(program, program.BENCH, ["COUNT=6", "INSTRUCTIONS=50", "SEED=3"], id="core"),
        pytest.param(images, bench_named("allreduce"), ["CHIPS=2", "TARGET=core"], id="collective engines"),
    ],
)
def test_no_unit_loses_anything(module, bench, settings, monkeypatch):
    monkeypatch.setattr(module, "CoreDevice", partial(CoreDevice, watches_gates=True))
    assert bench.run(bench.settings(settings)).problems == []


CYCLES = 3


class Blinker(wiring.Component):
    """After a pulse at `go` its `lit` is high for `CYCLES` cycles; `active` falls so many cycles `early`."""

    def __init__(self, early: int):
        self.early = early
        super().__init__({"go": In(1), "lit": Out(1), "active": Out(1)})

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
    """A blinker behind a gate."""

    go: In(1)
    lit: Out(1)

    def __init__(self, early: int):
        self.early = early
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        unit = gated(m, "unit", "blinker", partial(Blinker, self.early), platform)
        m.d.comb += [unit.go.eq(self.go), self.lit.eq(unit.lit)]
        return m


HARNESS = """\
`timescale 1ns / 1ps
module machine(input wire clk, output reg done);
  reg [7:0] cycle = 0;
  wire lit;
  gated unit(.clk(clk), .rst(cycle < 4), .go(cycle % 16 == 9), .lit(lit));
  initial done = 0;
  always @(posedge clk) begin
    cycle <= cycle + 1;
    if (cycle == 60) done <= 1;
  end
endmodule
"""


@pytest.mark.parametrize("early", [0, 1])
def test_a_clock_that_stops_a_cycle_early_is_found(early):
    text = to_verilog("gated", Gated(early), watches_gates=True)
    built = simulation.build(simulation.Design("machine", HARNESS + text, public=("done",), clock="clk"), "verilator")
    with simulation.run_directory("gates") as directory:
        if early:
            with pytest.raises(SimulationFailed, match="the clock of unit stood still"):
                run_harness(built, directory, plusargs=[], limit=100)
        else:
            run_harness(built, directory, plusargs=[], limit=100)

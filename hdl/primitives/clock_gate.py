"""Clock gating for simulation speed.

Verilator evaluates all logic of a clock in every cycle, although most of a core is mostly idle. A gated unit asserts
`active` in each cycle that may change its state; otherwise its clock is held. Results and cycle counts are the same
without gates. Gates exist only with the macro `GATE_CLOCKS`, not in an FPGA, where clocks should not pass through
logic.
"""

from collections.abc import Callable, Iterator
from functools import reduce

from amaranth.hdl import Cat, ClockSignal, Instance, Module, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.verilog.hierarchy import ModuleLibrary, shared

__all__ = ["gated"]

CLOCK_GATE = """\
// Passes the clock, or, if GATE_CLOCKS is defined, those of its cycles at whose beginning `enable` is high.
module clock_gate(input wire clk, input wire enable, output wire gated);
`ifdef GATE_CLOCKS
  reg on = 1'h1;
  always @(negedge clk) on <= enable;
  assign gated = clk & on;
`else
  assign gated = clk;
`endif
endmodule
"""

GATE_WATCH = """\
// Ends a simulation in which a unit behind a gate differs from its twin, whose clock never stands still.
module gate_watch #(parameter NAME = "") (input wire clk, input wire rst, input wire differs);
  always @(posedge clk) if (!rst && differs) begin
    $display("%m: the clock of %s stood still in a cycle in which its state had to change", NAME);
    $fatal(1);
  end
endmodule
"""


def gated(m: Module, name: str, module: str, build: Callable[[], wiring.Component], platform):
    """Add a submodule as `hdl.verilog.hierarchy.shared` does, behind a clock gate.

    The component's output `active` says that relevant state may change at the end of this cycle; it may depend on
    inputs of the same cycle. The gate is open in reset and while `active` is high. If the library watches gates, an
    ungated twin gets the same inputs, and the simulation fails when an output differs: any program detects an `active`
    that is wrongly low.
    """
    if not isinstance(platform, ModuleLibrary):
        return shared(m, name, module, build, platform)
    clock = Signal(name=f"{name}_clock")
    unit = shared(m, name, module, build, platform, clock=clock)
    platform.texts["clock_gate"] = CLOCK_GATE
    m.submodules[f"{name}_gate"] = Instance(
        "clock_gate", i_clk=ClockSignal(), i_enable=unit.active | ResetSignal(), o_gated=clock
    )
    if platform.watches_gates:
        twin = shared(m, f"{name}_twin", module, build, platform)
        for (*_, member, port), (*_, other) in zip(_ports(unit), _ports(twin), strict=True):
            if member.flow == In:
                m.d.comb += other.eq(port)
        platform.texts["gate_watch"] = GATE_WATCH
        m.submodules[f"{name}_watch"] = Instance(
            "gate_watch",
            p_NAME=name,
            i_clk=ClockSignal(),
            i_rst=ResetSignal(),
            i_differs=Cat(_differences(m, unit, twin)).any(),
        )
    return unit


def _ports(unit: wiring.PureInterface) -> Iterator[tuple]:
    for path, member, port in unit.signature.flatten(unit):
        if isinstance(path[-1], int):  # an element of an array of ports is not an interface
            path = path[:1]
        owner = reduce(lambda at, step: at[step] if isinstance(step, int) else getattr(at, step), path[:-1], unit)
        yield owner, path[-1], member, Value.cast(port)


def _differences(m: Module, unit: wiring.PureInterface, twin: wiring.PureInterface) -> Iterator[Value]:
    """Yield for each output of a unit whether the same output of its twin differs.

    A payload counts only if its `valid` is set.
    """
    for (owner, name, member, port), (*_, other) in zip(_ports(unit), _ports(twin), strict=True):
        if member.flow == In:
            continue
        differs = port != other
        members = owner.signature.members
        if name in ("valid", "ready") or "valid" not in members:
            yield differs
        elif members["valid"].flow == Out:
            yield owner.valid & differs
        else:
            yield _late(m, owner.valid & owner.ready, owner.signature.latency) & differs


def _late(m: Module, value: Value, cycles: int) -> Value:
    for _ in range(cycles):
        late = Signal()
        m.d.sync += late.eq(value)
        value = late
    return value

"""Clock gates: a unit that has nothing to do costs a simulation nothing.

Verilator evaluates everything that a clock drives in every cycle, and most of a core waits most of the time. What a
gate holds would not change in any case, so cycles and results are the same with gates and without. They are there only
where the macro `GATE_CLOCKS` is defined: an FPGA, whose clocks should not pass through logic, gets none.
"""

from collections.abc import Callable

from amaranth.hdl import Cat, ClockSignal, Instance, Module, ResetSignal, Signal, Value
from amaranth.lib import wiring

from neuroncore_rtl.hdl.hierarchy import ModuleLibrary, shared

__all__ = ["REST", "gated"]

REST = 64
"""Cycles that a unit's clock goes on after the last sign of life: more than anything takes that shows nothing of itself
outside, but for the tensor engine's array."""

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


def gated(m: Module, name: str, module: str, build: Callable[[], wiring.Component], platform, rest: int = REST):
    """Add a submodule as :func:`hdl.hierarchy.shared` does, behind a gate that opens while it has something to do.

    That is in reset, while anything is valid at one of its ports, while its `busy` is high if it has one, and for a
    while after.

    Arguments:
        m, name, module, build, platform: see :func:`hdl.hierarchy.shared`.
        rest: cycles of that while.
    """
    if not isinstance(platform, ModuleLibrary):
        return shared(m, name, module, build, platform)
    clock, active = Signal(name=f"{name}_clock"), Signal(name=f"{name}_active")
    unit = shared(m, name, module, build, platform, clock)
    left = Signal(range(rest + 1), name=f"{name}_rest", init=rest)
    m.d.comb += active.eq(getattr(unit, "busy", 0) | _handshakes(unit).any())
    with m.If(active):
        m.d.sync += left.eq(rest)
    with m.Elif(left != 0):
        m.d.sync += left.eq(left - 1)
    platform.texts["clock_gate"] = CLOCK_GATE
    m.submodules[f"{name}_gate"] = Instance(
        "clock_gate", i_clk=ClockSignal(), i_enable=active | (left != 0) | ResetSignal(), o_gated=clock
    )
    return unit


def _handshakes(unit: wiring.PureInterface) -> Value:
    """Return the valid signals of all ports, whoever drives them."""
    return Cat(value for path, _, value in unit.signature.flatten(unit) if str(path[-1]).endswith("valid"))

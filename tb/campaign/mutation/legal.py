"""What a unit may be given: a module that watches its ports in proofs, which ask for no more than it allows.

A mutant that differs only where a bus answers what it was not asked, say, is no other unit to anybody who keeps the
rules. The watcher stands beside the sound side alone: what a mutant asks for excuses nothing. Another kind of watcher
stands in a submodule, and says what that promises of what it puts out.
"""

import re
from collections.abc import Callable

from amaranth.back import rtlil
from amaranth.hdl import Assume, ClockDomain, Module, Mux, Signal, Value
from amaranth.lib import wiring

from neuroncore_rtl.tb.campaign.mutation.netlist import ports_of

__all__ = ["Legal", "answers_what_was_asked", "watched"]

Legal = Callable[[Module, wiring.Component], Value]
"""Adds to a module what it takes to tell from a component's ports whether they are legal in this cycle, and returns
that bit."""


def watched(prepared: str, component: wiring.Component, legal: Legal, part: str = "") -> str:
    """Return RTLIL in which a unit is watched.

    Arguments:
        prepared: the netlist, as of `netlist.mutants_of`.
        component: the unit, or its part.
        legal: whether the ports of that are; it is not itself in the module.
        part: the submodule that is watched, by its name in the netlist; the unit unless it is named.
    """
    m = Module()
    m.domains.sync = sync = ClockDomain()
    m.d.comb += Assume(legal(m, component))
    around, name = (f"top.unit.{part}", f"legal.{part}") if part else ("top", "legal")
    ports = {"clk": (sync.clk, None), "rst": (sync.rst, None)}
    ports |= {signal.name if part else port.name: (signal, None) for port, signal in ports_of(component)}
    watcher = rtlil.convert(m, name, ports=ports)
    inputs = re.findall(r"^  wire .*\binput \d+ +\\(\w+)$", watcher, re.M)
    module = re.search(rf"^module \\{re.escape(around)}\n.*?^end\n", prepared, re.M | re.S)
    # What nobody reads of a submodule is gone from the netlist.
    there = re.findall(r"^  wire .*\b(?:in|out)put \d+ \\(\w+)$", module[0], re.M)
    cell = "".join(f"    connect \\{port} \\{port}\n" for port in inputs if port in there)
    with_it = module[0].removesuffix("end\n") + f"  cell \\{name} \\legal\n{cell}  end\nend\n"
    return prepared.replace(module[0], with_it) + re.sub(r"^attribute \\top 1\n", "", watcher, flags=re.M)


def answers_what_was_asked(m: Module, axi) -> Value:
    """Return whether a bus has no beat for a manager that waits for none, of a few hundred at once."""
    owed = Signal(9, name="beats_owed")
    asked, taken = axi.ar.valid & axi.ar.ready, axi.r.valid & axi.r.ready
    m.d.sync += owed.eq(owed + Mux(asked, axi.ar.payload.len + 1, 0) - taken)
    return (~axi.r.valid | (owed != 0)) & (owed < 256)

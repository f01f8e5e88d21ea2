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

    Raises:
        ValueError: what is said is about a port that the netlist has not, as nobody there reads it, or it is called
            otherwise.
    """
    m = Module()
    m.domains.sync = sync = ClockDomain()
    m.d.comb += Assume(legal(m, component))
    around, name = (f"top.unit.{part}", f"legal.{part}") if part else ("top", "legal")
    ports = {"clk": (sync.clk, None), "rst": (sync.rst, None)}
    ports |= {signal.name if part else port.name: (signal, None) for port, signal in ports_of(component)}
    watcher = rtlil.convert(m, name, ports=ports)
    around_it = re.search(rf"^module \\{re.escape(around)}\n.*?^end\n", prepared, re.M | re.S)[0]
    there = set(re.findall(r"^  wire (?:.* )?\\(\w+)$", around_it, re.M))
    # Ports that nobody reads may be gone from the netlist.
    read = [port for port in ports if len(re.findall(rf"\\{port}\b", watcher)) > 1]
    if missing := [port for port in read if port not in there]:
        raise ValueError(f"{around} has no {', '.join(missing)}, of which it is said what is legal")
    cell = "".join(f"    connect \\{port} \\{port}\n" for port in read)
    with_it = around_it.removesuffix("end\n") + f"  cell \\{name} \\legal\n{cell}  end\nend\n"
    return prepared.replace(around_it, with_it) + re.sub(r"^attribute \\top 1\n", "", watcher, flags=re.M)


def answers_what_was_asked(m: Module, axi) -> Value:
    """Return whether a bus has no beat for a manager that waits for none, of a few hundred at once."""
    owed = Signal(9, name="beats_owed")
    asked, taken = axi.ar.valid & axi.ar.ready, axi.r.valid & axi.r.ready
    m.d.sync += owed.eq(owed + Mux(asked, axi.ar.payload.len + 1, 0) - taken)
    return (~axi.r.valid | (owed != 0)) & (owed < 256)

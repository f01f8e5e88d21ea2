"""What a unit may be given: a module that watches its ports in proofs, which ask for no more than it allows.

A mutant that differs only where a bus answers what it was not asked, say, is no other unit to anybody who keeps the
rules. The watcher stands beside the sound side alone: what a mutant asks for excuses nothing.
"""

import re
from collections.abc import Callable

from amaranth.back import rtlil
from amaranth.hdl import Assume, ClockDomain, Module, Mux, Signal, Value
from amaranth.lib import wiring

from neuroncore_rtl.tb.campaign.mutation.netlist import ports_of

__all__ = ["answers_what_was_asked", "watched"]


def watched(prepared: str, component: wiring.Component, legal: Callable[[Module, wiring.Component], Value]) -> str:
    """Return RTLIL in which a unit is watched.

    Arguments:
        prepared: the netlist, as of `netlist.mutants_of`.
        component: the unit.
        legal: adds to a module what it takes to tell from the unit's ports whether they are legal in this cycle, and
            returns that bit; the unit itself is not in the module.
    """
    m = Module()
    m.domains.sync = sync = ClockDomain()
    m.d.comb += Assume(legal(m, component))
    ports = {"clk": (sync.clk, None), "rst": (sync.rst, None)}
    ports |= {port.name: (signal, None) for port, signal in ports_of(component)}
    watcher = rtlil.convert(m, "legal", ports=ports)
    inputs = re.findall(r"^  wire .*\binput \d+ +\\(\w+)$", watcher, re.M)
    cell = "".join(f"    connect \\{name} \\{name}\n" for name in inputs)
    top = re.search(r"^module \\top\n.*?^end\n", prepared, re.M | re.S)
    with_it = top[0].removesuffix("end\n") + f"  cell \\legal \\legal\n{cell}  end\nend\n"
    return prepared.replace(top[0], with_it) + re.sub(r"^attribute \\top 1\n", "", watcher, flags=re.M)


def answers_what_was_asked(m: Module, axi) -> Value:
    """Return whether a bus has no beat for a manager that waits for none, of a few hundred at once."""
    owed = Signal(9, name="beats_owed")
    asked, taken = axi.ar.valid & axi.ar.ready, axi.r.valid & axi.r.ready
    m.d.sync += owed.eq(owed + Mux(asked, axi.ar.payload.len + 1, 0) - taken)
    return (~axi.r.valid | (owed != 0)) & (owed < 256)

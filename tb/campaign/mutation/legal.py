"""Legal inputs: a watcher module that restricts a unit's inputs in equivalence proofs.

A mutant that differs only after a protocol violation, such as an unrequested bus answer, is equivalent for every
legal use. The watcher reads only the ports of the unchanged netlist: a mutant's own illegal requests make no input
illegal. A watcher in a submodule states a promise about the outputs of this submodule.
"""

import re
from collections.abc import Callable

from amaranth.back import rtlil
from amaranth.hdl import Assume, ClockDomain, Module, Mux, Signal, Value
from amaranth.lib import wiring

from neuroncore_rtl.tb.campaign.mutation.netlist import ports_of

__all__ = ["Legal", "add_watcher", "answers_requests", "if_valid"]

Legal = Callable[[Module, wiring.Component], Value]
"""Adds logic to a module that decides whether a component's port values are legal in this cycle."""


def add_watcher(prepared: str, component: wiring.Component, legal: Legal, part: str = "") -> str:
    """Return RTLIL with a watcher at a unit or its submodule `part`; ValueError if `legal` reads a missing port."""
    m = Module()
    m.domains.sync = sync = ClockDomain()
    m.d.comb += Assume(legal(m, component))
    around, name = (f"top.unit.{part}", f"legal.{part}") if part else ("top", "legal")
    ports = {"clk": (sync.clk, None), "rst": (sync.rst, None)}
    ports |= {signal.name if part else port.name: (signal, None) for port, signal in ports_of(component)}
    watcher = rtlil.convert(m, name, ports=ports)
    around_it = re.search(rf"^module \\{re.escape(around)}\n.*?^end\n", prepared, re.M | re.S)[0]
    there = set(re.findall(r"^  wire (?:.* )?\\(\w+)$", around_it, re.M))
    # Unused ports may be missing from the netlist.
    read = [port for port in ports if len(re.findall(rf"\\{port}\b", watcher)) > 1]
    if missing := [port for port in read if port not in there]:
        raise ValueError(f"{around} must have the ports that `legal` reads, but lacks {', '.join(missing)}")
    cell = "".join(f"    connect \\{port} \\{port}\n" for port in read)
    with_it = around_it.removesuffix("end\n") + f"  cell \\{name} \\legal\n{cell}  end\nend\n"
    return prepared.replace(around_it, with_it) + re.sub(r"^attribute \\top 1\n", "", watcher, flags=re.M)


def if_valid(stream, condition: Value) -> Value:
    """Return whether a stream is legal: it is not valid, or a condition on its payload holds."""
    return ~stream.valid | condition


def answers_requests(m: Module, axi) -> Value:
    """Return whether a bus sends beats only for outstanding requests; fewer than 256 beats must be outstanding."""
    owed = Signal(9, name="beats_owed")
    asked, taken = axi.ar.valid & axi.ar.ready, axi.r.valid & axi.r.ready
    m.d.sync += owed.eq(owed + Mux(asked, axi.ar.payload.len + 1, 0) - taken)
    return if_valid(axi.r, owed != 0) & (owed < 256)

"""Mutation unit: a component with the tests that must detect its mutants, and its legal inputs.

A mutant that differs only after a protocol violation, such as an unrequested bus answer, is equivalent for every legal
use. A watcher module restricts a unit's inputs in equivalence proofs. It reads only the ports of the unchanged netlist:
a mutant's own illegal requests make no input illegal. A watcher in a submodule states a promise about the outputs of
this submodule.
"""

import importlib
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType

from amaranth.back import rtlil
from amaranth.hdl import Assume, ClockDomain, Module, Mux, Signal, Value
from amaranth.lib import wiring

from neuroncore_rtl import ROOT
from neuroncore_rtl.tb.campaign.mutation.netlist import Means, ports_of

__all__ = ["Unit", "add_watcher", "answers_requests", "files", "if_valid", "tests_module"]

Legal = Callable[[Module, wiring.Component], Value]
"""Adds logic to a module that decides whether a component's port values are legal in this cycle."""


@dataclass(frozen=True)
class Unit:
    """A component to mutate, its tests, and what the equivalence proofs may assume.

    Arguments:
        title: name in tables.
        make: returns the component with the parameters of its tests.
        tests: files of its tests.
        cycles: depth of bounded proofs from reset, enough for every result to appear; 0 if that is too deep for a
            solver. Then each mutant that no other proof covers is a hole.
        part: submodule that mutants and proofs are limited to; empty: the component.
        without: submodules that are separate units; no mutant changes them or their outputs.
        means: function of a module and the component. It may assume inputs (`Assume`). It returns, by output name, the
            value that proofs compare instead of an output that is not always valid.
        module: the unit's Verilog module in the harness of its tests; empty if they simulate only the unit.
        whole: proofs by induction cover the component, including the submodules that drive `part`.
        legal: legal inputs in proofs, see `add_watcher`; None: any input.
        promises: by submodule, a function that makes it and a rule for its outputs, without registers. Proofs assume
            the rule, so it must be part of the submodule's contract and covered by its tests.
    """

    title: str
    make: Callable[[], wiring.Component]
    tests: tuple[str, ...]
    cycles: int = 10
    part: str = ""
    without: tuple[str, ...] = ()
    means: Means = lambda m, component: {}
    module: str = ""
    whole: bool = False
    legal: Legal | None = None
    promises: Mapping[str, tuple[Callable[[], wiring.Component], Legal]] = field(default_factory=dict)


def files(*names: str) -> tuple[str, ...]:
    """Return the paths of tests in tests/hdl/, each given as folder/name, without test_ and .py."""
    return tuple(f"tests/hdl/{folder}/test_{name}.py" for folder, _, name in (name.partition("/") for name in names))


def tests_module(module: str) -> ModuleType:
    """Import and return a module of tests/hdl/ that defines parameters of a unit's tests."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    return importlib.import_module(f"tests.hdl.{module}")


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

"""Mutation unit: a component with the tests that must detect its mutants."""

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType

from amaranth.hdl import Mux, Value
from amaranth.lib import wiring

from neuroncore_rtl import ROOT
from neuroncore_rtl.tb.campaign.mutation.legal import Legal
from neuroncore_rtl.tb.campaign.mutation.netlist import Means, member

__all__ = ["Unit", "files", "payloads", "qualify", "tests_module"]


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
        legal: legal inputs in proofs, see `legal.add_watcher`; None: any input.
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


def qualify(valid: Value, outputs: Mapping[str, Value]) -> dict[str, Value]:
    """Return `Unit.means` that compares outputs only while `valid` is set."""
    return {name: Mux(valid, Value.cast(value), 0) for name, value in outputs.items()}


def payloads(component, *streams: str, of: str = "") -> dict[str, Value]:
    """Return `Unit.means` that compares payloads of streams only while valid; `of`: prefix of the output names."""
    ports = {f"{of}{name}.payload": member(component, name) for name in streams}
    return {name: Mux(port.valid, Value.cast(port.payload), 0) for name, port in ports.items()}

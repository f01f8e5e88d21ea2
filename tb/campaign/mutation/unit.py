"""A unit of which mutants are made, with the tests that have to catch them."""

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType

from amaranth.hdl import Mux, Value
from amaranth.lib import wiring

from neuroncore_rtl import ROOT
from neuroncore_rtl.tb.campaign.mutation.legal import Legal
from neuroncore_rtl.tb.campaign.mutation.netlist import Means

__all__ = ["Unit", "files", "meant", "of_tests", "payloads", "tested"]


@dataclass(frozen=True)
class Unit:
    """A unit.

    Arguments:
        title: what it is called in tables.
        make: returns the component, with the parameters that its tests give it.
        tests: files of its tests.
        cycles: of proofs of equivalence, from reset, enough for every result; 0 if so many are too many for a solver,
            and what is not equal in a step then is a hole.
        part: the submodule that mutants are made of, and proofs; all of the component unless it is named.
        without: submodules of that which are left out with their outputs, as they have a row of their own.
        means: called with a module and the component, says what proofs of all of it are about: it may assume something
            of inputs (`Assume`) there, and returns of outputs that do not always mean anything, by name, what is looked
            at in their place.
        whole: proofs by induction are of all of the component, whose other parts say what `part` is given.
        legal: says in proofs what the component may be given, as of `legal.watched`; anything unless there is such.
        promises: of submodules, what makes each alone, and what it says of its outputs, likewise but without registers;
            proofs take that for true, so it must be what its contract says and its tests hold.
        module: its Verilog module in the harness in which its tests simulate it; empty if they simulate it by itself.
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
    """Return files of the tests of hdl/ by their short names, such as queue/boot."""
    return tuple(f"tests/hdl/{folder}/test_{name}.py" for folder, _, name in (name.partition("/") for name in names))


def of_tests(module: str) -> ModuleType:
    """Return a module of tests/hdl/, which has the parameters that a unit is tested with."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    return importlib.import_module(f"tests.hdl.{module}")


def tested(module: str, make: Callable[[ModuleType], wiring.Component]) -> Callable[[], wiring.Component]:
    """Return a function that makes a component with the parameters of a module of tests/hdl/."""
    return lambda: make(of_tests(module))


def meant(valid: Value, said: Mapping[str, Value]) -> dict[str, Value]:
    """Return, as `Unit.means` does, that these outputs mean something where something is valid."""
    return {name: Mux(valid, Value.cast(value), 0) for name, value in said.items()}


def payloads(component, *streams: str, of: str = "") -> dict[str, Value]:
    """Return, as `Unit.means` does, that payloads of these streams mean something where they are valid.

    Arguments:
        component: what has them. of: its name, with a dot, if it is part of the unit.
    """
    ports = {f"{of}{name}.payload": getattr(component, name) for name in streams}
    return {name: Mux(port.valid, Value.cast(port.payload), 0) for name, port in ports.items()}

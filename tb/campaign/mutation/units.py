"""The units of which mutants are made, with the tests that have to catch them."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from amaranth.lib import wiring

from neuroncore_rtl.hdl.arith.add import Fp32Adder
from neuroncore_rtl.hdl.arith.decode import EdgeDecoder
from neuroncore_rtl.hdl.arith.round import Fp32Rounder
from neuroncore_rtl.hdl.arith.threefry import Threefry2x32

__all__ = ["UNITS", "Unit", "unit_named"]


@dataclass(frozen=True)
class Unit:
    """A unit.

    Arguments:
        title: what it is called in tables.
        make: returns the component, with the parameters that its tests give it.
        tests: files of its tests.
        cycles: of proofs of equivalence, from reset.
        part: the submodule that mutants are made of; all of the component unless it is named.
    """

    title: str
    make: Callable[[], wiring.Component]
    tests: tuple[str, ...]
    cycles: int = 10
    part: str = ""


def _tests(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/hdl/{folder}/test_{name}.py" for folder, _, name in (name.partition("/") for name in names))


UNITS = {
    "edge_decoder": Unit("edge decoder", EdgeDecoder, _tests("arith/decode"), 2),
    "rounding": Unit("rounding", lambda: Fp32Rounder(2), _tests("arith/round"), 5),
    "threefry": Unit("Threefry", Threefry2x32, _tests("arith/threefry"), 2),
    "adder": Unit("FP32 adder", lambda: Fp32Adder(2), _tests("arith/fp32"), 5),
}
"""By the names that UNIT= takes."""


def unit_named(name: str) -> Unit:
    """Return a unit of `UNITS`, or one of another module by module:name."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute) if attribute else UNITS[name]

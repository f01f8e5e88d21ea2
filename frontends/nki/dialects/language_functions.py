"""What the modules of functions of `nki.language` have in common: how one is entered, and what it may build upon."""

from collections.abc import Callable
from math import prod

from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.calls import Call, returned

__all__ = ["entering", "is_column", "isa_call"]


def isa_call(call: Call) -> Callable:
    """Return an instruction as the first dialect calls it, without a dst."""
    return call.function(older=True)


def entering(functions: dict[str, Callable], expanded: dict[str, str]) -> Callable:
    """Return what enters a function into a module's table by its name; and into `expanded`, if it becomes several
    instructions, which.
    """

    def enter(function: Callable, name: str = "", several: str = "") -> Callable:
        name = name or function.__name__.rstrip("_")
        function.__name__ = function.__qualname__ = name
        functions[name] = returned(function)
        if several:
            expanded[name] = several
        return functions[name]

    return enter


def is_column(x: View, other: View) -> bool:
    """Return whether a tile has one element a partition, where another one has several."""
    lanes = x.lanes is not None and x.shape[0] == other.shape[0] and x.partition.steps[x.lanes] == 1
    return lanes and x.lanes == 0 and prod(x.shape[1:]) == 1 and prod(other.shape[1:]) > 1

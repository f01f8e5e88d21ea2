"""Helpers of the modules with functions of `nki.language`."""

from collections.abc import Callable
from math import prod

from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.calls import Call, nl_function

__all__ = ["entering", "is_column", "isa_call"]


def isa_call(call: Call) -> Callable:
    """Return the function for a call in the first dialect, which returns the result instead of accepting a dst."""
    return call.function(older=True)


def entering(functions: dict[str, Callable], expanded: dict[str, str]) -> Callable:
    """Return a decorator that enters the decorated function in the table `functions`.

    The decorator's argument `several` names the instructions of a function that becomes several instructions; they are
    entered in `expanded`.
    """

    def enter(function: Callable, name: str = "", several: str = "") -> Callable:
        name = name or function.__name__.rstrip("_")
        function.__name__ = function.__qualname__ = name
        functions[name] = nl_function(function)
        if several:
            expanded[name] = several
        return functions[name]

    return enter


def is_column(x: View, other: View) -> bool:
    """Return whether a tile has one element per partition where the other has several."""
    lanes = x.lanes is not None and x.shape[0] == other.shape[0] and x.partition.steps[x.lanes] == 1
    return lanes and x.lanes == 0 and prod(x.shape[1:]) == 1 and prod(other.shape[1:]) > 1

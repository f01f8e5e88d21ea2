"""Registry of functions of elements."""

from collections.abc import Callable
from typing import Concatenate

from neuroncore_rtl.frontends.xla.emit.lanes import Lanes
from neuroncore_rtl.frontends.xla.graph.types import ElementType
from neuroncore_rtl.kernels.program import Tensor

__all__ = ["Function", "Registry"]

Function = Callable[Concatenate[Lanes, Tensor, ElementType, ElementType, ...], None]
"""Of lanes, destination, types of result and first operand, operands."""


class Registry(dict[str, Function]):
    """Functions by name."""

    def named(self, *names: str) -> Callable[[Function], Function]:
        """Return a decorator that registers a function."""

        def register(function: Function) -> Function:
            self.update(dict.fromkeys(names, function))
            return function

        return register

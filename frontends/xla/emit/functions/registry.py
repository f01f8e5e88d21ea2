"""Registry of functions of elements."""

from collections.abc import Callable
from typing import Concatenate

from neuroncore_rtl.frontends.xla.emit.lanes import Lanes
from neuroncore_rtl.frontends.xla.graph.types import ElementType
from neuroncore_rtl.kernels.program import Tensor

__all__ = ["LaneFunction", "Registry"]

LaneFunction = Callable[Concatenate[Lanes, Tensor, ElementType, ElementType, ...], None]
"""Of lanes, destination, types of result and first operand, operands."""


class Registry(dict[str, LaneFunction]):
    """Functions by name."""

    def named(self, *names: str) -> Callable[[LaneFunction], LaneFunction]:
        """Return a decorator that registers a function."""

        def register(function: LaneFunction) -> LaneFunction:
            self.update(dict.fromkeys(names, function))
            return function

        return register

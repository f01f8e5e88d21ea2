"""Static arguments of a function, which are no arrays: a call with others is another program."""

import inspect
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from neuroncore_rtl.frontends.xla.refusal import Refused

__all__ = ["StaticArguments"]

Numbers = int | Iterable[int] | None
Names = str | Iterable[str] | None


@dataclass(frozen=True)
class StaticArguments:
    """Positions and names of arguments that are no arrays."""

    numbers: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, function: Callable, numbers: Numbers, names: Names) -> "StaticArguments":
        """Return those given; of only positions or only names, the others follow from the signature."""
        parameters = []
        with suppress(TypeError, ValueError):  # of a function without a signature
            parameters = [*inspect.signature(function).parameters.values()]
        either = [(at, one.name) for at, one in enumerate(parameters) if one.kind is one.POSITIONAL_OR_KEYWORD]
        own = (numbers,) if isinstance(numbers, int) else tuple(numbers or ())
        called = (names,) if isinstance(names, str) else tuple(names or ())
        if names is None:
            called = tuple(name for at, name in either if at in own or at - len(parameters) in own)
        if numbers is None:
            own = tuple(at for at, name in either if name in called)
        return cls(own, called)

    def separate(self, args: tuple, kwargs: dict) -> tuple[tuple[tuple, dict], Hashable]:
        """Return the arguments that are arrays, and the static ones with their types: 1 and 1.0 are not the same."""
        count = len(args)
        numbers = {number % count for number in self.numbers if -count <= number < count}
        fixed = {str(place): args[place] for place in sorted(numbers)}
        fixed |= {name: kwargs[name] for name in sorted(kwargs) if name in self.names}
        for name, value in fixed.items():
            try:
                hash(value)
            except TypeError:
                rule = "static arguments must be hashable"
                raise Refused(f"{rule}, not {value!r} of type {type(value).__name__}, argument {name}") from None
        arrays = tuple(arg for place, arg in enumerate(args) if place not in numbers)
        named = {name: value for name, value in kwargs.items() if name not in self.names}
        return (arrays, named), tuple((name, type(value), value) for name, value in fixed.items())

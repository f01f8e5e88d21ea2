"""Types of arguments: which argument of a call is not of the type that its annotation asks for."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sized
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

__all__ = ["wrong_argument"]

_NUMBERS: dict[Any, type] = {int: Integral, float: Real}
"""Abstract types of annotations that numpy's numbers fit, too."""


def wrong_argument(function: Callable, args: tuple, options: Mapping[str, object]) -> ValueError | None:
    """Return an error that names the first argument of a call whose type does not fit; None if there is none."""
    try:
        signature = inspect.signature(function)
        given = signature.bind(*args, **options).arguments
    except TypeError:  # missing or unknown arguments: Python's own error says which
        return None
    hints = get_type_hints(function)
    for name, value in given.items():
        kind, hint = signature.parameters[name].kind, hints.get(name, Any)
        if kind == inspect.Parameter.VAR_KEYWORD:
            continue
        for one in value if kind == inspect.Parameter.VAR_POSITIONAL else (value,):
            if not _fits(one, hint):
                rule = f"{name} must be {_words(hint)}, not {_found(one)}"
                return ValueError(f"{function.__name__}: {rule}")
    return None


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if hint is Any or isinstance(hint, TypeVar):
        return True
    if origin is None:
        return isinstance(value, cast(type, _NUMBERS.get(hint, hint)))
    if origin is Callable:
        return callable(value)
    if not isinstance(origin, type):
        return True
    if issubclass(origin, Mapping):
        return isinstance(value, Mapping)
    if not isinstance(value, Iterable) or isinstance(value, str):
        return False
    # An iterator would be used up.
    return not inner or not isinstance(value, Sized) or all(_fits(one, inner[0]) for one in value)


def _words(hint: Any) -> str:
    """Return an annotation in words, such as "Rows, Tensor or None"."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        *names, last = dict.fromkeys(map(_words, inner))
        return f"{', '.join(names)} or {last}" if names else last
    if origin is Callable:
        return "a function"
    if origin is None:
        return "None" if hint is NoneType else getattr(hint, "__name__", str(hint))
    return "a mapping" if issubclass(origin, Mapping) else f"a sequence of {_words(inner[0])}"


def _found(value: object) -> str:
    return repr(value) if isinstance(value, str | int | float | None) else type(value).__name__

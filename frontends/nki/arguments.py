"""Arguments of kernels: binding to parameters, and the arrays within lists, tuples and dicts."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from neuroncore_rtl.frontends.nki.indices.arrays import as_numbers
from neuroncore_rtl.frontends.nki.indices.dtypes import DType

__all__ = ["bind_arguments", "is_typed", "map_leaves", "typed_numbers"]


def is_typed(given: Any) -> bool:
    """Return whether a value is a pair (array, type); a tuple of two arrays is not."""
    pair = isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], np.ndarray)
    return pair and isinstance(given[1], str | type | np.dtype | DType)


def typed_numbers(name: str, given: Any) -> tuple[np.ndarray, DType] | None:
    """Return the numbers and the type of an array or a pair (array, type), None for any other value.

    Raises:
        ValueError: if the machine lacks the type.
    """
    values, dtype = given if is_typed(given) else (given, None)
    if not isinstance(values, np.ndarray):
        return None
    try:
        return as_numbers(values, dtype)
    except ValueError as refusal:
        raise ValueError(f"{name}: {refusal}") from None


def map_leaves(function: Callable[[str, Any], Any], name: str, given: Any) -> Any:
    """Return a value with function(name, leaf) for each leaf, the same object if all results are the leaves.

    A leaf is a pair (array, type), or any object other than a list, tuple or dict. Element 2 of `x` has the name x.2.
    """
    if is_typed(given) or not isinstance(given, list | tuple | dict):
        return function(name, given)
    keys = list(given) if isinstance(given, dict) else range(len(given))
    parts = [map_leaves(function, f"{name}.{key}", given[key]) for key in keys]
    if all(part is given[key] for key, part in zip(keys, parts, strict=True)):
        return given
    if isinstance(given, dict):
        return dict(zip(keys, parts, strict=True))
    return type(given)(*parts) if hasattr(given, "_fields") else type(given)(parts)


def bind_arguments(name: str, signature: inspect.Signature, arguments: Mapping[str, object]) -> inspect.BoundArguments:
    """Return a function's arguments, with its defaults, from values by name; ValueError if they do not fit.

    The value of *args is a sequence, the value of **kwargs a mapping; other names also enter **kwargs.
    """
    own = {key: value for key, value in arguments.items() if key in signature.parameters}
    more: dict[str, Any] = {key: value for key, value in arguments.items() if key not in own}
    try:
        given = inspect.BoundArguments(signature, own)  # type: ignore[arg-type]
        found = signature.bind(*given.args, **given.kwargs, **more)
    except TypeError as wrong:
        plain = [parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()]
        raise ValueError(f"arguments must fit {name}{inspect.Signature(plain)}: {wrong}") from None
    found.apply_defaults()
    return found

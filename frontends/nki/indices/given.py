"""Checks of a kernel's arguments: integers and dimensions."""

from numbers import Real
from typing import Any, cast

__all__ = ["as_integer", "dimension"]


def as_integer(name: str, given: Any) -> int:
    """Return an argument as an integer; ValueError if it is none."""
    if not isinstance(given, Real) or given != given // 1:
        raise ValueError(f"{name} must be an integer, not {given!r}")
    return int(cast("int", given))


def dimension(given: Any, count: int, name: str = "a dimension") -> int:
    """Return one of `count` dimensions, of which negative ones count from the end; ValueError for any other object."""
    if not -count <= as_integer(name, given) < count:
        raise ValueError(f"{name} must be from {-count} to {count - 1}, not {given!r}")
    return int(given) % count

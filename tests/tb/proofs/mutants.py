"""Hardware with a fault: a method of a class whose source has one thing changed."""

import inspect
import textwrap
from collections.abc import Callable

import pytest

__all__ = ["change"]


def change(monkeypatch: pytest.MonkeyPatch, method: Callable, was: str, now: str) -> None:
    """Replace what occurs once in the source of a method, for the rest of a test."""
    source = textwrap.dedent(inspect.getsource(method))
    assert source.count(was) == 1, f"{was!r} occurs {source.count(was)} times in {method.__qualname__}"
    made: dict[str, Callable] = {}
    exec(source.replace(was, now), method.__globals__, made)
    monkeypatch.setattr(method, "__code__", made[method.__name__].__code__)

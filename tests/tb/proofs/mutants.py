"""Faults in hardware, by editing the source of a method."""

import inspect
import textwrap
from collections.abc import Callable

import pytest

__all__ = ["change"]


def change(monkeypatch: pytest.MonkeyPatch, method: Callable, was: str, now: str) -> None:
    source = textwrap.dedent(inspect.getsource(method))
    assert source.count(was) == 1, f"{was!r} occurs {source.count(was)} times in {method.__qualname__}"
    made: dict[str, Callable] = {}
    exec(source.replace(was, now), method.__globals__, made)
    monkeypatch.setattr(method, "__code__", made[method.__name__].__code__)

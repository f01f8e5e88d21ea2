from collections.abc import Callable, Iterable

import pytest

__all__ = ["slow", "slow_if"]


def slow(*cases) -> list:
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow) for case in cases]


def slow_if(is_slow: Callable[..., bool], cases: Iterable) -> list:
    """Return cases with the mark `slow` where `is_slow` of their parameters is true."""
    tuples = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=[pytest.mark.slow] * is_slow(*case)) for case in tuples]

"""Marker for slow cases of a parametrised test."""

import pytest

__all__ = ["slow"]


def slow(*cases) -> list:
    """Return cases with the mark `slow`; a tuple has several parameters."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow) for case in cases]

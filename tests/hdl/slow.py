"""Cases of a parametrised test that only the slow set has."""

import pytest

__all__ = ["slow"]


def slow(*cases) -> list:
    """Return slow cases; those of several parameters are tuples."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow) for case in cases]

"""Plots without a display."""

from typing import Any

from neuroncore_rtl.run.sim.packages import require_packages

__all__ = ["new_figure"]


def new_figure(width: float, height: float, **options: Any):
    """Return an empty `matplotlib.figure.Figure`, sizes in inches; install matplotlib if it is missing."""
    require_packages("plots")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), **options)

"""Collectives against published times: cycles of the link model, plus two fitted constants that it lacks."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import nnls

from neuroncore_rtl.bench.silicon import modelled
from neuroncore_rtl.bench.silicon.published import ALL_GATHERS, ALL_REDUCES
from neuroncore_rtl.spec.config import Config

__all__ = ["GHZ", "collective_rows", "fit_collectives"]

GHZ = 1.4
"""Clock of a machine without `Config.clock_mhz`, used for all cycles here."""


def fit_collectives(rows: Sequence[Mapping[str, float]]) -> tuple[float, float]:
    """Return two fitted times in microseconds: of a start by the host, and of a step around the ring.

    The fit minimises the squared relative errors of the estimates; no constant is negative.
    """
    scale = np.array([row["published"] for row in rows], float)
    columns = np.array([[1, row["steps"]] for row in rows]) / scale[:, None]
    rest = 1 - np.array([row["bare"] for row in rows]) / scale
    host, step = nnls(columns, rest)[0]
    return float(host), float(step)


def collective_rows(config: Config) -> tuple[list[dict[str, object]], tuple[float, float]]:
    """Return the rows and the fitted constants; every second row is used for the fit, the other rows test it."""
    groups = (ALL_REDUCES, modelled.all_reduce_cycles, 2), (ALL_GATHERS, modelled.all_gather_cycles, 31)
    rows = [
        {
            "name": time.name,
            "published": time.us,
            "bare": cycles(config, time.size) / (config.clock_mhz or 1000 * GHZ),
            "steps": steps,
            "use": ("judged", "fitted")[number % 2],
        }
        for times, cycles, steps in groups
        for number, time in enumerate(times)
    ]
    host, step = fit_collectives([row for row in rows if row["use"] == "fitted"])
    for row in rows:
        row["ours"] = host + step * row["steps"] + row["bare"]
        row["ratio"] = row["ours"] / row["published"]
    return rows, (host, step)

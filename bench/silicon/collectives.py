"""Collectives against published times: cycles of the link model, plus two fitted constants that it does not include."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import nnls

from neuroncore_rtl.bench.silicon import modelled
from neuroncore_rtl.bench.silicon.published import ALL_GATHERS, ALL_REDUCES

__all__ = ["GHZ", "collective_rows", "fit_collectives"]

GHZ = 1.4
"""Clock of the published core, used for all cycles here."""


def fit_collectives(rows: Sequence[Mapping[str, float]]) -> tuple[float, float]:
    """Return two fitted constants: microseconds per start of a collective by the host, and per step around the ring.

    The fit minimises the squared relative errors of the estimates; neither constant is negative.
    """
    scale = np.array([row["published"] for row in rows], float)
    columns = np.array([[1, row["steps"]] for row in rows]) / scale[:, None]
    rest = 1 - np.array([row["bare"] for row in rows]) / scale
    host, step = nnls(columns, rest)[0]
    return float(host), float(step)


def collective_rows() -> tuple[list[dict[str, object]], tuple[float, float]]:
    """Return the rows and the fitted constants; every second row is used for the fit, the other rows test it."""
    groups = (ALL_REDUCES, modelled.all_reduce_cycles, 2), (ALL_GATHERS, modelled.all_gather_cycles, 31)
    rows = [
        {
            "name": time.name,
            "published": time.us,
            "bare": cycles(time.size) / GHZ / 1000,
            "steps": steps,
            "fitted": number % 2 == 1,
        }
        for times, cycles, steps in groups
        for number, time in enumerate(times)
    ]
    host, step = fit_collectives([row for row in rows if row["fitted"]])
    for row in rows:
        row["ours"] = host + step * row["steps"] + row["bare"]
        row["ratio"] = row["ours"] / row["published"]
    return rows, (host, step)

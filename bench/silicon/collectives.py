"""Collectives beside published times: cycles of the model of links, and what no cycle is of, which is fitted."""

from collections.abc import Mapping, Sequence
from itertools import compress, product

import numpy as np

from neuroncore_rtl.bench.silicon import modelled
from neuroncore_rtl.bench.silicon.published import ALL_GATHERS, ALL_REDUCES

__all__ = ["GHZ", "collective_rows", "fit_collectives"]

GHZ = 1.4
"""Of all cycles here: the clock of the published core."""


def fit_collectives(rows: Sequence[Mapping[str, float]]) -> tuple[float, float]:
    """Return the microseconds of a start by the host, and of each step of a ring, with which rows are nearest.

    Nearest by the squares of the ratios' errors. Neither is below 0.

    Arguments:
        rows: of those to fit, microseconds of the model ("bare"), as published ("published"), and steps ("steps").
    """
    scale = np.array([row["published"] for row in rows], float)
    columns = np.array([[1, row["steps"]] for row in rows]) / scale[:, None]
    left = 1 - np.array([row["bare"] for row in rows]) / scale
    # With two constants the nearest that are not negative are the nearest of both, of one alone, or of none.
    found = []
    for used in product((True, False), repeat=2):
        constants = np.zeros(2)
        if any(used):
            own = list(compress(range(2), used))
            constants[own] = np.linalg.lstsq(columns[:, own], left, rcond=None)[0]
        if constants.min() >= 0:
            found.append((float(np.sum((columns @ constants - left) ** 2)), *map(float, constants)))
    return min(found)[1:]


def collective_rows() -> tuple[list[dict[str, object]], tuple[float, float]]:
    """Return a row for each collective, and the constants, which are fitted to every other row: the others judge."""
    groups = (ALL_REDUCES, modelled.reduce, 2), (ALL_GATHERS, modelled.gathered_cycles, 31)
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

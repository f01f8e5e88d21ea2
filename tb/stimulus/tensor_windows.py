"""Random tensor instructions: positions of operands in the array, and close sequences of loads and multiplications."""

import numpy as np

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa.tensor import column_starts, row_starts

__all__ = ["CLOSE", "TURNS", "random_columns", "random_rows"]

LOAD, MULTIPLY = True, False

TURNS = (
    # Weights replace others while the multiplication that uses them is already pending.
    (LOAD, LOAD, MULTIPLY),
    (LOAD, LOAD, LOAD, MULTIPLY),
    # Weights are loaded during a multiplication, or used by two.
    (LOAD, MULTIPLY, LOAD, MULTIPLY),
    (LOAD, MULTIPLY, MULTIPLY),
)
"""Sequences that expose faults in the engine's sequencing, and that independent draws seldom produce."""

CLOSE = 0.15  # probability of such a sequence instead of an independent draw


def random_rows(rng: np.random.Generator, config: Config, full: float = 0.0) -> dict[str, int]:
    """Return the fields row and k of an instruction; full: share of operands with all rows from their start."""
    row, k = _span(rng, row_starts(config), range(config.rows), config.quadrant, full)
    return {"row": row, "k": k}


def random_columns(
    rng: np.random.Generator, config: Config, within: range | None = None, full: float = 0.0
) -> dict[str, int]:
    """Return the fields column and m of an instruction, `within` some columns; full: as :func:`random_rows`."""
    within = range(config.columns) if within is None else within
    starts = [column for column in column_starts(config) if column in within]
    column, m = _span(rng, starts, within, config.quadrant, full)
    return {"column": column, "m": m}


def _span(rng, starts: list[int], within: range, quadrant: int, full: float) -> tuple[int, int]:
    """Return a random start and length among the numbers `within`; every other span has the first start."""
    start = starts[0] if rng.random() < 0.5 else int(rng.choice(starts))
    # More than half of them start at 0, more than a quarter at a half.
    most = within.stop - start
    if start:
        most = min(most, quadrant if start // quadrant % 2 else 2 * quadrant)
    return start, most if rng.random() < full else int(rng.integers(1, most + 1))

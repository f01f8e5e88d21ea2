"""Random tensor instructions: their positions in the array, and sequences that follow each other closely."""

import numpy as np

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa.tensor import column_starts, row_starts

__all__ = ["CLOSE", "TURNS", "random_columns", "random_rows"]

LOAD, MULTIPLY = True, False

TURNS = (
    # Weights replace other weights while the multiplication that uses the new ones is already pending.
    (LOAD, LOAD, MULTIPLY),
    (LOAD, LOAD, LOAD, MULTIPLY),
    # Weights are loaded during a multiplication, or used by two multiplications.
    (LOAD, MULTIPLY, LOAD, MULTIPLY),
    (LOAD, MULTIPLY, MULTIPLY),
)
"""Sequences of instructions that independent random choices seldom produce."""

CLOSE = 0.15  # probability of such a sequence instead of an independent draw


def random_rows(rng: np.random.Generator, config: Config, full: float = 0.0) -> dict[str, int]:
    """Return the fields row and k of an instruction; `full`: probability of the largest k for the drawn row."""
    row, k = _span(rng, row_starts(config), range(config.rows), config.quadrant, full)
    return {"row": row, "k": k}


def random_columns(
    rng: np.random.Generator, config: Config, within: range | None = None, full: float = 0.0
) -> dict[str, int]:
    """Return the fields column and m; `full`: probability of the largest m."""
    within = range(config.columns) if within is None else within
    starts = [column for column in column_starts(config) if column in within]
    column, m = _span(rng, starts, within, config.quadrant, full)
    return {"column": column, "m": m}


def _span(rng, starts: list[int], within: range, quadrant: int, full: float) -> tuple[int, int]:
    """Return the random start and length of a span in `within`; half of the spans begin at the first of `starts`."""
    start = starts[0] if rng.random() < 0.5 else int(rng.choice(starts))
    # A span that starts at 0 has any length; another one must not cross the border of its quadrant, or of its half.
    most = within.stop - start
    if start:
        most = min(most, quadrant if start // quadrant % 2 else 2 * quadrant)
    return start, most if rng.random() < full else int(rng.integers(1, most + 1))

"""Rounding by rational numbers, directly from the definition."""

import math
from fractions import Fraction

from neuroncore_rtl.spec.formats import Format

__all__ = ["round_exactly"]


def round_exactly(value: float | Fraction, fmt: Format, random: int | None = None) -> float:
    """Return `value` rounded to `fmt`, to nearest even or, with a random word, stochastically; integers saturate."""
    if math.isnan(value):
        return math.nan if fmt.is_float else 0.0
    if math.isinf(value):
        return value if fmt.is_float else float(fmt.max if value > 0 else fmt.min)
    last_place = Fraction(1)
    if fmt.is_float:
        last_place = Fraction(2) ** (max(math.frexp(value)[1] - 1, fmt.min_exponent) - fmt.mantissa_bits)
    scaled = abs(Fraction(value)) / last_place
    kept = math.floor(scaled)
    discarded = scaled - kept
    if random is None:
        magnitude = round(scaled) * last_place  # Python rounds a Fraction to nearest even
    else:
        magnitude = (kept + (math.floor(discarded * 2**32) + random >= 2**32)) * last_place
    if not fmt.is_float:
        return float(min(max(int(math.copysign(1, value)) * magnitude, fmt.min), fmt.max))
    return math.copysign(math.inf if magnitude > Fraction(fmt.max) else float(magnitude), value)

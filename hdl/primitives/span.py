"""Range of rows or columns of the array, which are partitions of a memory."""

from amaranth import Cat, Value, unsigned
from amaranth.lib import data

__all__ = ["Span", "members"]


class Span(data.Struct):
    """Half-open range of indices: the first index, and the index after the last."""

    first: unsigned(10)
    end: unsigned(11)


def members(span: Span, count: int) -> Value:
    """Return one bit for each of `count` rows or columns, set if the span contains it."""
    return Cat((span.first <= number) & (span.end > number) for number in range(count))

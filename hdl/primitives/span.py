"""Consecutive rows or columns of the array, which are consecutive partitions of a memory."""

from amaranth import Cat, Value, unsigned
from amaranth.lib import data

__all__ = ["Span", "members"]


class Span(data.Struct):
    """The first one, and the one after the last."""

    first: unsigned(10)
    end: unsigned(11)


def members(span: Span, count: int) -> Value:
    """Return a bit for each of `count` rows or columns: whether it is in a span."""
    return Cat((span.first <= number) & (span.end > number) for number in range(count))

"""Bit fields: a layout is a tuple of (name, width), with the first field lowest."""

from collections.abc import Iterable

__all__ = ["Layout", "pack", "place_of", "unpack", "width_of"]

Layout = tuple[tuple[str, int], ...]


def width_of(layout: Layout) -> int:
    """Return the width of a layout in bits."""
    return sum(width for _, width in layout)


def place_of(layout: Layout, field: str) -> int:
    """Return the place of a field's lowest bit."""
    names = [name for name, _ in layout]
    return width_of(layout[: names.index(field)])


def pack(layout: Layout, values: dict[str, int], place: str = "", signed: Iterable[str] = ()) -> int:
    """Return the word of the given field values; fields in `signed` are in two's complement.

    Raises:
        ValueError: if a value does not fit; the message has the prefix `place`.
    """
    word = shift = 0
    for name, width in layout:
        value = values[name]
        if value:  # most are 0, which fits
            value = int(value)
            low, high = (-(1 << (width - 1)), 1 << (width - 1)) if name in signed else (0, 1 << width)
            if not low <= value < high:
                where = f"{place}.{name}" if place else name
                raise ValueError(f"{where} must be from {low} to {high - 1}, not {value!r}")
            word |= (value & ((1 << width) - 1)) << shift
        shift += width
    return word


def unpack(layout: Layout, word: int, signed: Iterable[str] = ()) -> dict[str, int]:
    """Return the value of each field of a word; fields in `signed` are in two's complement."""
    values = {}
    for name, width in layout:
        value = word & ((1 << width) - 1)
        values[name] = value - (value >> (width - 1) << width) if name in signed else value
        word >>= width
    return values

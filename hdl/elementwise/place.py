"""Where a column of elements lies, and how its words reach the lanes and leave them.

A column is one element in each of some partitions, at the same byte address, from the start of a quadrant on. A lane
wants its element right-aligned in a word of its own. Both moves are made on the words of all partitions at once: by
whole quadrants, and by whole bytes, where the neighbour's bytes that come along are above the element.
"""

from amaranth import Module, Signal, Value, unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.memory.port import ADDRESS_BITS, OnChipStorage
from neuroncore_rtl.spec.config import Config

__all__ = ["Place", "from_lanes", "quadrants", "shifted", "to_lanes"]


class Place(data.Struct):
    """address: in bytes. quadrant: of lane 0. size: log2 of the bytes of an element."""

    address: unsigned(ADDRESS_BITS)
    quadrant: unsigned(2)
    storage: OnChipStorage
    size: unsigned(2)


def quadrants(config: Config) -> int:
    """Return the quadrants of a machine, the values of `Place.quadrant` that mean something."""
    return config.partitions // config.quadrant


def shifted(m: Module, name: str, value: Value, amount: Value, unit: int, places: int, *, left: bool) -> Signal:
    """Return a signal of the width of `value`, shifted by `amount` times `unit` bits; `amount` is below `places`."""
    width = len(value)
    result = Signal(width, name=name)
    with m.Switch(amount):
        for place in range(1, places):
            with m.Case(place):
                kept = width - place * unit
                m.d.comb += result.eq(value[:kept].shift_left(place * unit) if left else value[place * unit :])
        with m.Default():
            m.d.comb += result.eq(value)
    return result


def to_lanes(m: Module, name: str, config: Config, place, words: Value) -> Signal:
    """Return a word for each lane from those of all partitions: its element right-aligned, and above it anything."""
    turned = shifted(m, f"{name}_turned", words, place.quadrant, 32 * config.quadrant, quadrants(config), left=False)
    return shifted(m, f"{name}_aligned", turned, place.address[:2], 8, 4, left=False)


def from_lanes(m: Module, name: str, config: Config, place, words: Value) -> Signal:
    """Return the words of all partitions from right-aligned elements of the lanes, zero above the element."""
    aligned = shifted(m, f"{name}_aligned", words, place.address[:2], 8, 4, left=True)
    return shifted(m, f"{name}_turned", aligned, place.quadrant, 32 * config.quadrant, quadrants(config), left=True)

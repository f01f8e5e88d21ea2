"""Location of a column of elements, and its alignment to the lanes.

A column is one element in each of several partitions, at the same byte address, starting at a quadrant. A lane needs
its element right-aligned in a word. The words of all partitions are shifted together: by whole quadrants (quarters of
the partitions), and by whole bytes. The shift by bytes also brings bytes of a neighbouring word above the element.
"""

from amaranth import Module, Signal, Value, unsigned
from amaranth.lib import data

from neuroncore_rtl.hdl.memory.port import ADDRESS_BITS, OnChipStorage
from neuroncore_rtl.spec.config import Config

__all__ = ["Place", "from_lanes", "quadrants", "shifted", "to_lanes"]


class Place(data.Struct):
    """Location of a column.

    Fields:
        address: byte address.
        quadrant: quadrant with the element for lane 0.
        storage: memory that holds the column.
        size: log2 of the element size in bytes.
    """

    address: unsigned(ADDRESS_BITS)
    quadrant: unsigned(2)
    storage: OnChipStorage
    size: unsigned(2)


def quadrants(config: Config) -> int:
    """Return the number of quadrants of a machine's partitions."""
    return config.partitions // config.quadrant


def shifted(m: Module, name: str, value: Value, amount: Value, unit: int, places: int, *, left: bool) -> Signal:
    """Return `value` shifted by `amount` * `unit` bits, in a signal of the same width.

    `amount` must be from 0 to `places` - 1.
    """
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
    """Return a word per lane, from the words of all partitions.

    The element is right-aligned; the bits above it are undefined.
    """
    turned = shifted(m, f"{name}_turned", words, place.quadrant, 32 * config.quadrant, quadrants(config), left=False)
    return shifted(m, f"{name}_aligned", turned, place.address[:2], 8, 4, left=False)


def from_lanes(m: Module, name: str, config: Config, place, words: Value) -> Signal:
    """Return a word per partition, from the lanes' right-aligned elements.

    Each element is at its byte offset in the word, with zeros around it.
    """
    aligned = shifted(m, f"{name}_aligned", words, place.address[:2], 8, 4, left=True)
    return shifted(m, f"{name}_turned", aligned, place.quadrant, 32 * config.quadrant, quadrants(config), left=True)

"""Where an instruction reads or writes: the same bytes in each of some partitions of a storage."""

from collections.abc import Callable
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from neuroncore_rtl.spec.isa.access import Storage

__all__ = ["Region"]

_Dimensions = tuple[tuple[int, int], ...]

_SHAPES = 4096
"""Of how many shapes of regions it is kept what they cover: a program has millions of regions of a few shapes."""


class Region(NamedTuple):
    """The elements of one access.

    Arguments:
        name: what the instruction calls it, such as dst or a.
        storage: where it is; HBM is one partition.
        partition, partitions: the first one, and how many.
        address: of the element of index 0.
        size: bytes of an element.
        dimensions: count and step in bytes of each dimension that has more than one element, outermost first.
        partition_step: from one partition to the next, at least 1.
    """

    name: str
    storage: Storage
    partition: int
    partitions: int
    address: int
    size: int
    dimensions: _Dimensions
    partition_step: int = 1

    @property
    def rows(self) -> range:
        """The partitions."""
        return range(self.partition, self.partition + self.partitions * self.partition_step, self.partition_step)

    @property
    def span(self) -> tuple[int, int]:
        """The first byte, and the one after the last."""
        low, high = _span(self.size, self.dimensions)
        return self.address + low, self.address + high

    @property
    def comb(self) -> tuple[int, int]:
        """The length of runs of bytes of which it certainly consists, and a number of which the ways from one run to
        all others are multiples; 0: there is one run."""
        return _comb(self.size, self.dimensions)

    @property
    def is_dense(self) -> bool:
        """Whether it certainly touches every byte of its span."""
        return _comb(self.size, self.dimensions)[1] == 0

    @property
    def is_distinct(self) -> bool:
        """Whether certainly no two of its elements are the same: each step goes beyond all that smaller ones reach."""
        return _is_distinct(self.dimensions)

    def moved(self, place: Callable[[Storage, int], int]) -> "Region":
        """Return the same at another address on chip; for `place` see :meth:`spec.isa.Instruction.moved`."""
        return self if self.storage == Storage.HBM else self._replace(address=place(self.storage, self.address))

    def coincides(self, other: "Region") -> bool:
        """Return whether the two are the same element for element, and no element is there twice."""
        return self.place == other.place and self.is_distinct

    @property
    def place(self) -> tuple:
        """All but the name."""
        return self[1:]


@lru_cache(_SHAPES)
def _span(size: int, dimensions: _Dimensions) -> tuple[int, int]:
    """Return the first byte from the address on, and the one after the last."""
    spans = [(count - 1) * step for count, step in dimensions]
    low, high = (sum(pick(span, 0) for span in spans) for pick in (min, max))
    return low, high + size


@lru_cache(_SHAPES)
def _comb(size: int, dimensions: _Dimensions) -> tuple[int, int]:
    length, pitch = size, 0
    for step, count in sorted((abs(step), count) for count, step in dimensions):
        if not pitch and step <= length:
            length += (count - 1) * step
        else:
            pitch = gcd(pitch, step)
    return length, pitch


@lru_cache(_SHAPES)
def _is_distinct(dimensions: _Dimensions) -> bool:
    reach = 0
    for step, count in sorted((abs(step), count) for count, step in dimensions):
        if step <= reach:
            return False
        reach += (count - 1) * step
    return True

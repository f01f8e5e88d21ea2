"""Regions: the bytes that an instruction accesses, the same bytes in each of several partitions."""

from collections.abc import Callable
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from neuroncore_rtl.spec.isa.access import Storage

__all__ = ["Region"]

_Dimensions = tuple[tuple[int, int], ...]

_SHAPES = 4096
"""Size of the caches; a program has millions of regions with few shapes."""


class Region(NamedTuple):
    """Region of memory: the elements of one access of an instruction.

    Arguments:
        name: operand, such as dst or a.
        storage: memory; HBM counts as one partition.
        partition, partitions: first partition, and number of partitions.
        address: byte address of the element of index 0.
        size: bytes of an element.
        dimensions: count and step in bytes of each dimension with more than one element, outermost first.
        partition_step: distance from one partition to the next.
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
        """Indices of the partitions."""
        return range(self.partition, self.partition + self.partitions * self.partition_step, self.partition_step)

    @property
    def span(self) -> tuple[int, int]:
        """Addresses of the first byte, and after the last byte, within a partition."""
        low, high = _span(self.size, self.dimensions)
        return self.address + low, self.address + high

    @property
    def comb(self) -> tuple[int, int]:
        """Length of the contiguous runs, and a common divisor of the distances between them; 0 for one run."""
        return _comb(self.size, self.dimensions)

    @property
    def is_dense(self) -> bool:
        """True if the region covers every byte of its span. False does not prove the opposite."""
        return _comb(self.size, self.dimensions)[1] == 0

    @property
    def is_distinct(self) -> bool:
        """True if no two elements coincide, since each step exceeds the reach of all smaller steps."""
        return _is_distinct(self.dimensions)

    def moved(self, place: Callable[[Storage, int], int]) -> "Region":
        """Return a copy with another address on chip."""
        return self if self.storage == Storage.HBM else self._replace(address=place(self.storage, self.address))

    def coincides(self, other: "Region") -> bool:
        """Return whether both regions are the same element for element, without a repeated element."""
        return self.place == other.place and self.is_distinct

    @property
    def place(self) -> tuple:
        """All attributes except the name."""
        return self[1:]


@lru_cache(_SHAPES)
def _span(size: int, dimensions: _Dimensions) -> tuple[int, int]:
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

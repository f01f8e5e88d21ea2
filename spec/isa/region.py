"""Where an instruction reads or writes: the same bytes in each of some partitions of a storage."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from neuroncore_rtl.spec.isa.access import Storage

__all__ = ["Region"]


@dataclass(frozen=True)
class Region:
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
    dimensions: tuple[tuple[int, int], ...]
    partition_step: int = 1

    @property
    def rows(self) -> range:
        """The partitions."""
        return range(self.partition, self.partition + self.partitions * self.partition_step, self.partition_step)

    @cached_property
    def span(self) -> tuple[int, int]:
        """The first byte, and the one after the last."""
        spans = [(count - 1) * step for count, step in self.dimensions]
        low, high = (sum(pick(span, 0) for span in spans) for pick in (min, max))
        return self.address + low, self.address + high + self.size

    @cached_property
    def comb(self) -> tuple[int, int]:
        """The length of runs of bytes of which it certainly consists, and a number of which the ways from one run to
        all others are multiples; 0: there is one run."""
        length, pitch = self.size, 0
        for step, count in sorted((abs(step), count) for count, step in self.dimensions):
            if not pitch and step <= length:
                length += (count - 1) * step
            else:
                pitch = gcd(pitch, step)
        return length, pitch

    @property
    def is_dense(self) -> bool:
        """Whether it certainly touches every byte of its span."""
        return self.comb[1] == 0

    @cached_property
    def is_distinct(self) -> bool:
        """Whether certainly no two of its elements are the same: each step goes beyond all that smaller ones reach."""
        reach = 0
        for step, count in sorted((abs(step), count) for count, step in self.dimensions):
            if step <= reach:
                return False
            reach += (count - 1) * step
        return True

    def moved(self, place: Callable[[Storage, int], int]) -> "Region":
        """Return the same at another address on chip; for `place` see :meth:`spec.isa.Instruction.moved`."""
        if self.storage == Storage.HBM:
            return self
        # A copy of what is known already, such as the span, takes less time than working it out again.
        moved = object.__new__(Region)
        known = moved.__dict__
        known.update(self.__dict__)
        known["address"] = place(self.storage, self.address)
        if "span" in known:
            known["span"] = tuple(end + known["address"] - self.address for end in self.span)
        return moved

    def coincides(self, other: "Region") -> bool:
        """Return whether the two are the same element for element, and no element is there twice."""
        return self.place == other.place and self.is_distinct

    @property
    def place(self) -> tuple:
        """All but the name."""
        return (
            self.storage, self.partition, self.partitions, self.partition_step, self.address, self.size,
            self.dimensions,
        )  # fmt: skip

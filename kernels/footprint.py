"""The bytes that an instruction reads and writes, and whether those of two instructions meet."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spec.config import Config
from spec.isa import Access, Elementwise, Pointer, Storage
from spec.isa.legality import counts_of, uses

__all__ = ["Footprint", "Region"]


@dataclass(frozen=True)
class Region:
    """The elements of one access.

    Arguments:
        name: dst, a, b, s0 or s1.
        storage: SBUF or PSUM.
        partition, partitions: the first one, and how many.
        address: of the element of index 0.
        size: bytes of an element.
        dimensions: count and step in bytes of each dimension that has more than one element, outermost first.
    """

    name: str
    storage: Storage
    partition: int
    partitions: int
    address: int
    size: int
    dimensions: tuple[tuple[int, int], ...]

    @cached_property
    def span(self) -> tuple[int, int]:
        """The first byte, and the one after the last."""
        spans = [(count - 1) * step for count, step in self.dimensions]
        low, high = (sum(pick(span, 0) for span in spans) for pick in (min, max))
        return self.address + low, self.address + high + self.size

    @cached_property
    def is_dense(self) -> bool:
        """Whether it certainly touches every byte of its span."""
        reach = self.size
        for step, count in sorted((abs(step), count) for count, step in self.dimensions):
            if step > reach:
                return False
            reach += (count - 1) * step
        return True

    @cached_property
    def is_distinct(self) -> bool:
        """Whether certainly no two of its elements are the same: each step goes beyond all that smaller ones reach."""
        reach = 0
        for step, count in sorted((abs(step), count) for count, step in self.dimensions):
            if step <= reach:
                return False
            reach += (count - 1) * step
        return True

    @cached_property
    def addresses(self) -> np.ndarray:
        """The address of every byte; some may be there more than once."""
        addresses = self.address + np.arange(self.size)
        for count, step in self.dimensions:
            addresses = (addresses + step * np.arange(count)[:, np.newaxis]).reshape(-1)
        return addresses

    def overlaps(self, other: "Region") -> bool:
        """Return whether the two have a byte in common."""
        if self.storage != other.storage:
            return False
        if self.partition + self.partitions <= other.partition or other.partition + other.partitions <= self.partition:
            return False
        low, high = max(self.span[0], other.span[0]), min(self.span[1], other.span[1])
        if low >= high or (self.is_dense and other.is_dense):
            return low < high
        touched = np.zeros(high - low, np.bool_)
        touched[self._within(low, high)] = True
        return bool(touched[other._within(low, high)].any())

    def _within(self, low: int, high: int) -> np.ndarray:
        chosen = self.addresses[(self.addresses >= low) & (self.addresses < high)]
        return chosen - low

    def coincides(self, other: "Region") -> bool:
        """Return whether the two are the same element for element, and no element is there twice."""
        places = [(r.storage, r.partition, r.address, r.size, r.dimensions) for r in (self, other)]
        return places[0] == places[1] and self.is_distinct


class Footprint:
    """What an instruction touches.

    Arguments:
        instruction: a legal one.
        config: the machine's parameters.

    Attributes:
        reads: regions of the sources and of the scalars in memory.
        writes: regions of dst, and of a reduction's result.
    """

    def __init__(self, instruction: Elementwise, config: Config):
        self._lanes = instruction.partitions
        self._values = instruction.fields(config)
        used = uses(self._values)
        tensors = [name for name in ("a", "b") if name in used]
        scalars = [name for name in ("s0", "s1") if name in used and isinstance(getattr(instruction, name), Pointer)]
        results = ["dst"] + ["b"] * ("result" in used)
        self.reads = [self._tensor(name, getattr(instruction, name)) for name in tensors]
        self.reads += [self._scalar(name, getattr(instruction, name)) for name in scalars]
        self.writes = [self._tensor(name, getattr(instruction, name)) for name in results]

    def _tensor(self, name: str, access: Access) -> Region:
        size = access.format.bits // 8
        counts = reversed(counts_of(self._values, name)[: len(access.steps)])
        dimensions = tuple((n, step * size) for n, step in zip(counts, access.steps, strict=True) if n > 1)
        return Region(name, access.storage, access.partition, self._lanes, access.address, size, dimensions)

    def _scalar(self, name: str, pointer: Pointer) -> Region:
        size = pointer.format.bits // 8
        return Region(name, Storage.SBUF, pointer.partition, self._lanes, pointer.address, size, ())

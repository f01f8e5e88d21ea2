"""Tensors as kernels see them: a name, a place, a shape, and views of it that move no data.

On chip the first dimension is that of the partitions, and only the others, the free ones, step through memory; in HBM
all of them do.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar, Self

import numpy as np
from numpy.lib.stride_tricks import as_strided

from neuroncore_rtl.kernels.program import strides
from neuroncore_rtl.spec.formats import Format
from neuroncore_rtl.spec.isa import Access, DmaTensor, Pointer, Storage

__all__ = ["HbmTensor", "Tensor"]


@dataclass(frozen=True, kw_only=True)
class _Strided:
    """Elements at a start address and a step a dimension, in elements; None: contiguous and row-major."""

    name: str
    format: Format
    address: int
    shape: tuple[int, ...]
    steps: tuple[int, ...] = None  # pyright: ignore[reportAssignmentType] (row-major, see __post_init__)

    def __post_init__(self):
        if self.steps is None:
            steps = tuple(prod(self.shape[d + 1 :]) for d in range(len(self.shape)))
            object.__setattr__(self, "steps", steps)
        if len(self.steps) != len(self.shape):
            raise ValueError(f"steps must be one for each of {len(self.shape)} dimensions, not {self.steps!r}")

    @property
    def size(self) -> int:
        """Elements, on chip in each partition."""
        return prod(self.shape)

    def reshape(self, *shape: int) -> Self:
        """Return a view of another shape, one extent of which may be -1; ValueError if no steps can express it."""
        try:
            return self._seen(*strides.reshaped_strides(self.shape, self.steps, shape))
        except ValueError:
            old = f"{self.shape!r} with steps {self.steps!r}"
            raise ValueError(f"{self.name}: {shape!r} must be another shape of the same steps, not of {old}") from None

    def permute(self, *axes: int) -> Self:
        """Return a view with the dimensions in another order; of a tensor on chip the free ones."""
        return self._seen(*strides.permuted(self.shape, self.steps, axes))

    def broadcast_to(self, *shape: int) -> Self:
        """Return a view that repeats elements, by the rules of numpy; ValueError if these do not allow it."""
        try:
            return self._seen(*strides.broadcast(self.shape, self.steps, shape))
        except ValueError:
            raise ValueError(f"{self.name}: shape must broadcast to {shape!r}, not {self.shape!r}") from None

    def bitcast(self, fmt: Format) -> Self:
        """Return a view of the same bits in a format of the same size."""
        if fmt.bits != self.format.bits:
            raise ValueError(f"{self.name}: format must have {self.format.bits} bits, not {fmt.name!r}")
        return replace(self, format=fmt)

    def _part(self, key: Iterable, **rows: int) -> Self:
        """Return a part; rows: which partitions it has, if there are any."""
        try:
            start, shape, steps = strides.part(self.shape, self.steps, key)
        except (IndexError, TypeError) as wrong:
            raise type(wrong)(f"{self.name}: {wrong}") from None
        return self._seen(shape, steps, address=self.address + start * self.format.bits // 8, **rows)

    def _seen(self, shape: tuple[int, ...], steps: tuple[int, ...], **others: int) -> Self:
        # Kernels make views of every tile: `dataclasses.replace` takes several times as long.
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__, shape=shape, steps=steps, **others)
        return view


@dataclass(frozen=True, kw_only=True)
class Tensor(_Strided):
    """A tensor in SBUF or PSUM, or a view of one.

    Arguments:
        name: for messages.
        format: of an element.
        address: byte address, in every partition, of the element of index (0, ..., 0).
        partitions: how many it has.
        shape: of the free dimensions, outermost first.
        partition: the first one.
        storage: SBUF or PSUM.
        steps: from one index of a free dimension to the next, in elements; None: contiguous and row-major.
    """

    partitions: int
    partition: int = 0
    storage: Storage = Storage.SBUF

    def __getitem__(self, key) -> Self:
        """Return a part: a slice of consecutive partitions, then an index, slice, None or ... for the free dimensions.

        Raises:
            TypeError: if the partitions are not a slice, or an index is none of these.
            ValueError: if the slice of partitions has a step, or is empty.
            IndexError: if an index is out of range.
        """
        rows, *free = key if isinstance(key, tuple) else (key,)
        if rows is Ellipsis:
            rows, free = slice(None), [Ellipsis, *free]
        if not isinstance(rows, slice):
            raise TypeError(f"{self.name}: partitions must be a slice, not {rows!r}")
        first, end, step = rows.indices(self.partitions)
        if step != 1 or end <= first:
            raise ValueError(f"{self.name}: partitions must be consecutive and at least one, not {rows!r}")
        return self._part(free, partition=self.partition + first, partitions=end - first)

    def access(self) -> Access:
        """Return how an instruction names it."""
        return Access(
            format=self.format, address=self.address, partition=self.partition, storage=self.storage, steps=self.steps
        )

    def pointer(self) -> Pointer:
        """Return it as a scalar for each partition; ValueError unless it is one element, in SBUF."""
        if self.size != 1 or self.storage != Storage.SBUF:
            place = f"{list(self.shape)} in {Storage(self.storage).name}"
            raise ValueError(f"{self.name}: a scalar must be one element a partition in SBUF, not {place}")
        return Pointer(format=self.format, address=self.address, partition=self.partition)

    def copied(self) -> tuple[tuple[int, ...], DmaTensor]:
        """Return the shape that a copy of it has, the partitions first, and how the copy names it."""
        place = DmaTensor(
            format=self.format,
            address=self.address,
            storage=self.storage,
            steps=(1, *self.steps),
            partition=self.partition,
            axis=0,
        )
        return (self.partitions, *self.shape), place


@dataclass(frozen=True, kw_only=True)
class HbmTensor(_Strided):
    """A tensor in HBM, or a view of one.

    Arguments:
        name: for messages.
        format: of an element.
        address: of the element of index (0, ..., 0), in bytes.
        shape: outermost dimension first.
        steps: from one index of a dimension to the next, in elements; None: contiguous and row-major.
    """

    storage: ClassVar[Storage] = Storage.HBM

    def __getitem__(self, key) -> Self:
        """Return a part, by integers, slices, None and ..., as numpy does.

        Raises:
            TypeError: if an index is none of these.
            IndexError: if an index is out of range.
        """
        return self._part(key if isinstance(key, tuple) else (key,))

    def copied(self) -> tuple[tuple[int, ...], DmaTensor]:
        """Return the shape that a copy of it has, and how the copy names it."""
        return self.shape, DmaTensor(format=self.format, address=self.address, storage=self.storage, steps=self.steps)

    def elements(self, memory: np.ndarray) -> np.ndarray:
        """Return its codes, unsigned integers, as a view of HBM's bytes, uint8 [bytes] from address 0.

        Raises:
            ValueError: if it reaches beyond them.
        """
        spans = [(count - 1) * step for count, step in zip(self.shape, self.steps, strict=True)]
        low, high = (sum(pick(span, 0) for span in spans) for pick in (min, max))
        first, end = (self.address + step * self.format.bits // 8 for step in (low, high + 1))
        if self.size and not 0 <= first <= end <= len(memory):
            raise ValueError(f"{self.name}: it must lie within HBM's {len(memory):,} bytes, not from {first:#x} on")
        words = memory[self.address :][: self.format.bits // 8].view(f"<u{self.format.bits // 8}")
        return as_strided(words, self.shape, [step * self.format.bits // 8 for step in self.steps])

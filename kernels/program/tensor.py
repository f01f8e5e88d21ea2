"""Tensors: names, addresses and shapes, and views that move no data.

On chip the first dimension is the partitions; only the others, the free dimensions, have steps.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar, Self

import numpy as np
from numpy.lib.stride_tricks import as_strided

from neuroncore_rtl.kernels import strides
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.spec.formats import Format, format_named
from neuroncore_rtl.spec.isa import Access, DmaTensor, Pointer, Storage

__all__ = ["HbmTensor", "Tensor"]


@dataclass(frozen=True, kw_only=True)
class _Strided:
    """Base of tensors: elements from a start address, with a step in elements per dimension; None for row-major."""

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
        return prod(self.shape)

    @located
    def reshape(self, *shape: int) -> Self:
        """Return a view of another shape, with at most one extent of -1; ValueError if no steps express it."""
        try:
            return self._view(*strides.reshaped_strides(self.shape, self.steps, shape))
        except ValueError:
            old = f"{self.shape!r} with steps {self.steps!r}"
            raise ValueError(f"{self.name}: a view of shape {shape!r} is not possible for {old}") from None

    @located
    def permute(self, *axes: int) -> Self:
        """Return a view with the dimensions in another order; ValueError if `axes` is no permutation of them."""
        try:
            return self._view(*strides.permute(self.shape, self.steps, axes))
        except ValueError:
            rule = f"axes must be a permutation of the {len(self.shape)} dimensions"
            raise ValueError(f"{self.name}: {rule}, not {axes!r}") from None

    @located
    def broadcast_to(self, *shape: int) -> Self:
        """Return a view that repeats elements by numpy's rules; ValueError if the shapes do not broadcast."""
        try:
            return self._view(*strides.broadcast(self.shape, self.steps, shape))
        except ValueError:
            raise ValueError(f"{self.name}: shape must broadcast to {shape!r}, not {self.shape!r}") from None

    @located
    def bitcast(self, fmt: Format | str) -> Self:
        """Return a view of the same bits in a format of the same size."""
        fmt = format_named(fmt) if isinstance(fmt, str) else fmt
        if fmt.bits != self.format.bits:
            raise ValueError(f"{self.name}: format must have {self.format.bits} bits, not {fmt.name!r}")
        return replace(self, format=fmt)

    def _part(self, key: Iterable, **rows: int) -> Self:
        try:
            start, shape, steps = strides.part(self.shape, self.steps, key)
        except (IndexError, TypeError) as wrong:
            raise type(wrong)(f"{self.name}: {wrong}") from None
        return self._view(shape, steps, address=self.address + start * self.format.bits // 8, **rows)

    def _view(self, shape: tuple[int, ...], steps: tuple[int, ...], **others: int) -> Self:
        # `dataclasses.replace` takes several times as long, and kernels create views of every tile.
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__, shape=shape, steps=steps, **others)
        return view


@dataclass(frozen=True, kw_only=True)
class Tensor(_Strided):
    """Tensor in SBUF or PSUM, or a view of one.

    `address` is the byte address of the element of index (0, ..., 0) in every partition, `partition` the index of the
    first partition. The shape has the free dimensions, outermost first. `steps` are the distances in elements from one
    index to the next, by default of contiguous elements in row-major order.
    """

    partitions: int
    partition: int = 0
    storage: Storage = Storage.SBUF

    def __getitem__(self, key) -> Self:
        """Return a part: a slice of consecutive partitions, then an index, slice, None or ... for the free dimensions.

        Raises ValueError if the slice of partitions has a step or is empty; else the errors of numpy.
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
        """Return this tensor as the operand of a tensor, vector or scalar instruction."""
        return Access(
            format=self.format, address=self.address, partition=self.partition, storage=self.storage, steps=self.steps
        )

    def pointer(self) -> Pointer:
        """Return this tensor as an operand with one scalar per partition; ValueError unless one element in SBUF."""
        if self.size != 1 or self.storage != Storage.SBUF:
            place = f"{list(self.shape)} in {Storage(self.storage).name}"
            raise ValueError(f"{self.name}: a scalar must be one element per partition in SBUF, not {place}")
        return Pointer(format=self.format, address=self.address, partition=self.partition)

    def dma_operand(self) -> tuple[tuple[int, ...], DmaTensor]:
        """Return the shape, with the number of partitions first, and this tensor as the operand of a copy."""
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
    """Tensor in HBM, or a view of one; the arguments have the meaning of those of `Tensor`."""

    storage: ClassVar[Storage] = Storage.HBM

    def __getitem__(self, key) -> Self:
        """Return a part by integers, slices, None and ..., as numpy does, with the same errors."""
        return self._part(key if isinstance(key, tuple) else (key,))

    def dma_operand(self) -> tuple[tuple[int, ...], DmaTensor]:
        """Return the shape, and this tensor as the operand of a copy."""
        return self.shape, DmaTensor(format=self.format, address=self.address, storage=self.storage, steps=self.steps)

    def elements(self, memory: np.ndarray) -> np.ndarray:
        """Return the codes, unsigned integers, as a view of HBM, uint8 [bytes]; ValueError if the tensor exceeds it."""
        spans = [(count - 1) * step for count, step in zip(self.shape, self.steps, strict=True)]
        low, high = (sum(pick(span, 0) for span in spans) for pick in (min, max))
        first, end = (self.address + step * self.format.bits // 8 for step in (low, high + 1))
        if self.size and not 0 <= first <= end <= len(memory):
            raise ValueError(
                f"{self.name}: the tensor must lie within the {len(memory):,} bytes of HBM, not start at {first:#x}"
            )
        words = memory[self.address :][: self.format.bits // 8].view(f"<u{self.format.bits // 8}")
        return as_strided(words, self.shape, [step * self.format.bits // 8 for step in self.steps])

"""Tensors in SBUF and PSUM as kernels see them: a name, a place, a shape, and views of it that move no data."""

from dataclasses import dataclass, replace
from math import prod
from numbers import Integral

import numpy as np
from numpy.lib.stride_tricks import as_strided

from spec.formats import Format
from spec.isa import Access, Pointer, Storage

__all__ = ["Tensor"]


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """A tensor, or a view of one: the first dimension is that of the partitions, all others lie within a partition.

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

    name: str
    format: Format
    address: int
    partitions: int
    shape: tuple[int, ...]
    partition: int = 0
    storage: Storage = Storage.SBUF
    steps: tuple[int, ...] | None = None

    def __post_init__(self):
        if self.steps is None:
            steps = tuple(prod(self.shape[d + 1 :]) for d in range(len(self.shape)))
            object.__setattr__(self, "steps", steps)
        if len(self.steps) != len(self.shape):
            raise ValueError(f"steps must be one for each of {len(self.shape)} dimensions, not {self.steps!r}")

    @property
    def size(self) -> int:
        """Elements in each partition."""
        return prod(self.shape)

    def __getitem__(self, key) -> "Tensor":
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
        for index in free:
            if not (index is None or index is Ellipsis or isinstance(index, slice | Integral)):
                raise TypeError(f"{self.name}: an index must be an integer, a slice, None or ..., not {index!r}")
        part = replace(self, partition=self.partition + first, partitions=end - first)
        rest = () if Ellipsis in free else (Ellipsis,)  # with it numpy gives a view of a single element, too
        return part._view(lambda elements: elements[(*free, *rest)])

    def reshape(self, *shape: int) -> "Tensor":
        """Return a view with other free dimensions, one of which may be -1; ValueError if no steps can express it."""
        try:
            return self._view(lambda elements: elements.reshape(shape, copy=False))
        except ValueError:
            old = f"{self.shape!r} with steps {self.steps!r}"
            raise ValueError(f"{self.name}: {shape!r} must be another shape of the same steps, not of {old}") from None

    def permute(self, *axes: int) -> "Tensor":
        """Return a view with the free dimensions in another order."""
        return self._view(lambda elements: elements.transpose(axes))

    def broadcast_to(self, *shape: int) -> "Tensor":
        """Return a view that repeats elements, by the rules of numpy; ValueError if these do not allow it."""
        try:
            return self._view(lambda elements: np.broadcast_to(elements, shape))
        except ValueError:
            raise ValueError(f"{self.name}: shape must broadcast to {shape!r}, not {self.shape!r}") from None

    def bitcast(self, fmt: Format) -> "Tensor":
        """Return a view of the same bits in a format of the same size."""
        if fmt.bits != self.format.bits:
            raise ValueError(f"{self.name}: format must have {self.format.bits} bits, not {fmt.name!r}")
        return replace(self, format=fmt)

    def access(self) -> Access:
        """Return how an instruction names it."""
        return Access(
            format=self.format,
            address=self.address,
            partition=self.partition,
            storage=self.storage,
            steps=self.steps,
        )

    def pointer(self) -> Pointer:
        """Return it as a scalar for each partition; ValueError unless it is one element, in SBUF."""
        if self.size != 1 or self.storage != Storage.SBUF:
            place = f"{list(self.shape)} in {Storage(self.storage).name}"
            raise ValueError(f"{self.name}: a scalar must be one element a partition in SBUF, not {place}")
        return Pointer(format=self.format, address=self.address, partition=self.partition)

    def _view(self, transform) -> "Tensor":
        """Apply to the free dimensions what numpy would do to an array; it works out shape, steps and offset.

        Nothing is read: the array has one byte an element and no memory of its own behind most of them.
        """
        elements = as_strided(np.zeros(1, np.int8), self.shape, self.steps)
        view = transform(elements)
        offset = _start(view) - _start(elements)
        return replace(
            self,
            address=self.address + offset * self.format.bits // 8,
            shape=tuple(int(n) for n in view.shape),
            steps=tuple(int(step) for step in view.strides),
        )


def _start(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]

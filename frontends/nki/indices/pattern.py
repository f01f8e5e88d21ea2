"""Access patterns: positions of a view's elements as affine functions of their index.

An element's position is an element, a partition and a block index, each an affine function. In addition one index may
be a number in SBUF: it moves each element by a distance that is known only at run time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Generic, Self, TypeVar

import numpy as np

from neuroncore_rtl.frontends.nki.indices.affine import Affine, Mask, broadcast_shapes
from neuroncore_rtl.frontends.nki.indices.dtypes import DType
from neuroncore_rtl.frontends.nki.indices.numbers import Numbers
from neuroncore_rtl.frontends.nki.indices.storage import Allocation, Memory

__all__ = ["Pattern", "PatternCut", "Viewed"]

Viewed = TypeVar("Viewed", bound="Pattern")


@dataclass(frozen=True)
class PatternCut(Generic[Viewed]):
    """Result of masking, as in `tile[i, j][i < n][j < m]`: `part` is the rectangle of `whole` where `mask` holds."""

    whole: Viewed
    mask: Mask
    part: tuple[slice, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape before masking, to which further masks refer, too."""
        return self.whole.shape

    @property
    def is_empty(self) -> bool:
        return any(part.stop <= part.start for part in self.part)


@dataclass(frozen=True, eq=False, kw_only=True)
class Pattern:
    """Access pattern of a tensor or a part of it.

    `element`, which counts from 0 in each HBM tensor and in each block, `partition` and `block` are the position by
    index. On chip, `lanes` is the dimension along partitions, which may repeat one partition. `bounds` are index
    expressions with their limits, checked after masks are applied. `numbers` is the index in memory. `cut` is the view
    before masking, if masking was the last operation.
    """

    allocation: Allocation
    dtype: DType
    shape: tuple[int, ...]
    element: Affine
    partition: Affine
    block: Affine
    lanes: int | None = None
    bounds: tuple[tuple[Affine, int], ...] = ()
    numbers: "Numbers[Self] | None" = None
    cut: "PatternCut[Self] | None" = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def name(self) -> str:
        return self.allocation.name

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def buffer(self) -> Memory:
        return self.allocation.memory

    @property
    def offset(self) -> int:
        return self.element.start

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements between consecutive indices of each dimension."""
        return self.element.steps

    def is_indirect(self) -> bool:
        return self.numbers is not None

    def check_bounds(self) -> None:
        if not self.size:
            raise ValueError(f"{self.name}: an operand must have elements, not shape {self.shape}")
        for axis, limit in self.bounds:
            if not limit:
                raise ValueError(f"{self.name}: an operand must have elements, but a mask excludes all of them")
            least, most = axis.range
            if least < 0 or most >= limit:
                which = str(least) if least == most else f"from {least} to {most}"
                raise ValueError(f"{self.name}: an index must be between 0 and {limit - 1}, not {which}")

    def spans_blocks(self) -> bool:
        return any(step and n > 1 for step, n in zip(self.block.steps, self.shape, strict=True))

    def repeats_partition(self) -> bool:
        """Return whether several indices of the partition dimension are the same partition."""
        lanes = 0 if self.lanes is None else self.lanes
        return (
            bool(self.allocation.memory.on_chip and self.ndim)
            and self.shape[lanes] > 1
            and not (self.partition.steps[lanes] or (self.lanes is None and self.element.steps[lanes]))
        )

    def is_whole(self) -> bool:
        """Return whether the view has every element of its tensor once."""
        axes = zip(self.shape, self.element.steps, self.partition.steps, self.block.steps, strict=True)
        repeats = any(n > 1 and not any(steps) for n, *steps in axes)
        return not repeats and self.numbers is None and self.size == prod(self.allocation.shape)

    def places(self) -> tuple[slice, slice | np.ndarray]:
        """Return array indices of the view's partitions and elements in a block."""
        (first, last), (begin, end) = self.partition.range, self.element.range
        partitions, elements = slice(first, last + 1), slice(begin, end + 1)
        moving = [(n, step) for n, step in zip(self.shape, self.element.steps, strict=True) if n > 1 and step]
        if prod(n for n, _ in moving) == end + 1 - begin:
            return partitions, elements
        found = self.element.start + sum(
            (np.arange(n).reshape(-1, *(1,) * d) * step for d, (n, step) in enumerate(reversed(moving))),
            np.zeros((), int),
        )
        return partitions, np.unique(found)

    def one_block(self) -> int:
        if self.spans_blocks():
            rule = f"an operand must be in one block, selected by integers, not {self.shape} over several blocks"
            raise ValueError(f"{self.name}: {rule}")
        return self.block.start

    def step_along(self, dim: int) -> int:
        if not -self.ndim <= dim < self.ndim:
            raise ValueError(f"{self.name}: indirect_dim must be from {-self.ndim} to {self.ndim - 1}, not {dim}")
        step = self.element.steps[dim]
        if dim == self.lanes or self.block.steps[dim] or step < 1:
            raise ValueError(f"{self.name}: an index in memory must be along elements, not along dimension {dim}")
        return step

    def _mapped(
        self, shape: tuple[int, ...], lanes: int | None, numbers: "Numbers[Self] | None",
        moved: Callable[[Affine], Affine], new: Sequence[tuple[Affine, int]] = (),
    ) -> Self:  # fmt: skip
        """Return the view with another shape; `moved` maps an index expression to this shape.

        `new` are additional `bounds`, pairs of an index expression and its exclusive limit.
        """
        axes = {name: moved(getattr(self, name)) for name in ("element", "partition", "block")}
        bounds = (*((moved(axis), limit) for axis, limit in self.bounds), *new)
        return replace(self, shape=shape, lanes=lanes, bounds=bounds, numbers=numbers, cut=None, **axes)

    def indexed(
        self, shape: tuple[int, ...], indices: Sequence[Affine], new: Sequence[tuple[Affine, int]] = (),
        numbers: "Numbers[Self] | None" = None,
    ) -> Self:  # fmt: skip
        """Return the view of the elements that one index expression per dimension selects; `new` extends `bounds`."""

        def composed(axis: Affine) -> Affine:
            own = list(zip(axis.steps, indices, strict=True))
            steps = (sum(step * index.steps[d] for step, index in own) for d in range(len(shape)))
            return Affine(shape, tuple(steps), axis.start + sum(step * index.start for step, index in own))

        lanes = None
        if self.lanes is not None:
            over = [d for d, step in enumerate(indices[self.lanes].steps) if step]
            if len(over) > 1:
                raise ValueError(f"{self.name}: partitions must be along one dimension of {shape}, not {len(over)}")
            lanes = over[0] if over else None
        return self._mapped(
            shape, lanes, self.numbers.indexed(shape, indices) if self.numbers else numbers, composed, new
        )

    def picked(self, order: Sequence[int | None]) -> Self:
        shape = tuple(1 if d is None else self.shape[d] for d in order)
        lanes = None
        if self.lanes is not None:
            if self.lanes in order:
                lanes = order.index(self.lanes)
            elif self.shape[self.lanes] == 1 and order and order[0] is None:
                lanes = 0

        def ordered(axis: Affine) -> Affine:
            return Affine(shape, tuple(0 if d is None else axis.steps[d] for d in order), axis.start)

        return self._mapped(shape, lanes, self.numbers and self.numbers.picked(order), ordered)

    def repeated(self, shape: tuple[int, ...]) -> Self:
        if broadcast_shapes(self.shape, shape) != shape:
            raise ValueError(f"{self.name}: shape must broadcast to {shape}, not {self.shape}")
        more = len(shape) - self.ndim
        repeats = [n == 1 and shape[more + d] != 1 for d, n in enumerate(self.shape)]

        def wide(axis: Affine) -> Affine:
            own = (0 if again else step for step, again in zip(axis.steps, repeats, strict=True))
            return Affine(shape, ((0,) * more + tuple(own)), axis.start)

        lanes = None if self.lanes is None else more + self.lanes
        return self._mapped(shape, lanes, self.numbers and self.numbers.repeated(shape), wide)

    def fitted(self, shape: tuple[int, ...]) -> Self:
        """Return the view in another shape, by dimensions of one element or broadcasting; ValueError if neither fits.

        On chip, if the partitions are first, missing dimensions are appended; one element per partition is repeated.
        """
        if self.shape == shape:
            return self
        if [n for n in self.shape if n != 1] == [n for n in shape if n != 1]:
            own = iter([d for d, n in enumerate(self.shape) if n != 1])
            return self.picked([next(own) if n != 1 else None for n in shape])
        if self.lanes == 0 and self.shape[0] == self.size == shape[0]:
            return self.picked([0, *[None] * (len(shape) - 1)]).repeated(shape)
        missing = len(shape) - self.ndim
        if self.lanes == 0 and missing > 0 and all(n in (1, m) for n, m in zip(self.shape, shape, strict=False)):
            return self.picked([*range(self.ndim), *(None,) * missing]).repeated(shape)
        return self.repeated(shape)

    def single(self) -> Self:
        if self.size != 1:
            raise ValueError(f"{self.name}: an index in memory must be one element, not {self.shape}")
        return self.indexed((), [Affine((), ())] * self.ndim)

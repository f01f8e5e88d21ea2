"""Tensors as kernels hold them, and views of them that move no data.

An index of integers, slices or index expressions, a reshape or a broadcast gives another access pattern of the same
tensor.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from numbers import Integral
from typing import Any, Self

import numpy as np

from neuroncore_rtl.frontends.nki.indices import layouts
from neuroncore_rtl.frontends.nki.indices.affine import NOWHERE, Affine, Mask
from neuroncore_rtl.frontends.nki.indices.dtypes import dtype_of
from neuroncore_rtl.frontends.nki.indices.keys import indices_of
from neuroncore_rtl.frontends.nki.indices.lines import from_kernel
from neuroncore_rtl.frontends.nki.indices.numbers import Moved
from neuroncore_rtl.frontends.nki.indices.pattern import Pattern, PatternCut
from neuroncore_rtl.frontends.nki.indices.registers import VirtualRegister

__all__ = ["View"]


class View(Pattern):
    """Part of a tensor, or all of it, with the methods that kernels call."""

    # -- indices and masks -----------------------------------------------------------------------------------------

    @from_kernel
    def __getitem__(self, key) -> Self:
        """Return a part, by integers, slices, ranges, None and ..., or by index expressions that broadcast to its
        shape; by a mask, or a condition that Python has decided, where that holds: if that is nowhere, what a call may
        only name together with a mask of its own.
        """
        if isinstance(key, bool | np.bool_):
            return self if key else self._cut_by(NOWHERE)
        if isinstance(key, Mask):
            return self._cut_by(key)
        parts: tuple[Any, ...] = key if isinstance(key, tuple) else (key,)
        parts = tuple(part.word.single() if isinstance(part, VirtualRegister) else part for part in parts)
        parts = tuple(slice(part.start, part.stop, part.step) if isinstance(part, range) else part for part in parts)
        if not any(isinstance(part, Affine | Moved) for part in parts):
            # One number is one index, whatever the shape of the tile that it is in.
            parts = tuple(part.single() if isinstance(part, View) and part.size == 1 else part for part in parts)
        # Of a tile of partitions alone each has one element, which kernels of the first dialect name, too.
        column = (self.ndim, self.lanes, len(parts)) == (1, 0, 2) and not any(part is None for part in parts)
        whole = self.picked([0, None]) if column else self
        return whole.indexed(*indices_of(whole, parts))

    def __iter__(self) -> Iterator[Self]:
        """Yield the parts of the first dimension's indices."""
        return (self[index] for index in range(self.shape[0]))

    def masked(self, mask: Mask | None, like: tuple[int, ...] | None = None) -> Self | None:
        """Return the part where a mask over the shape `like`, its own unless told, holds; None if that is nothing.

        Dimensions that differ from those of `like`, such as those of one element, stay whole.
        """
        if mask is None:
            return self
        like = self.shape if like is None else like
        parts = mask.rectangle(like)
        if any(part.stop <= part.start for part in parts):
            return None
        own = [slice(0, n) for n in self.shape]
        for d in range(min(len(like), self.ndim)):
            if self.shape[d] == like[d]:
                own[d] = parts[d]
        return self.indexed(*indices_of(self, tuple(own)))

    def _cut_by(self, mask: Mask) -> Self:
        """Return the part where a mask and those before it hold; if that is nothing, with a bound that none keeps."""
        whole, mask = (self, mask) if self.cut is None else (self.cut.whole, self.cut.mask & mask)
        part = whole.masked(mask)
        if part is None:
            nothing = Affine(whole.shape, (0,) * whole.ndim, -1), 0
            part = replace(whole, bounds=(*whole.bounds, nothing))
        return replace(part, cut=PatternCut(whole, mask, mask.rectangle(whole.shape)))

    def unrepeated(self) -> Self:
        """Return it with one partition, where it repeats one."""
        return self[tuple(slice(0, 1) if d == self.lanes else slice(None) for d in range(self.ndim))]

    # -- dimensions ------------------------------------------------------------------------------------------------

    @from_kernel
    def reshape(self, *sizes, shape=None) -> Self:
        """Return a view of another shape; on chip the partitions stay as they are."""
        shape = sizes if shape is None else tuple(shape)
        shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], Integral) else tuple(shape)
        return layouts.reshaped(self, tuple(int(n) for n in shape))

    @from_kernel
    def broadcast_to(self, *shape) -> Self:
        """Return a view that repeats elements, by the rules of numpy."""
        shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], Integral) else shape
        return self.repeated(tuple(int(n) for n in shape))

    @from_kernel
    def broadcast(self, dim: int, size: int) -> Self:
        """Return a view that repeats a dimension of one element."""
        return self.repeated(tuple(size if d == dim % self.ndim else n for d, n in enumerate(self.shape)))

    @from_kernel
    def permute(self, *dims) -> Self:
        """Return a view with the dimensions in another order; on chip the partitions stay first."""
        order = tuple(dims[0]) if len(dims) == 1 and not isinstance(dims[0], Integral) else dims
        return self.permuted(tuple(order))

    @from_kernel
    def expand_dim(self, dim: int) -> Self:
        """Return a view with another dimension, of one element."""
        return self[(slice(None),) * (dim % (self.ndim + 1)) + (None,)]

    @from_kernel
    def squeeze_dim(self, dim: int) -> Self:
        """Return a view without a dimension of one element."""
        if self.shape[dim] != 1:
            raise ValueError(f"{self.name}: a dimension that goes must have one element, not {self.shape[dim]}")
        return self[(slice(None),) * (dim % self.ndim) + (0,)]

    @from_kernel
    def slice(self, dim: int, start: int, end: int, step: int = 1) -> Self:
        """Return the part from `start` to before `end` of a dimension."""
        return self[(slice(None),) * (dim % self.ndim) + (slice(start, end, step),)]

    @from_kernel
    def select(self, dim: int, index: "int | View | VirtualRegister") -> Self:
        """Return the part of one index of a dimension, a number, a register, or a tensor of one element in SBUF."""
        index = index.single() if isinstance(index, View) else index
        return self[(slice(None),) * (dim % self.ndim) + (index,)]

    @from_kernel
    def vector_select(self, dim: int, vector_offset: "View") -> Self:
        """Return the rows of a tensor in HBM that numbers in SBUF name, one in each partition."""
        if dim % self.ndim or self.lanes is not None:
            raise ValueError(f"{self.name}: rows must be of the first dimension of a tensor in HBM, not of {dim}")
        first = vector_offset.fitted((vector_offset.size,))
        return self[(first, *(slice(None),) * (self.ndim - 1))]

    @from_kernel
    def reshape_dim(self, dim: int, shape: tuple[int, ...]) -> Self:
        """Return a view with a dimension cut into several."""
        return self.reshape((*self.shape[:dim], *shape, *self.shape[dim + 1 :]))

    @from_kernel
    def flatten_dims(self, start_dim: int, end_dim: int) -> Self:
        """Return a view with the dimensions from one to another, that included, as one."""
        last = end_dim % self.ndim + 1
        return self.reshape((*self.shape[:start_dim], prod(self.shape[start_dim:last]), *self.shape[last:]))

    def permuted(self, order: tuple[int, ...]) -> Self:
        """Return it with the dimensions in another order."""
        if sorted(order) != list(range(self.ndim)):
            raise ValueError(f"{self.name}: order must be of the {self.ndim} dimensions of {self.shape}, not {order}")
        return self.picked(order)

    # -- memory ----------------------------------------------------------------------------------------------------

    @from_kernel
    def view(self, dtype) -> Self:
        """Return the same bits in another type; of fewer bytes, in the last dimension, as more elements."""
        return layouts.retyped(self, dtype_of(dtype))

    @from_kernel
    def ap(
        self, pattern, offset: int | None = None, scalar_offset=None, vector_offset=None, indirect_dim: int = 0,
        dtype=None, **options,
    ) -> Self:  # fmt: skip
        """Return the access pattern of pairs (step, count), outermost first; on chip the first is the partitions', in
        elements of a partition: a tensor's width for the next partition, 0 for the same one. All of it counts elements
        of `dtype`, if that is given, in which the same bits are read.

        A number in SBUF, or in a register, moves all of it along a dimension of the tensor, or one a partition moves
        each of the pattern's outermost rows, whose own step means nothing then.
        """
        base = self if dtype is None or dtype_of(dtype) == self.dtype else layouts.cast(self, dtype_of(dtype))
        return layouts.accessed(base, pattern, offset, scalar_offset, vector_offset, indirect_dim, options)

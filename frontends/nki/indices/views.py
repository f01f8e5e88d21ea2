"""Views of tensors with the methods that kernels call. No view moves data: each is another access pattern."""

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from numbers import Integral
from typing import Any, Self

import numpy as np

from neuroncore_rtl.frontends.nki.indices import layouts
from neuroncore_rtl.frontends.nki.indices.affine import NOWHERE, Affine, Mask
from neuroncore_rtl.frontends.nki.indices.dtypes import dtype_of
from neuroncore_rtl.frontends.nki.indices.given import as_integer, dimension
from neuroncore_rtl.frontends.nki.indices.keys import indices_of
from neuroncore_rtl.frontends.nki.indices.lines import from_kernel
from neuroncore_rtl.frontends.nki.indices.numbers import Moved
from neuroncore_rtl.frontends.nki.indices.pattern import Pattern, PatternCut
from neuroncore_rtl.frontends.nki.indices.registers import VirtualRegister

__all__ = ["View"]


class View(Pattern):
    """A view with the methods that kernels call."""

    @from_kernel
    def __getitem__(self, key) -> Self:
        """Return a part.

        The key is a mask or a bool, or has integers, slices, ranges, None, ..., and index expressions that broadcast to
        the part's shape. A part where the mask holds nowhere may only be used together with a mask in the same call.
        """
        if isinstance(key, bool | np.bool_):
            return self if key else self._cut_by(NOWHERE)
        if isinstance(key, Mask):
            return self._cut_by(key)
        parts: tuple[Any, ...] = key if isinstance(key, tuple) else (key,)
        parts = tuple(part.word.single() if isinstance(part, VirtualRegister) else part for part in parts)
        parts = tuple(slice(part.start, part.stop, part.step) if isinstance(part, range) else part for part in parts)
        if not any(isinstance(part, Affine | Moved) for part in parts):
            # A tile of one element is a single index, whatever its shape.
            parts = tuple(part.single() if isinstance(part, View) and part.size == 1 else part for part in parts)
        # Kernels of the first dialect also index the single element per partition of a one-dimensional tile.
        column = (self.ndim, self.lanes, len(parts)) == (1, 0, 2) and not any(part is None for part in parts)
        whole = self.picked([0, None]) if column else self
        return whole.indexed(*indices_of(whole, parts))

    def __iter__(self) -> Iterator[Self]:
        return (self[index] for index in range(self.shape[0]))

    def masked(self, mask: Mask | None, like: tuple[int, ...] | None = None, first: int | None = None) -> Self | None:
        """Return the part where a mask over the shape `like` holds; None if it holds nowhere.

        `like` defaults to the view's shape; dimensions that differ from it, and those after the `first` ones, stay
        whole.
        """
        if mask is None:
            return self
        like = self.shape if like is None else like
        parts = mask.rectangle(like)
        if any(part.stop <= part.start for part in parts):
            return None
        own = [slice(0, n) for n in self.shape]
        for d in range(min(len(like), self.ndim))[:first]:
            if self.shape[d] == like[d]:
                own[d] = parts[d]
        return self.indexed(*indices_of(self, tuple(own)))

    def _cut_by(self, mask: Mask) -> Self:
        """Return the part of the view where this mask and earlier masks hold; using an empty part raises ValueError."""
        whole, mask = (self, mask) if self.cut is None else (self.cut.whole, self.cut.mask & mask)
        part = whole.masked(mask)
        if part is None:
            nothing = Affine(whole.shape, (0,) * whole.ndim, -1), 0
            part = replace(whole, bounds=(*whole.bounds, nothing))
        return replace(part, cut=PatternCut(whole, mask, mask.rectangle(whole.shape)))

    def as_tile(self) -> Self:
        """Return the view: this machine does not tell tiles from tensors."""
        return self

    def unrepeated(self) -> Self:
        """Return a view that repeats one partition, without the repetitions: its first index along partitions."""
        return self[tuple(slice(0, 1) if d == self.lanes else slice(None) for d in range(self.ndim))]

    @from_kernel
    def reshape(self, *sizes, shape=None) -> Self:
        shape = sizes if shape is None else tuple(shape)
        shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], Integral) else tuple(shape)
        return layouts.reshaped(self, tuple(as_integer("a dimension of shape", n) for n in shape))

    @from_kernel
    def broadcast_to(self, *shape) -> Self:
        shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], Integral) else shape
        return self.repeated(tuple(as_integer("a dimension of shape", n) for n in shape))

    @from_kernel
    def broadcast(self, dim: int, size: int) -> Self:
        dim = dimension(dim, self.ndim)
        return self.repeated((*self.shape[:dim], size, *self.shape[dim + 1 :]))

    @from_kernel
    def permute(self, *dims) -> Self:
        order = tuple(dims[0]) if len(dims) == 1 and not isinstance(dims[0], Integral) else dims
        return self.permuted(tuple(dimension(dim, self.ndim) for dim in order))

    @from_kernel
    def expand_dim(self, dim: int) -> Self:
        return self[(slice(None),) * dimension(dim, self.ndim + 1) + (None,)]

    @from_kernel
    def expand_dims(self, axis: int) -> Self:
        return self.expand_dim(axis)

    @from_kernel
    def assert_shape(self, shape) -> Self:
        if self.shape != tuple(shape):
            raise ValueError(f"{self.name}: shape must be {tuple(shape)}, not {self.shape}")
        return self

    @from_kernel
    def squeeze_dim(self, dim: int) -> Self:
        dim = dimension(dim, self.ndim)
        if self.shape[dim] != 1:
            raise ValueError(f"{self.name}: a removed dimension must have one element, not {self.shape[dim]}")
        return self[(slice(None),) * dim + (0,)]

    @from_kernel
    def slice(self, dim: int, start: int, end: int, step: int = 1) -> Self:
        return self[(slice(None),) * dimension(dim, self.ndim) + (slice(start, end, step),)]

    @from_kernel
    def select(self, dim: int, index: "int | View | VirtualRegister") -> Self:
        """Return the part at one index of a dimension: an integer, a register, or a one-element tensor in SBUF."""
        index = index.single() if isinstance(index, View) else index
        return self[(slice(None),) * dimension(dim, self.ndim) + (index,)]

    @from_kernel
    def vector_select(self, dim: int, vector_offset: "View") -> Self:
        if dimension(dim, self.ndim) or self.lanes is not None:
            raise ValueError(f"{self.name}: vector_select must be along dimension 0 of a tensor in HBM, not {dim}")
        first = vector_offset.fitted((vector_offset.size,))
        return self[(first, *(slice(None),) * (self.ndim - 1))]

    @from_kernel
    def reshape_dim(self, dim: int, shape: tuple[int, ...]) -> Self:
        dim = dimension(dim, self.ndim)
        return self.reshape((*self.shape[:dim], *shape, *self.shape[dim + 1 :]))

    @from_kernel
    def flatten_dims(self, start_dim: int, end_dim: int) -> Self:
        first, last = dimension(start_dim, self.ndim), dimension(end_dim, self.ndim) + 1
        if first >= last:
            raise ValueError(f"{self.name}: start_dim must be at most end_dim, not {start_dim} and {end_dim}")
        return self.reshape((*self.shape[:first], prod(self.shape[first:last]), *self.shape[last:]))

    @from_kernel
    def rearrange(self, src_pattern, dst_pattern, fixed_sizes=None) -> Self:
        return layouts.rearranged(self, src_pattern, dst_pattern, fixed_sizes or {})

    def get_pattern(self) -> list[list[int]]:
        """Return the access pattern as pairs (step, count), as `ap` takes them."""
        return layouts.pattern_of(self)

    def is_contiguous(self) -> bool:
        """Return whether the elements, on chip those of a partition, are contiguous and in order."""
        axes = [(n, step) for n, (step, _) in zip(self.shape, self.get_pattern(), strict=True) if n > 1]
        axes = axes[1:] if self.lanes is not None and self.shape[self.lanes] > 1 else axes
        return all(step == prod(n for n, _ in axes[d + 1 :]) for d, (_, step) in enumerate(axes))

    def permuted(self, order: tuple[int, ...]) -> Self:
        if sorted(order) != list(range(self.ndim)):
            raise ValueError(f"{self.name}: order must be a permutation of the dimensions of {self.shape}, not {order}")
        return self.picked(order)

    @from_kernel
    def view(self, dtype) -> Self:
        return layouts.retyped(self, dtype_of(dtype))

    reinterpret_cast = view

    @from_kernel
    def ap(
        self, pattern, offset: int | None = None, scalar_offset=None, vector_offset=None, indirect_dim: int = 0,
        dtype=None, **options,
    ) -> Self:  # fmt: skip
        """Return an access pattern of pairs (step, count), outermost first.

        On chip the first pair is along partitions; its step is in elements: a tensor's width for the next partition, 0
        for the same one. With `dtype`, the bits are read as that type, and counts are in its elements.

        `scalar_offset`, a register or a number in SBUF, moves the pattern along dimension `indirect_dim` of the tensor.
        `vector_offset`, one number per partition, selects each outermost row; the first step is then ignored.
        """
        base = self if dtype is None or dtype_of(dtype) == self.dtype else layouts.cast(self, dtype_of(dtype))
        return layouts.accessed(base, pattern, offset, scalar_offset, vector_offset, indirect_dim, options)

"""Access patterns: tensors as kernels hold them, and views of them that move no data.

Where an element of a view is, is affine in its index: so many elements, partitions and blocks from those of index 0. An
index of integers, slices or index expressions, a reshape or a broadcast gives another such pattern of the same tensor.
One index may be numbers in SBUF: then each element lies so much further as its number says when the program runs.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from numbers import Integral
from typing import Self

import numpy as np

from neuroncore_rtl.frontends.nki.indices.affine import NOWHERE, Affine, Mask, broadcast_shapes
from neuroncore_rtl.frontends.nki.indices.dtypes import DType, dtype_of
from neuroncore_rtl.frontends.nki.indices.lines import from_kernel
from neuroncore_rtl.frontends.nki.indices.numbers import Moved, Numbers
from neuroncore_rtl.frontends.nki.indices.registers import VirtualRegister
from neuroncore_rtl.frontends.nki.indices.storage import Allocation, Memory
from neuroncore_rtl.kernels.program import strides

__all__ = ["Cut", "View"]


@dataclass(frozen=True)
class Cut:
    """What masks have left of a view, as in `tile[i, j][i < n][j < m]`.

    Arguments:
        whole: the view before.
        mask: where it stays.
        part: of its shape.
    """

    whole: "View"
    mask: Mask
    part: tuple[slice, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the view before, which further masks are over, too."""
        return self.whole.shape

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left."""
        return any(part.stop <= part.start for part in self.part)


@dataclass(frozen=True, eq=False, kw_only=True)
class View:
    """Part of a tensor, or all of it.

    Arguments:
        allocation: the tensor.
        dtype: of an element.
        shape: counts of its dimensions.
        element, partition, block: where an element is, over `shape`; HBM and blocks count elements of their own.
        lanes: on chip, the dimension that goes from partition to partition, or repeats one; None: it has none.
        bounds: what must stay below a limit and not below 0, over `shape`: index expressions before a mask is applied.
        numbers: the index that is in memory.
        cut: what it was before a mask cut it, if that came last.
    """

    allocation: Allocation
    dtype: DType
    shape: tuple[int, ...]
    element: Affine
    partition: Affine
    block: Affine
    lanes: int | None = None
    bounds: tuple[tuple[Affine, int], ...] = ()
    numbers: Numbers | None = None
    cut: Cut | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Elements in all partitions."""
        return prod(self.shape)

    @property
    def name(self) -> str:
        return self.allocation.name

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def buffer(self):
        """The memory that it is in."""
        return self.allocation.memory

    @property
    def offset(self) -> int:
        """The element of index 0."""
        return self.element.start

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one index of each dimension to the next."""
        return self.element.steps

    def is_indirect(self) -> bool:
        """Whether an index is in memory."""
        return self.numbers is not None

    # -- views -----------------------------------------------------------------------------------------------------

    @from_kernel
    def __getitem__(self, key) -> Self:
        """Return a part, by integers, slices, ranges, None and ..., or by index expressions that broadcast to its
        shape; by a mask, or a condition that Python has decided, where that holds: if that is nowhere, what a call may
        only name together with a mask of its own."""
        if isinstance(key, bool | np.bool_):
            return self if key else self._cut_by(NOWHERE)
        if isinstance(key, Mask):
            return self._cut_by(key)
        key = key if isinstance(key, tuple) else (key,)
        key = tuple(part.word.single() if isinstance(part, VirtualRegister) else part for part in key)
        key = tuple(slice(part.start, part.stop, part.step) if isinstance(part, range) else part for part in key)
        if not any(isinstance(part, Affine | Moved) for part in key):
            # One number is one index, whatever the shape of the tile that it is in.
            key = tuple(part.single() if isinstance(part, View) and part.size == 1 else part for part in key)
        # Of a tile of partitions alone each has one element, which kernels of the first dialect name, too.
        column = (self.ndim, self.lanes, len(key)) == (1, 0, 2) and not any(part is None for part in key)
        whole = self.picked([0, None]) if column else self
        return whole.indexed(*whole._indices(key))

    def __iter__(self) -> Iterator[Self]:
        """Yield the parts of the first dimension's indices."""
        return (self[index] for index in range(self.shape[0]))

    def _cut_by(self, mask: Mask) -> Self:
        """Return the part where a mask and those before it hold; if that is nothing, with a bound that none keeps."""
        whole, mask = (self, mask) if self.cut is None else (self.cut.whole, self.cut.mask & mask)
        part = whole.masked(mask)
        if part is None:
            nothing = Affine(whole.shape, (0,) * whole.ndim, -1), 0
            part = replace(whole, bounds=(*whole.bounds, nothing))
        return replace(part, cut=Cut(whole, mask, mask.rectangle(whole.shape)))

    @from_kernel
    def reshape(self, *sizes, shape=None) -> Self:
        """Return a view of another shape; on chip the partitions stay as they are."""
        shape = sizes if shape is None else tuple(shape)
        shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], Integral) else tuple(shape)
        shape = tuple(int(n) for n in shape)
        if -1 in shape:
            rest = prod(n for n in shape if n != -1)
            shape = tuple(self.size // rest if n == -1 else n for n in shape)
        first = 0
        if self.lanes is not None:
            first = self.lanes + 1
            if shape[:first] != self.shape[:first]:
                raise ValueError(f"{self.name}: the partitions of {self.shape} must stay first, not {shape}")
        self.check_bounds()
        if prod(shape) != self.size:
            raise ValueError(f"{self.name}: shape must be of the {self.size} elements of {self.shape}, not {shape}")
        try:
            _, steps = strides.reshaped(self.shape[first:], self.element.steps[first:], shape[first:])
        except (ValueError, TypeError):
            rule = f"another shape of the same steps, not of {self.shape} with steps {self.element.steps}"
            raise ValueError(f"{self.name}: {shape} must be {rule}") from None
        kept = {name: getattr(self, name) for name in ("element", "partition", "block")}
        moved = {name: axis.steps[:first] for name, axis in kept.items()}
        rest = {"element": tuple(int(step) for step in steps)}
        rest |= dict.fromkeys(("partition", "block"), (0,) * (len(shape) - first))
        axes = {name: Affine(shape, moved[name] + rest[name], kept[name].start) for name in kept}
        numbers = self.numbers and self.numbers.reshaped(shape)
        return replace(self, shape=shape, numbers=numbers, bounds=(), cut=None, **axes)

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

    @from_kernel
    def view(self, dtype) -> Self:
        """Return the same bits in another type; of fewer bytes, in the last dimension, as more elements."""
        dtype = dtype_of(dtype)
        more, left = divmod(self.dtype.itemsize, dtype.itemsize)
        near = self.ndim and self.element.steps[-1] == 1 and self.lanes != self.ndim - 1 and self.numbers is None
        if left or (more > 1 and not (near and self.allocation.memory is not Memory.psum)):
            rule = f"view must be of {self.dtype.itemsize} bytes an element, or of fewer where they are side by side"
            raise ValueError(f"{self.name}: {rule}, not {dtype}")
        if more == 1:
            return replace(self, dtype=dtype)
        shape = (*self.shape[:-1], self.shape[-1] * more)

        def finer(axis: Affine, by: int) -> Affine:
            return Affine(shape, (*(step * by for step in axis.steps[:-1]), axis.steps[-1]), axis.start * by)

        axes = {"element": finer(self.element, more)}
        axes |= {name: finer(getattr(self, name), 1) for name in ("partition", "block")}
        self.check_bounds()
        return replace(self, dtype=dtype, shape=shape, bounds=(), cut=None, **axes)

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
        if dtype is not None and dtype_of(dtype) != self.dtype:
            return self._cast(dtype_of(dtype)).ap(
                pattern, offset, scalar_offset, vector_offset, indirect_dim, **options
            )
        if isinstance(scalar_offset, VirtualRegister):
            scalar_offset = scalar_offset.word
        if isinstance(scalar_offset, Integral):
            by = int(scalar_offset) * self._step_of(indirect_dim)
            moved = replace(self, element=replace(self.element, start=self.element.start + by))
            return moved.ap(pattern, None if offset is None else int(offset) + by, None, vector_offset, indirect_dim,
                            **options)  # fmt: skip
        if any(options.values()):
            raise ValueError(f"{self.name}: ap must be of steps, counts and offsets alone, not {options}")
        shape = tuple(int(count) for _, count in pattern)
        steps, start = tuple(int(step) for step, _ in pattern), self.element.start if offset is None else int(offset)
        found = self._patterned(shape, steps if vector_offset is None else (0, *steps[1:]), start, offset is not None)
        if scalar_offset is None and vector_offset is None:
            return found
        return found._offset(self, scalar_offset, vector_offset, indirect_dim)

    def _cast(self, dtype: DType) -> Self:
        """Return what an access pattern of another type is one of: places of elements in units of that type."""
        old, new = self.dtype.itemsize, dtype.itemsize
        element = self.element
        places = [*element.steps, element.start]
        if (old != new and self.allocation.memory is Memory.psum) or any(place * old % new for place in places):
            rule = f"ap of another type must be of SBUF or HBM, and of whole elements of {self.dtype}"
            raise ValueError(f"{self.name}: {rule}, not of {dtype} in {self.buffer.value}")
        *steps, start = (place * old // new for place in places)
        return replace(self, dtype=dtype, element=Affine(element.shape, tuple(steps), start))

    @property
    def _width(self) -> int:
        """Elements of its type in a partition of a block, on chip; else in the whole tensor."""
        if self.allocation.memory is Memory.psum:
            return self.allocation.width
        return self.allocation.width * self.allocation.dtype.itemsize // self.dtype.itemsize

    def _patterned(self, shape: tuple[int, ...], steps: tuple[int, ...], start: int, across: bool) -> Self:
        """Return an access pattern; `across`: its start counts the elements of all partitions."""
        flat = (0,) * len(shape)
        if self.lanes is None:
            bounds = ((Affine(shape, steps, start), self._width),)
            axes = {"element": Affine(shape, steps, start), "partition": Affine(shape, flat)}
            axes |= {"block": Affine(shape, flat, self.block.start)}
            return replace(self, shape=shape, bounds=bounds, numbers=None, cut=None, **axes)
        width = self._width
        row, start = divmod(start, width) if across else (self.partition.start, start)
        if steps[0] % width:
            raise ValueError(f"{self.name}: a pattern's first step must be of partitions, each {width}, not {steps[0]}")
        element = Affine(shape, (0, *steps[1:]), start)
        partition = Affine(shape, (steps[0] // width, *flat[1:]), row)
        lanes = self.allocation.shape[self.allocation.lanes]
        return replace(
            self,
            shape=shape,
            element=element,
            partition=partition,
            block=Affine(shape, flat, self.block.start),
            lanes=0,
            bounds=((element, width), (partition, lanes)),
            numbers=None,
            cut=None,
        )

    def _offset(self, base: "View", scalar: "View | None", vector: "View | None", dim: int) -> Self:
        """Return it moved by numbers along a dimension of the view that it is a pattern of."""
        offset = scalar if vector is None else vector
        if not isinstance(offset, View) or (scalar is not None and vector is not None):
            rule = "an offset in memory must be one tensor in SBUF, scalar_offset or vector_offset"
            raise ValueError(f"{self.name}: {rule}, not {scalar!r} and {vector!r}")
        if vector is not None and (dim or self.lanes is not None or vector.size != self.shape[0]):
            rule = f"vector_offset must be {self.shape[0]} numbers for rows of a tensor in HBM"
            raise ValueError(f"{self.name}: {rule}, not {vector.size} in dimension {dim}")
        ones = (1,) * (self.ndim - 1)
        number = scalar.single().picked([None] * self.ndim) if vector is None else vector.fitted((vector.size, *ones))
        step, last = base._step_of(dim), self.element.range[1]
        limit = (self._width - 1 - last) // step + 1
        return replace(self, numbers=Numbers(number.repeated(self.shape), step, max(0, limit)))

    def _step_of(self, dim: int) -> int:
        """Return the elements from index to index of a dimension that numbers may go along."""
        if not -self.ndim <= dim < self.ndim:
            raise ValueError(f"{self.name}: indirect_dim must be below {self.ndim}, not {dim}")
        step = self.element.steps[dim]
        if dim == self.lanes or self.block.steps[dim] or step < 1:
            raise ValueError(f"{self.name}: an index in memory must go along elements, which dimension {dim} does not")
        return step

    # -- what lowering asks for ------------------------------------------------------------------------------------

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
        return self.indexed(*self._indices(tuple(own)))

    def repeated(self, shape: tuple[int, ...]) -> Self:
        """Return it broadcast to a shape; ValueError if it does not."""
        if broadcast_shapes(self.shape, shape) != shape:
            raise ValueError(f"{self.name}: shape must broadcast to {shape}, not {self.shape}")
        more = len(shape) - self.ndim
        repeats = [n == 1 and shape[more + d] != 1 for d, n in enumerate(self.shape)]

        def wide(axis: Affine) -> Affine:
            own = (0 if again else step for step, again in zip(axis.steps, repeats, strict=True))
            return Affine(shape, ((0,) * more + tuple(own)), axis.start)

        bounds = tuple((wide(axis), limit) for axis, limit in self.bounds)
        axes = {name: wide(getattr(self, name)) for name in ("element", "partition", "block")}
        lanes = None if self.lanes is None else more + self.lanes
        numbers = self.numbers and self.numbers.repeated(shape)
        return replace(self, shape=shape, lanes=lanes, bounds=bounds, numbers=numbers, cut=None, **axes)

    def fitted(self, shape: tuple[int, ...]) -> Self:
        """Return it in a shape that is its own but for dimensions of one element, or broadcast to it; on chip, where
        partitions are first, dimensions that it does not have are the last ones, and one element of each partition is
        so over all of theirs.

        Raises:
            ValueError: if it is none of these.
        """
        if self.shape == shape:
            return self
        if [n for n in self.shape if n != 1] == [n for n in shape if n != 1]:
            own = iter([d for d, n in enumerate(self.shape) if n != 1])
            order = [next(own) if n != 1 else None for n in shape]
            return self.picked(order)
        if self.lanes == 0 and self.shape[0] == self.size == shape[0]:
            return self.picked([0, *[None] * (len(shape) - 1)]).repeated(shape)
        missing = len(shape) - self.ndim
        if self.lanes == 0 and missing > 0 and all(n in (1, m) for n, m in zip(self.shape, shape, strict=False)):
            return self.picked([*range(self.ndim), *(None,) * missing]).repeated(shape)
        return self.repeated(shape)

    def permuted(self, order: tuple[int, ...]) -> Self:
        """Return it with the dimensions in another order."""
        if sorted(order) != list(range(self.ndim)):
            raise ValueError(f"{self.name}: order must be of the {self.ndim} dimensions of {self.shape}, not {order}")
        return self.picked(list(order))

    def single(self) -> Self:
        """Return its one element, without dimensions."""
        if self.size != 1:
            raise ValueError(f"{self.name}: an index in memory must be one element, not {self.shape}")
        return self[(0,) * self.ndim]

    def unrepeated(self) -> Self:
        """Return it with one partition, where it repeats one."""
        parts = [slice(0, 1) if d == self.lanes else slice(None) for d in range(self.ndim)]
        return self[tuple(parts)]

    def check_bounds(self) -> None:
        """Refuse it if an index goes beyond the tensor."""
        for axis, limit in self.bounds:
            if not limit:
                raise ValueError(f"{self.name}: an operand must have elements, but a mask leaves nothing of it")
            least, most = axis.range
            if least < 0 or most >= limit:
                which = str(least) if least == most else f"from {least} to {most}"
                raise ValueError(f"{self.name}: an index must be between 0 and {limit - 1}, not {which}")

    def one_block(self) -> int:
        """Return the number of the block that it is in; ValueError if it is in several."""
        if any(step and n > 1 for step, n in zip(self.block.steps, self.shape, strict=True)):
            rule = f"blocks must be chosen by numbers: an operand is one tile, not {self.shape} over several"
            raise ValueError(f"{self.name}: {rule}")
        return self.block.start

    def picked(self, order: list[int | None]) -> Self:
        """Return it with dimensions picked from its own; None: a new one of one element. What is left out has one."""
        shape = tuple(1 if d is None else self.shape[d] for d in order)
        lanes = None
        if self.lanes is not None:
            if self.lanes in order:
                lanes = order.index(self.lanes)
            elif self.shape[self.lanes] == 1 and order and order[0] is None:
                lanes = 0

        def ordered(axis: Affine) -> Affine:
            return Affine(shape, tuple(0 if d is None else axis.steps[d] for d in order), axis.start)

        bounds = tuple((ordered(axis), limit) for axis, limit in self.bounds)
        axes = {name: ordered(getattr(self, name)) for name in ("element", "partition", "block")}
        numbers = self.numbers and self.numbers.picked(order)
        return replace(self, shape=shape, lanes=lanes, bounds=bounds, numbers=numbers, cut=None, **axes)

    # -- indices ---------------------------------------------------------------------------------------------------

    def _indices(self, key: tuple) -> tuple[tuple[int, ...], list[Affine], list[tuple[Affine, int]], Numbers | None]:
        """Return the shape that a key gives, an index over it for each dimension, what must stay in bounds, and the
        index that is in memory."""
        used = sum(part is not None and part is not Ellipsis for part in key)
        if used > self.ndim or sum(part is Ellipsis for part in key) > 1:
            raise ValueError(f"{self.name}: an index must have at most {self.ndim} parts, those of {self.shape}")
        rest = (slice(None),) * (self.ndim - used)
        at = next((n for n, part in enumerate(key) if part is Ellipsis), None)
        key = (*key, *rest) if at is None else (*key[:at], *rest, *key[at + 1 :])
        key, number = self._without_number(key)
        key, common = _together(key)
        places = [n for n, part in enumerate(key) if isinstance(part, Affine)]
        if places and any(not isinstance(part, Affine | Integral) for part in key[places[0] : places[-1]]):
            raise ValueError(f"{self.name}: index expressions must be side by side, not with slices between them")
        shape: list[int] = []
        found: list[tuple[int | None, object]] = []  # the first of its dimensions of the result, and the part
        for n, part in enumerate(key):
            if places and n == places[0]:
                start = len(shape)
                shape += common
            if isinstance(part, Affine):
                found.append((start, part))
            elif part is None:
                shape.append(1)
            elif isinstance(part, slice):
                found.append((len(shape), part))
                shape.append(0)
            elif isinstance(part, Integral):
                found.append((None, int(part)))
            else:
                rule = "an index must be an integer, a slice, None, ... or an index expression"
                raise ValueError(f"{self.name}: {rule}, not {type(part).__name__} {part!r}")
        indices: list[tuple[int, dict[int, int]]] = []
        for d, (first, part) in enumerate(found):
            count = self.shape[d]
            if isinstance(part, int):
                indices.append((part % count if -count <= part < count else part, {}))
            elif isinstance(part, slice):
                begin, end, step = _bounds(part, count)
                if step < 1 or end <= begin:
                    rule = f"a slice must be of 1 or more of the {count} from 0 to {count - 1}"
                    raise ValueError(f"{self.name}: {rule}, not {part.start}:{part.stop}:{part.step}")
                shape[first] = len(range(begin, end, step))
                indices.append((begin, {first: step}))
            else:
                wide = part.over(common)
                indices.append((wide.start, {first + e: step for e, step in enumerate(wide.steps)}))
        result = tuple(shape)
        over = [Affine(result, tuple(own.get(d, 0) for d in range(len(result))), start) for start, own in indices]
        # What is beyond may be where a mask does not hold.
        bounds = [
            (index, self.shape[d])
            for d, index in enumerate(over)
            if (isinstance(found[d][1], Affine) and index.range != (0, 0)) or not _within(index, self.shape[d])
        ]
        if number is None:
            return result, over, bounds, None
        place, view = number
        d = sum(part is not None for part in key[:place])
        if over[d].range[0] < 0:
            raise ValueError(f"{self.name}: what is added to an index in memory must be at least 0, not {over[d]}")
        where = found[d][0]
        order = [None] * len(result)
        if view.ndim:
            view = view.repeated(common)
            order[where : where + len(common)] = range(len(common))
        limit = max(0, self.shape[d] - over[d].range[1])
        return result, over, bounds, Numbers(view.picked(order).repeated(result), self._step_of(d), limit)

    def _without_number(self, key: tuple) -> tuple[tuple, "tuple[int, View] | None"]:
        """Return a key with 0 where an index is in memory, and which part that is."""
        places = [n for n, part in enumerate(key) if isinstance(part, View | Moved)]
        if not places:
            return key, None
        if len(places) > 1 or self.numbers is not None:
            raise ValueError(f"{self.name}: at most one index may be in memory, not {len(places)} more")
        (n,) = places
        part = key[n] if isinstance(key[n], Moved) else Moved(Affine(key[n].shape, (0,) * key[n].ndim), key[n])
        known = part.affine if part.affine.shape or part.number.shape else part.affine.start
        if isinstance(known, Affine):
            known = known.over(broadcast_shapes(known.shape, part.number.shape))
        return (*key[:n], known, *key[n + 1 :]), (n, part.number)

    def indexed(
        self, shape: tuple[int, ...], indices: list[Affine], new: list[tuple[Affine, int]] = (),
        numbers: Numbers | None = None,
    ) -> Self:  # fmt: skip
        """Return the view whose element of an index is its own of `indices`; `new`, `numbers`: as of a view."""

        def composed(axis: Affine) -> Affine:
            steps = [sum(step * index.steps[d] for step, index in zip(axis.steps, indices, strict=True))
                     for d in range(len(shape))]  # fmt: skip
            return Affine(
                shape, tuple(steps), axis.start + sum(s * i.start for s, i in zip(axis.steps, indices, strict=True))
            )

        lanes = None
        if self.lanes is not None:
            over = [d for d, step in enumerate(indices[self.lanes].steps) if step]
            if len(over) > 1:
                raise ValueError(f"{self.name}: partitions must go along one dimension of {shape}, not {len(over)}")
            lanes = over[0] if over else None
        bounds = (*((composed(axis), limit) for axis, limit in self.bounds), *new)
        axes = {name: composed(getattr(self, name)) for name in ("element", "partition", "block")}
        numbers = self.numbers.indexed(shape, indices) if self.numbers else numbers
        return replace(self, shape=shape, lanes=lanes, bounds=bounds, numbers=numbers, cut=None, **axes)


def _bounds(part: slice, count: int) -> tuple[int, int, int]:
    """Return where a slice of so many begins and ends, and its step; what is named beyond the end stays beyond it."""
    begin, end, step = part.indices(count)
    start, stop = (number if isinstance(number, Integral) else 0 for number in (part.start, part.stop))
    return (max(begin, int(start)), max(end, int(stop)), step) if step > 0 else (begin, end, step)


def _within(index: Affine, count: int) -> bool:
    """Return whether all of an index is of so many."""
    least, most = index.range
    return least >= 0 and most < count


def _together(key: tuple) -> tuple[tuple, tuple[int, ...]]:
    """Return a key whose index expressions broadcast, and their shape: by the rules of numpy, else with dimensions that
    some lack as their last ones: published kernels write `x[i, j]` of `i[:, None]` and `j[None, :, None]`."""
    expressions = [part for part in key if isinstance(part, Affine)]
    try:
        return key, reduce(broadcast_shapes, (part.shape for part in expressions), ())
    except ValueError as refusal:
        most = max(len(part.shape) for part in expressions)
        key = tuple(_widened(part, most) if isinstance(part, Affine) else part for part in key)
        with suppress(ValueError):
            return key, reduce(broadcast_shapes, (part.shape for part in key if isinstance(part, Affine)), ())
        raise refusal


def _widened(index: Affine, dimensions: int) -> Affine:
    """Return an index expression with dimensions of one number behind its own."""
    more = dimensions - len(index.shape)
    return Affine((*index.shape, *(1,) * more), (*index.steps, *(0,) * more), index.start)

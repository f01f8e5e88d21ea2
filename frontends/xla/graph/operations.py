"""Operations of a model, a class each; semantics are StableHLO's unless a docstring says otherwise.

A value has a shape and a type. Every value is the result of one operation, or an argument of one block.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from itertools import count
from math import prod
from typing import dataclass_transform

import numpy as np

from neuroncore_rtl.frontends.xla.graph.types import ElementType
from neuroncore_rtl.kernels.source import SourceLine
from neuroncore_rtl.kernels.tiling.phases import WindowShape

__all__ = [
    "Bitcast", "Branches", "Broadcast", "Concatenate", "Constant", "Convolution", "Dot", "DynamicSlice",
    "DynamicUpdate", "Gather", "GatherRows", "Graph", "Iota", "Operation", "Pad", "Pointwise", "RandomBits",
    "Reduce", "ReduceWindow", "Reshape", "Reverse", "Scatter", "ScatterRows", "SelectAndScatter", "Sort", "SortRows",
    "StridedSlice", "Transpose", "Value", "While",
]  # fmt: skip

_NUMBERS = count()


@dataclass(eq=False)
class Value:
    """An array with elements that the running program computes."""

    shape: tuple[int, ...]
    type: ElementType
    number: int = field(default_factory=lambda: next(_NUMBERS))

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def rank(self) -> int:
        return len(self.shape)

    def __str__(self) -> str:
        return f"{self.type}[{','.join(map(str, self.shape))}]"


@dataclass_transform(eq_default=False, kw_only_default=True)
class _Record:
    """Base of classes with fields that are given by name and compared by identity."""

    def __init_subclass__(cls):
        dataclass(eq=False, kw_only=True)(cls)


class Operation(_Record):
    """Base of operations: values in, new values out.

    Arguments:
        operands: values that it reads.
        results: values that it defines.
        source: the user's line.
    """

    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    source: SourceLine

    @property
    def result(self) -> Value:
        """The only result."""
        (result,) = self.results
        return result

    @property
    def blocks(self) -> tuple["Graph", ...]:
        """Blocks inside the operation."""
        return tuple(value for one in fields(self) if isinstance(value := getattr(self, one.name), Graph))

    def reads(self) -> Iterator[Value]:
        """Yield the values that the operation reads, also in its blocks."""
        yield from self.operands
        for block in self.blocks:
            yield from block.results
            for inner in block.operations:
                yield from inner.reads()


class Graph(_Record):
    """Operations in order; they may read values of enclosing blocks.

    Arguments:
        arguments: values given at its start.
        operations: in an order in which operands come before their use.
        results: values at its end.
    """

    arguments: tuple[Value, ...]
    operations: list[Operation]
    results: tuple[Value, ...]

    @property
    def makers(self) -> dict[Value, Operation]:
        """The operation that defines each value, those inside of operations apart."""
        return {value: one for one in self.operations for value in one.results}


class Constant(Operation):
    """Elements that are known before the program runs."""

    array: np.ndarray

    @property
    def splat(self) -> float | int | None:
        """The number that all elements are; None if they differ, by their bits."""
        flat = self.array.reshape(-1)
        if self.array.size and all(
            step == 0 or n == 1 for step, n in zip(self.array.strides, self.array.shape, strict=True)
        ):
            return flat[0].item()
        codes = flat.view(f"u{flat.itemsize}")
        return flat[0].item() if flat.size and (codes == codes[0]).all() else None


class Iota(Operation):
    """Each element is its index along `axis`."""

    axis: int

    @property
    def array(self) -> np.ndarray:
        """The elements; those that repeat occupy no memory."""
        of = self.result
        column = np.arange(of.shape[self.axis]).astype(of.type.dtype)
        return np.broadcast_to(column.reshape([-1 if d == self.axis else 1 for d in range(of.rank)]), of.shape)


class Pointwise(Operation):
    """`function` of the elements with the same index; all operands have the result's shape.

    Functions have StableHLO's names; comparisons are "equal", "less" and so on, with "_total" for a total order.
    Integers after a name, separated by blanks, are parameters.
    """

    function: str


class Bitcast(Operation):
    """The same bits in another type."""


class Broadcast(Operation):
    """Dimension d of the operand is dimension axes[d] of the result; the others repeat it."""

    axes: tuple[int, ...]


class Reshape(Operation):
    """The same elements in row-major order."""


class Transpose(Operation):
    """Dimension d of the result is dimension order[d] of the operand."""

    order: tuple[int, ...]


class StridedSlice(Operation):
    """Elements starts, starts + steps, ... below ends, in each dimension."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    steps: tuple[int, ...]


class Reverse(Operation):
    """The order of elements along `axes` is reversed."""

    axes: tuple[int, ...]


class Pad(Operation):
    """Operands: an array, a number. `low` and `high` elements at the ends, negative to remove, `interior` between."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    interior: tuple[int, ...]


class Concatenate(Operation):
    """Operands one after another along `axis`."""

    axis: int


class Reduce(Operation):
    """Operands: arrays, then as many numbers to start from. `body` combines two elements of each array."""

    axes: tuple[int, ...]
    body: Graph


class ReduceWindow(Operation):
    """`Reduce` of each window; operands as there."""

    window: WindowShape
    body: Graph


class SelectAndScatter(Operation):
    """Operands: an array, sources, a number. `scatter` adds each source to the element that `select` finds."""

    window: WindowShape
    select: Graph
    scatter: Graph


class Dot(Operation):
    """Sums of products along `contract`, for every index of `batch`: pairs of dimensions of both operands.

    The result has the batch dimensions, then the other ones of the left and of the right operand. If `is_exact`, no
    option may round the operands.
    """

    batch: tuple[tuple[int, ...], tuple[int, ...]]
    contract: tuple[tuple[int, ...], tuple[int, ...]]
    is_exact: bool = False

    @property
    def sides(self) -> list[tuple[Value, tuple[int, ...], tuple[int, ...], list[int]]]:
        """Both operands, each with its dimensions: batch, contracted and other ones."""
        sides = zip(self.operands, self.batch, self.contract, strict=True)
        return [(one, some, gone, [d for d in range(one.rank) if d not in (*some, *gone)]) for one, some, gone in sides]


class Convolution(Operation):
    """Operands: an array [N, C, spatial], a filter [O, C / groups, spatial]; the result is [N, O, spatial].

    `groups` divide C and O; `batch_groups` divide N and O. `reverse` flips the filter along spatial dimensions.
    """

    window: WindowShape
    reverse: tuple[bool, ...]
    groups: int
    batch_groups: int


class DynamicSlice(Operation):
    """Operands: an array, an index for each dimension, clamped so that the slice of `size` fits."""

    size: tuple[int, ...]


class DynamicUpdate(Operation):
    """Operands: an array, the new slice, an index for each dimension, clamped so that the slice fits."""


class RandomBits(Operation):
    """Operand: a state of two uint64 as words [2, 2], lowest first. Results: the next state, and random integers."""

    is_threefry: bool


class Gather(Operation):
    """Operands: an array, indices. StableHLO's gather, with its names of attributes."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...]
    start_indices_batching_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    index_vector_dim: int
    slice_sizes: tuple[int, ...]


class GatherRows(Operation):
    """Operands: an array, int32 numbers [n] in range. Window i of the result starts at element numbers[i] * unit.

    Arguments:
        unit: elements of the array in row-major order from one row to the next.
        steps: such elements between those of a window, for each of its dimensions, which the result has after n.
    """

    unit: int
    steps: tuple[int, ...]


class ScatterRows(Operation):
    """Operands: an array, int32 numbers [n], windows [n, ...]. Writes the windows in order, numbers as `GatherRows`.

    A window with a number out of range, as an unsigned integer, is not written.
    """

    unit: int
    steps: tuple[int, ...]


class Scatter(Operation):
    """Operands: arrays, indices, as many updates. StableHLO's scatter, with its names of attributes."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    input_batching_dims: tuple[int, ...]
    scatter_indices_batching_dims: tuple[int, ...]
    scattered_dims_to_operand_dims: tuple[int, ...]
    index_vector_dim: int
    unique_indices: bool
    body: Graph


class Sort(Operation):
    """Operands sorted together along `axis`; `body` compares two elements of each operand."""

    axis: int
    body: Graph


class SortRows(Operation):
    """Operands [rows, 2^n] sorted together along the second dimension; elements that `body` ties are the same."""

    body: Graph


class While(Operation):
    """Repeats `body` on the operands while `condition` of them is true."""

    condition: Graph
    body: Graph


class Branches(Operation):
    """Operand: an index, clamped. The results are those of the branch with this index."""

    branches: tuple[Graph, ...]

    @property
    def blocks(self) -> tuple[Graph, ...]:
        return self.branches

"""Indices in memory: numbers in SBUF that select elements when the program runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Generic, Protocol, Self, TypeVar

from neuroncore_rtl.frontends.nki.indices.affine import Affine
from neuroncore_rtl.frontends.nki.indices.lines import from_kernel
from neuroncore_rtl.frontends.nki.indices.numpy_calls import NumpyCalls

__all__ = ["Moved", "Numbers"]


class Tile(Protocol):
    """Interface of the views that hold numbers (`frontends.nki.indices.pattern.Pattern`)."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def element(self) -> Affine: ...

    @property
    def partition(self) -> Affine: ...

    def indexed(self, shape: tuple[int, ...], indices: Sequence[Affine]) -> Self: ...

    def picked(self, order: Sequence[int | None]) -> Self: ...

    def repeated(self, shape: tuple[int, ...]) -> Self: ...


InTile = TypeVar("InTile", bound=Tile)


@dataclass(frozen=True, eq=False)
class Numbers(Generic[InTile]):
    """Offsets in memory: one number per element of a view, which moves the element by number * step.

    Arguments:
        view: the numbers, in the shape of the view that they move.
        step: elements of the tensor by which a number of 1 moves an element.
        limit: exclusive upper bound of the numbers; the lower bound is 0.
    """

    view: InTile
    step: int
    limit: int

    def indexed(self, shape: tuple[int, ...], indices: Sequence[Affine]) -> Self:
        return replace(self, view=self.view.indexed(shape, indices))

    def picked(self, order: Sequence[int | None]) -> Self:
        return replace(self, view=self.view.picked(order))

    def repeated(self, shape: tuple[int, ...]) -> Self:
        return replace(self, view=self.view.repeated(shape))

    @property
    def along(self) -> int | None:
        """Dimension of the view along which the numbers are in different partitions; None if all are in one."""
        steps = self.view.partition.steps
        return next((d for d, n in enumerate(self.view.shape) if n > 1 and steps[d]), None)

    @property
    def apart(self) -> list[int]:
        """Dimensions of the view along which the numbers are in different elements of one partition."""
        steps = self.view.element.steps
        return [d for d, n in enumerate(self.view.shape) if n > 1 and steps[d]]


@dataclass(frozen=True, eq=False)
class Moved(NumpyCalls, Generic[InTile]):
    """Sum of an index expression and a number in SBUF."""

    affine: Affine
    number: InTile

    _way = "its sums with integers"

    def __repr__(self) -> str:
        return "an index in memory"

    @from_kernel
    def __bool__(self) -> bool:
        raise ValueError("an index in memory is known only when the kernel runs, so it cannot be a condition of Python")

    def __eq__(self, other: object) -> bool:
        return other is not None and bool(self)

    __lt__ = __le__ = __gt__ = __ge__ = __eq__

    @from_kernel
    def __add__(self, other) -> Self:
        return replace(self, affine=self.affine + _static(other))

    __radd__ = __add__

    @from_kernel
    def __sub__(self, other) -> Self:
        return replace(self, affine=self.affine - _static(other))


def _static(index: object) -> Affine | Integral:
    if not isinstance(index, Affine | Integral):
        raise ValueError("at most one number in memory may be added to an index")
    return index

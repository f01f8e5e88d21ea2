"""Indices in memory: numbers in SBUF by which an access finds its place when the program runs."""

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Protocol, Self

from neuroncore_rtl.frontends.nki.indices.affine import Affine
from neuroncore_rtl.frontends.nki.indices.lines import from_kernel

__all__ = ["Moved", "Numbers"]


class Tile(Protocol):
    """What numbers are in: a view (:class:`frontends.nki.indices.views.View`) of a tensor on chip."""

    shape: tuple[int, ...]
    element: Affine
    partition: Affine

    def indexed(self, shape: tuple[int, ...], indices: list[Affine]) -> Self:
        """Return the view whose element of an index is its own of `indices`."""

    def picked(self, order: list[int | None]) -> Self:
        """Return it with dimensions picked from its own; None: a new one of one element."""

    def repeated(self, shape: tuple[int, ...]) -> Self:
        """Return it broadcast to a shape."""

    def reshape(self, *shape: int) -> Self:
        """Return a view of another shape."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers of which each element of a view has one, and lies so many steps behind where it would lie without.

    Arguments:
        view: of the numbers, over the shape of the view that they move.
        step: elements of the tensor from number to number.
        limit: numbers are not negative and below this.
    """

    view: Tile
    step: int
    limit: int

    def indexed(self, shape: tuple[int, ...], indices: list[Affine]) -> Self:
        """Return them for a part of the view."""
        return replace(self, view=self.view.indexed(shape, indices))

    def picked(self, order: list[int | None]) -> Self:
        """Return them with dimensions picked as those of the view."""
        return replace(self, view=self.view.picked(order))

    def repeated(self, shape: tuple[int, ...]) -> Self:
        """Return them for a view that is broadcast."""
        return replace(self, view=self.view.repeated(shape))

    def reshaped(self, shape: tuple[int, ...]) -> Self:
        """Return them for another shape of the view, which keeps the dimension that has one number each."""
        return replace(self, view=self.view.reshape(*shape))

    @property
    def along(self) -> int | None:
        """The dimension that goes from partition to partition of the numbers; None: all are in one."""
        steps = self.view.partition.steps
        return next((d for d, n in enumerate(self.view.shape) if n > 1 and steps[d]), None)

    @property
    def apart(self) -> list[int]:
        """The dimensions that go from element to element of the numbers' partitions."""
        steps = self.view.element.steps
        return [d for d, n in enumerate(self.view.shape) if n > 1 and steps[d]]


@dataclass(frozen=True, eq=False)
class Moved:
    """An index expression and a number in SBUF, which are added.

    Arguments:
        affine: the expression.
        number: a view that broadcasts with it.
    """

    affine: Affine
    number: Tile

    @from_kernel
    def __add__(self, other) -> "Moved":
        return Moved(self.affine + _known(other), self.number)

    __radd__ = __add__

    @from_kernel
    def __sub__(self, other) -> "Moved":
        return Moved(self.affine - _known(other), self.number)


def _known(index: object) -> Affine | Integral:
    """Return an index that Python knows."""
    if not isinstance(index, Affine | Integral):
        raise ValueError("at most one number in memory may be added to an index")
    return index

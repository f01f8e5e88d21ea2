"""Indices in memory: numbers in SBUF by which an access finds its place when the program runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Generic, Protocol, Self, TypeVar

from neuroncore_rtl.frontends.nki.indices.affine import Affine
from neuroncore_rtl.frontends.nki.indices.lines import from_kernel

__all__ = ["Moved", "Numbers"]


class Tile(Protocol):
    """What numbers are in: a view (:class:`frontends.nki.indices.pattern.Pattern`) of a tensor on chip."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def element(self) -> Affine: ...

    @property
    def partition(self) -> Affine: ...

    def indexed(self, shape: tuple[int, ...], indices: Sequence[Affine]) -> Self:
        """Return the view whose element of an index is its own of `indices`."""
        ...

    def picked(self, order: Sequence[int | None]) -> Self:
        """Return it with dimensions picked from its own; None: a new one of one element."""
        ...

    def repeated(self, shape: tuple[int, ...]) -> Self:
        """Return it broadcast to a shape."""
        ...


InTile = TypeVar("InTile", bound=Tile)
"""The class of the views that numbers are in."""


@dataclass(frozen=True, eq=False)
class Numbers(Generic[InTile]):
    """Numbers of which each element of a view has one, and lies so many steps behind where it would lie without.

    Arguments:
        view: of the numbers, over the shape of the view that they move.
        step: elements of the tensor from number to number.
        limit: numbers are not negative and below this.
    """

    view: InTile
    step: int
    limit: int

    def indexed(self, shape: tuple[int, ...], indices: Sequence[Affine]) -> Self:
        """Return them for a part of the view."""
        return replace(self, view=self.view.indexed(shape, indices))

    def picked(self, order: Sequence[int | None]) -> Self:
        """Return them with dimensions picked as those of the view."""
        return replace(self, view=self.view.picked(order))

    def repeated(self, shape: tuple[int, ...]) -> Self:
        """Return them for a view that is broadcast."""
        return replace(self, view=self.view.repeated(shape))

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
class Moved(Generic[InTile]):
    """An index expression and a number in SBUF, which are added.

    Arguments:
        affine: the expression.
        number: a view that broadcasts with it.
    """

    affine: Affine
    number: InTile

    @from_kernel
    def __add__(self, other) -> Self:
        return replace(self, affine=self.affine + _known(other))

    __radd__ = __add__

    @from_kernel
    def __sub__(self, other) -> Self:
        return replace(self, affine=self.affine - _known(other))


def _known(index: object) -> Affine | Integral:
    """Return an index that Python knows."""
    if not isinstance(index, Affine | Integral):
        raise ValueError("at most one number in memory may be added to an index")
    return index

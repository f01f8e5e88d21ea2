"""Results of calls of the first dialect: those of pending calls, and those that are a part of another tensor.

`y[...] = w` with the result w of the last call writes y directly, and w has no storage. Later uses of w read this part
of y while it holds w's values. If it was written again, a copy is inserted before this write. If it never held them,
because y has another type or added them, the call is appended once more, with a tensor of its own. The result of
`nl.broadcast_to` is such a part of its argument.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from neuroncore_rtl.frontends.nki.indices.lines import explained
from neuroncore_rtl.frontends.nki.indices.storage import Allocation, format_in
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.kernels.source import SourceLine, located, override_source

__all__ = ["Assigned", "Pending"]


@dataclass
class Pending:
    """A call with a destination that is not yet known.

    Arguments:
        result: the tensor returned to the kernel.
        run: appends instructions that write the result to a view of the same shape.
        source: the kernel's line with the call.
        product: whether `run` accepts accumulate=True, which adds to the view.
        reads: tensors on which alone the result depends; None if it depends on more, such as random numbers.
        whole: whether the call writes all of its destination; a result has zeros elsewhere.
    """

    result: View
    run: Callable[..., None]
    source: SourceLine
    product: bool = False
    reads: tuple[View, ...] | None = None
    whole: bool = True

    def append(self, target: View, **options: bool) -> None:
        with override_source(self.source):
            located(explained(self.run, "the call"))(target, **options)

    def versions(self) -> dict[Allocation, int]:
        """Return the number of writes so far to each tensor that the call reads."""
        return {one.allocation: one.allocation.version for view in self.reads or () for one in _with_indices(view)}


def _with_indices(view: View) -> Iterator[View]:
    yield view
    if view.numbers is not None:
        yield from _with_indices(view.numbers.view)


@dataclass
class Assigned:
    """A result in a part of another tensor, by an assignment.

    Arguments:
        call: the call.
        place: the part of the other tensor.
        versions: number of writes, before the assignment, to each tensor that the call reads.
        loops: dynamic loops around the assignment; inside of other loops the result must not be used.
        added: whether the assignment added the result.
        copied: whether the result is a copy of the place, which may be read in other loops that do not write the place.
        before: step of the program before which the place still has the result; None: unknown.
    """

    call: Pending
    place: View
    versions: dict[Allocation, int]
    loops: tuple
    added: bool = False
    copied: bool = False
    before: int | None = None

    def __post_init__(self):
        own, there = self.call.result, self.place.allocation
        same = (self.place.dtype, format_in(there.memory, self.place.dtype)) == (own.dtype, own.allocation.format)
        self.is_held = same and self.call.whole and not self.added and there.is_recorded(self.place)
        self._since = there.version
        self.readers: list = []  # other loops that read the place

    def is_kept(self) -> bool:
        """Return whether the place still has the result, bit for bit."""
        return self.is_held and self.place.allocation.is_unchanged(self.place, self._since)

    def is_repeatable(self, loops: tuple) -> bool:
        """Return whether the call would give the same result again, in `loops`."""
        known = self.call.reads is not None and loops == self.loops
        return known and self.call.versions() == self.versions and not any(one.is_register for one in self.versions)

    def part_of(self, view: View) -> View | None:
        """Return the part of the place with the elements of a view of the result; None if no pattern has them."""
        own = self.call.result
        whole = self.place.fitted(own.shape)
        if view.dtype != own.dtype or view.numbers is not None:
            return None
        if own.ndim == 2:
            found = whole.indexed(view.shape, [view.partition, view.element])
        elif view.shape == own.shape and view.element == own.element and view.partition == own.partition:
            found = whole
        else:
            return None
        cut = view.cut and self.part_of(view.cut.whole)
        kept = None if view.cut is None or cut is None else replace(view.cut, whole=cut)
        return replace(found, bounds=(*found.bounds, *view.bounds), cut=kept)

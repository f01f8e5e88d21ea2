"""Places of values: tensors in HBM, with copies in SBUF whose tiles have some dimensions along the partitions.

A *line* is a dimension of a view: its extent, and the elements of the whole tensor from one index to the next.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from math import prod
from typing import Any

from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, dma_copy
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.transfer import SHARE
from neuroncore_rtl.kernels.tiling.views import elements_at
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import Format
from neuroncore_rtl.spec.isa.access import allowed_start

__all__ = ["Axis", "Home", "SbufCopy", "ViewLine", "copy_tile", "laid_out", "places_of", "row_runs"]

ViewLine = tuple[int, int]
"""Extent, and step in elements of the whole tensor."""


@dataclass(frozen=True)
class Axis:
    """Dimension of a tensor: its extent and step, and either the rows or the elements of a tile between two indices."""

    extent: int
    step: int
    row: int = 0
    free: int = 0


@dataclass(eq=False)
class SbufCopy:
    """Elements of a tensor in SBUF.

    Arguments:
        format: format of the tiles, perhaps narrower than the tensor's.
        axes: dimensions by falling steps; together they have every element.
        tiles: tiles by their first row.
    """

    format: Format
    axes: tuple[Axis, ...]
    tiles: dict[int, Tensor] = field(default_factory=dict)

    def part(self, offset: int, rows: Sequence[ViewLine], free: Sequence[ViewLine]) -> Tensor | None:
        """Return the elements from `offset` on, `rows` along the partitions; None if no view of a tile has them."""
        row = at = 0
        spans = []
        for axis in self.axes:
            index, offset = divmod(offset, axis.step)
            row, at = row + index * axis.row, at + index * axis.free
            spans.append(index)
        if offset:
            return None
        steps = []
        for extent, step in (*rows, *free):
            if extent == 1 or step == 0:
                steps.append((None, 0))
                continue
            place = next((n for n, axis in enumerate(self.axes) if axis.step <= abs(step)), None)
            if place is None or step % self.axes[place].step:
                return None
            count = step // self.axes[place].step
            spans[place] += (extent - 1) * count
            steps.append((self.axes[place], count))
        if not all(0 <= span < axis.extent for span, axis in zip(spans, self.axes, strict=True)):
            return None
        count = 1
        for (extent, _), (axis, each) in reversed([*zip(rows, steps[: len(rows)], strict=True)]):
            if extent > 1 and (axis is None or each * axis.row != count):
                return None
            count *= extent
        if any(axis is not None and axis.row for axis, _ in steps[len(rows) :]):
            return None
        firsts = sorted(self.tiles)
        first = firsts[bisect_right(firsts, row) - 1]
        tile = self.tiles[first]
        start = row - first
        if start + count > tile.partitions:
            return None
        return replace(
            tile,
            partition=tile.partition + start,
            partitions=count,
            address=tile.address + at * self.format.bits // 8,
            shape=tuple(extent for extent, _ in free) or (1,),
            steps=tuple(0 if axis is None else each * axis.free for axis, each in steps[len(rows) :]) or (1,),
        )

    def legal(self, offset: int, rows: Sequence[ViewLine], free: Sequence[ViewLine], config: Config) -> Tensor | None:
        """Return `part`, unless the engines cannot start at its first partition."""
        found = self.part(offset, rows, free)
        if found is None or found.partition % config.quadrant:
            return None
        return found if allowed_start(found.partition, found.partitions, config.quadrant) is None else None

    @property
    def free_lines(self) -> list[ViewLine]:
        """Lines within a tile, outermost first."""
        return [(axis.extent, axis.step) for axis in self.axes if not axis.row and axis.extent > 1]

    def runs(self) -> Iterator[tuple[int, ViewLine, Tensor]]:
        """Yield the rows of all tiles: the first element of the tensor, the line along the partitions, and the tile."""
        rows = sorted((axis for axis in self.axes if axis.row), key=lambda axis: axis.row)
        inner = rows[0] if rows else Axis(1, 0, 1)
        for first, tile in sorted(self.tiles.items()):
            start = first
            while start < first + tile.partitions:
                end = min(first + tile.partitions, (start // inner.extent + 1) * inner.extent)
                offset = sum(start // axis.row % axis.extent * axis.step for axis in rows)
                yield offset, (end - start, inner.step), tile[start - first : end - first]
                start = end

    def source(self, tensor: HbmTensor) -> Iterator[tuple[HbmTensor, Tensor]]:
        """Yield parts of the tensor in HBM, and the tiles' parts with their elements."""
        lines = self.free_lines or [(1, 0)]
        for offset, line, tile in self.runs():
            extents, steps = zip(line, *lines, strict=True)
            yield elements_at(tensor, offset, extents, steps), tile.reshape(*extents[1:])


@dataclass(eq=False)
class Home:
    """A tensor in HBM, in row-major order, with copies in SBUF.

    Arguments:
        tensor: the tensor; its place in HBM may remain unused.
        is_stored: whether HBM has the elements.
        residents: copies in SBUF.
        pending: the product that computes the elements when a reader asks for them.
    """

    tensor: HbmTensor
    is_stored: bool = True
    residents: list[SbufCopy] = field(default_factory=list)
    pending: Any = None

    def offset(self, view: HbmTensor) -> int:
        """Return the first element of a view."""
        return (view.address - self.tensor.address) * 8 // self.tensor.format.bits


def laid_out(
    program: Program, fmt: Format, size: int, rows: Sequence[ViewLine], name: str, unit: int | None = None
) -> SbufCopy | None:
    """Return a new resident for a tensor of `size` elements with lines along the partitions; None if they do not fit.

    Every `unit` rows, by default those of the innermost line, start at partitions at which an operand may start.
    """
    config, lanes = program.config, program.lanes
    rows = [line for line in rows if line[0] > 1]
    unit = unit or (rows[-1][0] if rows else 1)
    for place in reversed(range(len(rows) - 1)):
        (outer, step), (extent, inner) = rows[place : place + 2]
        if step == extent * inner:
            rows[place : place + 2] = [(outer * extent, inner)]
    cuts = sorted({1, size, *(step for _, step in rows), *(extent * step for extent, step in rows)})
    if any(high % low for low, high in pairwise(cuts)) or cuts[-1] > size:
        return None
    axes, free = [], 1
    for low, high in pairwise(cuts):
        row = 1
        for extent, step in reversed(rows):
            if step <= low and high <= extent * step:
                axes.append(Axis(high // low, low, row=row * (low // step)))
                break
            row *= extent
        else:
            axes.append(Axis(high // low, low, free=free))
            free *= high // low
    count = prod(extent for extent, _ in rows)
    if prod(axis.extent for axis in axes if axis.row) != count:
        return None
    found = SbufCopy(fmt, tuple(reversed(axes)))
    for part in row_runs(config, lanes, count, unit):
        found.tiles[part.start] = program.space.sbuf(name, fmt, (free,), length(part))
    return found


def row_runs(config: Config, lanes: int, count: int, unit: int) -> list[slice]:
    """Return the rows of each tile, for rows in units that an operand may have: whole units, or parts of one."""
    starts = range(0, lanes, unit)
    packs = unit < lanes and lanes % unit == 0 and unit % config.quadrant == 0
    if packs and all(allowed_start(start, unit, config.quadrant) is None for start in starts):
        unit = lanes
    return [part for whole in cut(0, count, unit) for part in cut(whole.start, whole.stop, lanes)]


def places_of(lines: Sequence[ViewLine]) -> Iterator[int]:
    """Yield the first elements of all indices of some lines."""
    for index in product(*(range(extent) for extent, _ in lines)):
        yield sum(place * step for place, (_, step) in zip(index, lines, strict=True))


def copy_tile(program: Program, to: Tensor | HbmTensor, of: Tensor | HbmTensor, queues: Iterator[int | None]) -> None:
    """Append a copy between HBM and SBUF, in parts of a row that several queues share, for all ports if it is long."""
    width, ports = to.shape[-1], program.config.hbm_ports
    count = -(-width * to.format.bits // (SHARE * 8))
    if 2 * count > ports:
        count = -(-count // ports) * ports
    step = -(-width // count)
    for first in range(0, width, step):
        part = ..., slice(first, first + step)
        program.append(dma_copy(to[part], of[part]), next(queues))

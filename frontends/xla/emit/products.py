"""Products of matrices, batched.

On chip, the contracted dimensions lie along the partitions of both operands, which remain in SBUF for other readers.
Either operand is stationary, so that the result has its dimensions along the partitions. Sums that only one pass reads
remain in PSUM. Products of large matrices go from HBM to HBM.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from neuroncore_rtl.frontends.xla.emit.emission import Emission
from neuroncore_rtl.frontends.xla.emit.relayout import resident_with
from neuroncore_rtl.frontends.xla.emit.residents import SbufCopy, ViewLine, copy_tile, laid_out, places_of, row_runs
from neuroncore_rtl.frontends.xla.emit.streamed_products import emit_dot, format_of_dot
from neuroncore_rtl.frontends.xla.fuse.placement import number_of
from neuroncore_rtl.frontends.xla.graph.operations import Dot
from neuroncore_rtl.kernels.library.matmul import add_products
from neuroncore_rtl.kernels.program import HbmTensor, Tensor
from neuroncore_rtl.kernels.program.instructions import memset
from neuroncore_rtl.kernels.source import override_source
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.transfer import aligned
from neuroncore_rtl.kernels.tiling.views import elements_at, merged_lines
from neuroncore_rtl.spec.formats import FP32, INT8, INT32, Format

__all__ = ["ChipProduct", "contraction_rows"]

_BANKS = 2
"""Maximum PSUM banks of sums that a pass reads."""


def contraction_rows(view: HbmTensor, batch: Sequence[int], contract: Sequence[int]) -> list[ViewLine]:
    """Return the lines along the partitions of an operand: those contracted, and the batch around them."""
    inner = [(view.shape[d], view.steps[d]) for d in contract]
    outer = [(view.shape[d], view.steps[d]) for d in batch]
    around = [line for line in outer if all(line[1] > step for _, step in inner)]
    return sorted((*around, *inner), key=lambda line: -line[1])


@dataclass(frozen=True)
class _Chunk:
    """Part of the contraction: for each operand the first element, and the lines along the partitions."""

    offsets: list[int]
    lines: list[list[ViewLine]]

    @property
    def rows(self) -> int:
        return prod(extent for extent, _ in self.lines[0])


class ChipProduct:
    """A product on chip.

    Arguments:
        emission: the emission.
        dot: the operation.
        turned: whether the right operand is stationary, so that the result has its dimensions along the partitions.
        kept: format of the result in SBUF; None if it is not there.
        stored: whether the result goes to HBM.
        unit: rows of the result that a reader takes at once.
    """

    def __init__(self, emission: Emission, dot: Dot, *, turned: bool, kept: Format | None, stored: bool, unit: int):
        self.emission, self.program, self.dot = emission, emission.program, dot
        self.turned, self.kept, self.stored, self.unit = turned, kept, stored, unit
        self.format = format_of_dot(emission.options, dot)
        self.out = emission.tensors[dot.result]
        self.home = emission.home(self.out)
        self.views = views = [emission.view(value) or emission.tensor(value) for value in dot.operands]
        rank = len(dot.batch[0])
        pairs = zip(*dot.batch, range(rank), strict=True)
        self.batch = [(views[0].shape[a], views[0].steps[a], views[1].steps[b], self.out.steps[c]) for a, b, c in pairs]
        contract = zip(*dot.contract, strict=True)
        self.contract = merged_lines([(views[0].shape[a], views[0].steps[a], views[1].steps[b]) for a, b in contract])
        self.others, first = [], rank
        for view, (*_, free) in zip(views, dot.sides, strict=True):
            lines = [(view.shape[d], view.steps[d], self.out.steps[first + n]) for n, d in enumerate(free)]
            self.others.append(merged_lines(lines))
            first += len(free)
        self.operands: list[list[list[Tensor]]] | None = None

    def start(self) -> bool:
        """Bring the operands to SBUF; return whether that succeeds."""
        for grouped in (True, False) if self.operands is None else ():
            self.chunks = [*self._chunks(grouped)]
            found = [self._fetched(side) for side in (0, 1)]
            if all(found):
                self.operands = [one for one in found if one is not None]
                # The upper half of the significand of 0 or 1 is all of it.
                self.whole = [number_of(value, self.emission.makers) in (0, 1) for value in self.dot.operands]
                break
        return self.operands is not None

    def _chunks(self, grouped: bool) -> Iterator[_Chunk]:
        config, lanes = self.program.config, self.program.rows
        *outer, (extent, *steps) = self.contract
        group = 1
        if grouped and outer and len(row_runs(config, lanes, 2 * extent, extent)) == 1:
            group = lanes // extent
        last = outer.pop() if group > 1 else (1, 0, 0)
        for place in zip(*(places_of([(line[0], line[side]) for line in outer]) for side in (1, 2)), strict=True):
            for some in cut(0, last[0], group):
                for part in cut(0, extent, lanes):
                    sides = [(line, step, at) for line, step, at in zip(last[1:], steps, place, strict=True)]
                    offsets = [at + some.start * line + part.start * step for line, step, at in sides]
                    lines = [[(length(some), line), (length(part), step)] for line, step, _ in sides]
                    yield _Chunk(offsets, lines)

    def _fetched(self, side: int) -> list[list[Tensor]] | None:
        """Return the tiles of an operand for each batch index: contracted rows, and the other dimensions."""
        emission = self.emission
        lines = [(line[0], line[1]) for line in self.others[side]]
        places = [*places_of([(line[0], line[1 + side]) for line in self.batch])]
        if (number := number_of(self.dot.operands[side], emission.makers)) is not None:
            shape = tuple(extent for extent, _ in lines)
            tile = self.program.space.sbuf("number", self.format, shape, max(chunk.rows for chunk in self.chunks))
            self.program.append(memset(tile, number))
            return [[tile[: chunk.rows] for chunk in self.chunks]] * len(places)
        home = emission.home(self.views[side])
        first = home.offset(self.views[side])

        def tiles(resident: SbufCopy) -> list[list[Tensor]] | None:
            found = []
            for place in places:
                found.append([])
                for chunk in self.chunks:
                    offset = first + place + chunk.offsets[side]
                    tile = resident.legal(offset, chunk.lines[side], lines, self.program.config)
                    if tile is None:
                        return None
                    found[-1].append(tile)
            return found

        rows = contraction_rows(self.views[side], self.dot.batch[side], self.dot.contract[side])
        resident = resident_with(emission, home, self.format, rows, lambda one: tiles(one) is not None)
        return resident and tiles(resident)

    def finish(self) -> None:
        """Append the whole product, to SBUF, to HBM, or both."""
        self.home.pending = None
        with override_source(self.dot.source):
            if not self.start():
                emit_dot(self.emission, self.dot)
                self.home.is_stored = True
                return
            m, n = self._sides()
            unit = self.unit if m[-1][0] % self.unit == 0 else m[-1][0]
            resident = self._resident(m, unit) if self.kept else None
            self.stored |= resident is None
            runs = row_runs(self.program.config, self.program.lanes, m[-1][0], unit)
            for batch, place in enumerate(places_of([(line[0], line[3]) for line in self.batch])):
                for i, row in enumerate(places_of([(line[0], line[2]) for line in m[:-1]])):
                    for part in runs:
                        for j, column in enumerate(places_of([(line[0], line[2]) for line in n[:-1]])):
                            for few in cut(0, n[-1][0], self.program.config.psum_words):
                                columns = slice(j * n[-1][0] + few.start, j * n[-1][0] + few.stop)
                                sums = self._sums(batch, i, part, columns)
                                offset = place + row + part.start * m[-1][2] + column + few.start * n[-1][2]
                                lines = [(length(part), m[-1][2])], [(length(few), n[-1][2])]
                                self._move(resident, offset, *lines, sums)
            if resident is not None:
                self.home.residents.append(resident)
            self.home.is_stored = self.stored

    def _resident(self, m: Sequence[tuple[int, ...]], unit: int) -> SbufCopy | None:
        rows = [(line[0], line[3]) for line in self.batch] + [(line[0], line[2]) for line in m]
        assert self.kept is not None
        return laid_out(self.program, self.kept, self.out.size, rows, self.out.name, unit)

    def _move(
        self, resident: SbufCopy | None, offset: int, rows: list[ViewLine], free: list[ViewLine], sums: Tensor
    ) -> None:
        tile = None if resident is None else resident.legal(offset, rows, free, self.program.config)
        if tile is not None:
            self.emission.chip.move(tile, sums)
        if tile is None or (self.stored and tile.format is not self.out.format):
            tile = self.emission.chip.copied(sums, self.out.format, self.out.name)
        if self.stored:
            (m, step), (n, inner) = rows[0], free[0]
            part = elements_at(self.out, offset, (m, n), (step, inner))
            copy_tile(self.program, part, tile, self.program.stores)

    def tile(self, offset: int, rows: ViewLine, free: Sequence[ViewLine]) -> Tensor | None:
        """Append and return the sums of some elements, in PSUM; None if they are no part of it."""
        m, n = self._sides()
        wide = [line for line in free if line[0] > 1] or [(1, n[-1][2])]
        is_part = len(wide) == 1 and wide[0][1] == n[-1][2] and (rows[0] == 1 or rows[1] == m[-1][2])
        if not is_part or wide[0][0] > _BANKS * self.program.config.psum_words:
            return None
        lines = [(step, extent, group) for group, some in enumerate((self.batch, m, n)) for extent, *_, step in some]
        flat, last = [0, 0, 0], [0, 0, 0]
        for step, extent, group in sorted(lines, key=lambda line: -line[0]):
            index, offset = divmod(offset, step) if step else (0, offset)
            flat[group], last[group] = flat[group] * extent + index, index
        start, end = last[1], last[1] + rows[0]
        runs = merged_lines([(extent, step) for extent, *_, step in n])
        if end > m[-1][0] or (len(runs) > 1 and last[2] + wide[0][0] > n[-1][0]):
            return None
        with override_source(self.dot.source):
            sums = self._sums(flat[0], flat[1] // m[-1][0], slice(start, end), slice(flat[2], flat[2] + wide[0][0]))
            return sums.reshape(*(extent for extent, _ in free))

    def _sides(self) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        """Return the lines of the stationary and of the moving operand that are not contracted."""
        left, right = self.others
        return (right, left) if self.turned else (left, right)

    def _sums(self, batch: int, i: int, part: slice, few: slice) -> Tensor:
        """Append and return sums in PSUM.

        They are of some columns of the stationary operand, at index i of its outer dimensions, and of some of the
        moving operand, numbered through all of its dimensions.
        """
        assert self.operands is not None
        a, b = (1, 0) if self.turned else (0, 1)
        kind = INT32 if self.format is INT8 else FP32
        program, words = self.program, self.program.config.psum_words
        row, banks = self._sides()[1][-1][0], -(-length(few) // words)
        sums = program.space.psum("sums", kind, (banks * words,), length(part))[:, : length(few)]
        edges = sorted(
            {few.start, few.stop, *range(few.start, few.stop, words), *range(-(-few.start // row) * row, few.stop, row)}
        )
        targets = [sums[:, low - few.start : high - few.start] for low, high in pairwise(edges)]
        whole = self.whole[a], self.whole[b]
        for number, (tile, other) in enumerate(zip(self.operands[a][batch], self.operands[b][batch], strict=True)):
            stationary = aligned(program, _last(tile, i, part))
            moving = [
                _last(other, low // row, slice(low % row, low % row + high - low)) for low, high in pairwise(edges)
            ]
            passed = {"accumulate": number > 0, "transposed": self.turned, "whole": whole}
            add_products(program, targets, stationary, moving, **passed)
        return sums


def _last(tile: Tensor, index: int, part: slice) -> Tensor:
    """Return elements of the last dimension of a tile, at an index of the others in row-major order."""
    *outer, _ = tile.shape
    place = []
    for extent in reversed(outer):
        index, own = divmod(index, extent)
        place.insert(0, own)
    return tile[(slice(None), *place, part)]

"""Sorting of rows by Batcher's bitonic network, with its merges all in the same direction.

Chunks of rows are sorted along the partitions' free dimension. Then pairs of chunks are merged: comparisons between
elements of different chunks load both, those within a chunk follow on chip.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, dma_copy
from neuroncore_rtl.kernels.program.instructions import tensor_copy, tensor_copy_predicated
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.spec.formats import INT16, INT32, UINT8

__all__ = ["Comparator", "sort_rows"]

Comparator = Callable[[list[Tensor], list[Tensor]], Tensor]
"""Appends and returns whether elements, one tile per operand, are before others: UINT8, 0 or not."""

_CODES = {8: UINT8, 16: INT16, 32: INT32}
"""Formats whose copies keep all bits."""
_SHORTEST = 64
"""Minimum elements of a chunk, unless rows are shorter: instructions on less have the same cost."""
_VALUES = 24
"""Bytes of SBUF per element of a chunk, apart from those of the operands, that a comparison needs."""


@located
def sort_rows(program: Program, results: list[HbmTensor], operands: list[HbmTensor], is_before: Comparator) -> None:
    """Append the sort of operands [rows, columns] in HBM, together, along each row.

    The columns are a power of two. Elements that are before each other neither way change places perhaps: for a stable
    sort, an operand has the positions, and `is_before` compares them last.

    Raises:
        ValueError: if tensors are not row-major matrices of one shape, or the columns no power of two.
    """
    shapes = [one.shape for one in (*results, *operands)]
    rows, width = shapes[0] if len(shapes[0]) == 2 else (0, 0)
    if {*shapes} != {(rows, width)} or width.bit_count() != 1 or len(results) != len(operands):
        raise ValueError(f"sort_rows: shapes must be one, [rows, a power of two], not {shapes}")
    config = program.config
    room = config.sbuf_bytes // (_VALUES + 2 * sum(one.format.bits // 8 for one in operands))
    chunk = min(width, 1 << (room.bit_length() - 1))
    while chunk > _SHORTEST and rows * width // chunk < config.partitions:
        chunk //= 2
    count = rows * width // chunk
    store = [one.reshape(count, chunk) for one in results]
    network = _Network(program, is_before, count, chunk, [one.reshape(count, chunk) for one in operands])
    network.within(store, [(k, True) for k in _powers(2, chunk)])
    network.load = store
    for merged in _powers(2 * chunk, width):
        network.between(merged, is_flipped=True)
        for half in reversed([*_powers(2 * chunk, merged // 2)]):
            network.between(half, is_flipped=False)
        network.within(store, [(chunk, False)])


def _powers(first: int, last: int) -> Iterator[int]:
    while first <= last:
        yield first
        first *= 2


@dataclass
class _Network:
    """Comparisons of chunks [rows, chunk]; `load` has the chunks of each operand in HBM."""

    program: Program
    is_before: Comparator
    rows: int
    chunk: int
    load: Sequence[HbmTensor]

    def within(self, store: Sequence[HbmTensor], merges: Sequence[tuple[int, bool]]) -> None:
        """Append merges inside of chunks: of blocks of so many elements, whether their second half is reversed."""
        lanes = self.program.config.partitions
        for first in range(0, self.rows, lanes):
            part = slice(first, min(first + lanes, self.rows))
            tiles = [self._loaded(one[part]) for one in self.load]
            for merged, is_flipped in merges:
                for size in reversed([*_powers(2, merged)]):
                    halves = [_halves(tile, size, is_flipped and size == merged) for tile in tiles]
                    self._exchange([pair[0] for pair in halves], [pair[1] for pair in halves])
            self._stored([one[part] for one in store], tiles)

    def between(self, merged: int, *, is_flipped: bool) -> None:
        """Append the comparisons between the halves of blocks of `merged` elements, each of some chunks."""
        count = merged // self.chunk // 2
        groups = self.rows // (2 * count)
        halves = [one.reshape(groups, 2, count, self.chunk) for one in self.load]
        lower, upper = ([one[:, half] for one in halves] for half in (0, 1))
        if is_flipped:
            upper = [one[:, ::-1] for one in upper]
        for index in _indices(groups, count, self.program.config.partitions):
            places = [[one[index] for one in side] for side in (lower, upper)]
            tiles = [[self._loaded(one) for one in side] for side in places]
            self._exchange(tiles[0], [tile[:, :: -1 if is_flipped else 1] for tile in tiles[1]])
            for side, own in zip(places, tiles, strict=True):
                self._stored(side, own)

    def _loaded(self, part: HbmTensor) -> Tensor:
        tile = self.program.space.sbuf("chunk", part.format, (self.chunk,), part.shape[0])
        self.program.append(dma_copy(tile, part))
        return tile

    def _stored(self, parts: Sequence[HbmTensor], tiles: Sequence[Tensor]) -> None:
        for part, tile in zip(parts, tiles, strict=True):
            self.program.append(dma_copy(part, tile))

    def _exchange(self, lower: list[Tensor], upper: list[Tensor]) -> None:
        """Append exchanges of elements where the upper one is to be before the lower one."""
        wrong = self.is_before(upper, lower)
        for a, b in zip(lower, upper, strict=True):
            codes = _CODES[a.format.bits]
            a, b = a.bitcast(codes), b.bitcast(codes)
            kept = self.program.space.sbuf("scratch", codes, a.shape, a.partitions)
            self.program.append(tensor_copy(kept, a))
            self.program.append(tensor_copy_predicated(a, wrong, b))
            self.program.append(tensor_copy_predicated(b, wrong, kept))


def _indices(groups: int, count: int, lanes: int) -> Iterator[tuple[int | slice, int | slice]]:
    """Yield the parts of [groups, count] that fill at most so many partitions, along the longer dimension."""
    parts = [slice(first, first + lanes) for first in range(0, max(groups, count), lanes)]
    for one, part in product(range(min(groups, count)), parts):
        yield (part, one) if groups >= count else (one, part)


def _halves(tile: Tensor, size: int, is_flipped: bool) -> tuple[Tensor, Tensor]:
    """Return the halves of all blocks of `size` elements; the second ones reversed if they are flipped."""
    blocks = tile.reshape(tile.size // size, 2, size // 2)
    return blocks[:, :, 0], blocks[:, :, 1, :: -1 if is_flipped else 1]

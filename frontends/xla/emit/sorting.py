"""Sorting of rows by Batcher's bitonic network, with its merges all in the same direction.

Chunks of rows are sorted along the partitions' free dimension. Then pairs of chunks are merged: comparisons between
elements of different chunks load both, those within a chunk follow on chip.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from neuroncore_rtl.frontends.xla.emit.emission import Emission
from neuroncore_rtl.frontends.xla.emit.functions import evaluate
from neuroncore_rtl.frontends.xla.emit.lanes import LaneOperand, Lanes
from neuroncore_rtl.frontends.xla.fuse.placement import number_of
from neuroncore_rtl.frontends.xla.graph import operations as graph
from neuroncore_rtl.frontends.xla.refusal import Refused
from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, dma_copy
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.formats import INT16, INT32, UINT8

__all__ = ["emit_sort_rows"]

_CODES = {8: UINT8, 16: INT16, 32: INT32}
"""Formats whose copies keep all bits."""
_SHORTEST = 64
"""Minimum elements of a chunk, unless rows are shorter: instructions on less have the same cost."""
_VALUES = 24
"""Bytes of SBUF per element of a chunk, apart from those of the operands, that a comparison needs."""


def emit_sort_rows(emission: Emission, sort: graph.SortRows) -> None:
    """Append the network on all rows."""
    rows, width = sort.operands[0].shape
    config = emission.program.config
    room = config.sbuf_bytes // (_VALUES + 2 * sum(one.type.bits // 8 for one in sort.operands))
    chunk = min(width, 1 << (room.bit_length() - 1))
    while chunk > _SHORTEST and rows * width // chunk < config.partitions:
        chunk //= 2
    network = _Network(emission, sort, rows * width // chunk, chunk)
    network.load = [emission.dense(one).reshape(network.rows, chunk) for one in sort.operands]
    store = [emission.new(one).reshape(network.rows, chunk) for one in sort.results]
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

    emission: Emission
    sort: graph.SortRows
    rows: int
    chunk: int
    load: Sequence[HbmTensor] = ()

    @property
    def program(self) -> Program:
        return self.emission.program

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

    def _exchange(self, lower: Sequence[Tensor], upper: Sequence[Tensor]) -> None:
        """Append exchanges of elements where the upper one is to be before the lower one."""
        lanes = Lanes(self.program, lower[0].shape, lower[0].partitions)
        wrong = _compared(
            self.emission, lanes, self.sort.body, [one for pair in zip(upper, lower, strict=True) for one in pair]
        )
        for a, b in zip(lower, upper, strict=True):
            codes = _CODES[a.format.bits]
            a, b, kept = a.bitcast(codes), b.bitcast(codes), lanes.new(codes)
            self.program.append(isa.tensor_copy(kept, a))
            self.program.append(isa.tensor_copy_predicated(a, wrong, b))
            self.program.append(isa.tensor_copy_predicated(b, wrong, kept))


def _indices(groups: int, count: int, lanes: int) -> Iterator[tuple[int | slice, int | slice]]:
    """Yield the parts of [groups, count] that fill at most so many partitions, along the longer dimension."""
    parts = [slice(first, first + lanes) for first in range(0, max(groups, count), lanes)]
    for one, part in product(range(min(groups, count)), parts):
        yield (part, one) if groups >= count else (one, part)


def _halves(tile: Tensor, size: int, is_flipped: bool) -> tuple[Tensor, Tensor]:
    """Return the halves of all blocks of `size` elements; the second ones reversed if they are flipped."""
    blocks = tile.reshape(tile.size // size, 2, size // 2)
    return blocks[:, :, 0], blocks[:, :, 1, :: -1 if is_flipped else 1]


def _compared(emission: Emission, lanes: Lanes, body: graph.Graph, operands: Sequence[Tensor]) -> Tensor:
    """Append the result of a comparator on pairs of tiles."""
    known: dict[graph.Value, LaneOperand] = dict(zip(body.arguments, operands, strict=True))
    for operation in body.operations:
        if isinstance(operation, graph.Constant):
            continue
        values = [known[one] if one in known else _number(emission, one, operation) for one in operation.operands]
        if isinstance(operation, graph.Broadcast | graph.Reshape):
            (known[operation.result],) = values
        elif isinstance(operation, graph.Pointwise):
            to = operation.result.type
            dst = known[operation.result] = lanes.new(to.format, operation.function)
            evaluate(lanes, operation.function, dst, to, operation.operands[0].type, *values)
        else:
            kind = type(operation).__name__
            raise Refused(f"comparators of a sort must consist of functions of elements, not {kind}", operation.source)
    return lanes.tile(known[body.results[0]], UINT8)


def _number(emission: Emission, value: graph.Value, operation: graph.Operation) -> LaneOperand:
    if (number := number_of(value, emission.makers)) is None:
        raise Refused("comparators of a sort must read nothing but its elements and constants", operation.source)
    return number

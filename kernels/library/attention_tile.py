"""Attention of a tile of queries of a head, a block of keys after the other, as many as a bank of PSUM holds the scores
of: the vector engine finds the largest score, the scalar engine computes exponentials and their sum, the tensor engine
turns these weights round, as the second product contracts over keys.

What earlier blocks have summed up is scaled to the maximum so far, so that any number of keys fits.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import NamedTuple

from neuroncore_rtl.kernels.library.product import accumulated
from neuroncore_rtl.kernels.library.transpose import turned
from neuroncore_rtl.kernels.program import Program, Rows, Tensor
from neuroncore_rtl.kernels.program.instructions import (
    activation,
    affine_select,
    scalar_tensor_tensor,
    tensor_copy,
    tensor_scalar,
    tensor_scalar_reduce,
)
from neuroncore_rtl.kernels.tiling.blocks import cut, length, neighbours
from neuroncore_rtl.kernels.tiling.inverse import inverse
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp, Elementwise, Index

__all__ = ["HIDDEN", "Head", "Queries", "hide"]

Copy = Callable[[Tensor, Tensor], Elementwise]
"""The instruction that brings a piece of PSUM to SBUF, of either engine: its place, and the piece."""

HIDDEN = -(2.0**100)
"""The score of a key that a query does not see: its exponential is zero."""


class Head(NamedTuple):
    """What a head works on, in SBUF.

    Arguments:
        q_t: [width, queries]; k_t: [width, keys], in tiles alike.
        v: [keys, features], in tiles that may be operands of the array, and results of it.
    """

    q_t: Rows
    k_t: Rows
    v: Rows


def hide(program: Program, scores: Tensor, own: int) -> None:
    """Append what hides from a tile of queries the scores of keys that come after a query's own.

    Arguments:
        program: what it is appended to.
        scores: in PSUM.
        own: column of the first query's own key; each query's is the one behind that of the query before.
    """
    visible = min(max(0, own + 1), scores.size)
    if visible < scores.size:
        index, hidden = Index(base=own - visible, partition=1, steps=(-1,)), scores[:, visible:]
        # Number of query - number of key >= 0.
        program.append(affine_select(hidden, hidden, index, AluOp.IS_GE, HIDDEN))


@dataclass
class Queries:
    """Queries of a head that are a tile of the result.

    Arguments:
        program: what it is appended to.
        head: the head.
        rows: which queries.
        past: keys before that of the first query of all; None: every query sees all keys.
        scale: of scores.
        matrix: an identity matrix of the format of v.
        copies: what brings a piece of PSUM to SBUF, on either engine in turn.
        out, bias, inverse: where results go.
        finish: appends what follows when `out` is there.
    """

    program: Program
    head: Head
    rows: slice
    past: int | None
    scale: float
    matrix: Tensor
    copies: Iterator[Copy]
    out: Tensor
    bias: Tensor
    inverse: Tensor
    finish: Callable[[], None]

    def __post_init__(self):
        # Of the keys so far: their bias, the sum of their exponentials, and of values times these, by pieces.
        self._bias: Tensor | None = None
        self._total: Tensor | None = None
        self._values: dict[int, Tensor] = {}

    def blocks(self) -> Iterator[Iterator[None]]:
        """Yield of each block of keys, in their order, what appends it, a step at a time; see
        :func:`kernels.tiling.pipeline.pipelined`."""
        keys = self.head.v.shape[0] if self.past is None else self.past + self.rows.stop
        seen = [
            tile[: keys - part.start]
            for part, tile in zip(self.head.v.parts, self.head.v.tiles, strict=True)
            if part.start < keys
        ]
        parts = Rows(tuple(seen)).parts
        for few in neighbours(parts, self.program.config.psum_words):
            yield self._steps(parts[few], seen[few], parts[few][-1] is parts[-1])

    def _steps(self, parts: Sequence[slice], values: Sequence[Tensor], last: bool) -> Iterator[None]:
        """Append a block of keys, a step at a time.

        Arguments:
            parts: its keys, a slice for each tile.
            values: of these.
            last: whether there are none behind.
        """
        program, space = self.program, self.program.space
        keys = slice(parts[0].start, parts[-1].stop)
        scores = accumulated(program, self.head.q_t.tiles, [tile[:, keys] for tile in self.head.k_t.tiles], self.rows)
        n = scores.partitions
        yield
        before, self._bias = self._bias, self.bias if last else space.sbuf("bias", FP32, (1,), n)
        weights, total = self._exponentials(scores, keys.start, self._bias, before)
        rescale = None
        if before is not None:
            rescale = space.sbuf("rescale", FP32, (1,), n)
            program.append(activation(rescale, before, "exp", scale=-1.0, bias=self._bias))
        yield
        # Scores of the next tiles go first: the array works while these exponentials are on their way.
        yield
        weights_t = self._turned(weights, [length(part) for part in parts])
        yield
        if rescale is not None:
            assert self._total is not None
            total = self._added(total, rescale, self._total)
        self._total = total
        if last:
            inverse(program, self.inverse, self._total)
        pieces = cut(0, self.out.size, program.config.psum_words)
        for number, columns in enumerate(pieces):
            sums = accumulated(program, weights_t, [tile[:, columns] for tile in values], slice(0, n))
            # One bank may wait a step; more of them would fill PSUM.
            if columns is pieces[-1]:
                yield
            self._keep(number, columns, sums, rescale, last)
        if last:
            self.finish()

    def _keep(self, number: int, columns: slice, sums: Tensor, rescale: Tensor | None, last: bool) -> None:
        """Append what becomes of a block's values times weights, in a piece of columns.

        Arguments:
            number, columns: of the piece.
            sums: in PSUM.
            rescale: of what is known of the keys before; None: there are none.
            last: whether there are no keys behind.
        """
        if rescale is not None:
            sums = self._added(sums, rescale, self._values[number])
        if last:
            self.program.append(tensor_scalar(self.out[:, columns], sums, self.inverse, AluOp.MULTIPLY))
            return
        if rescale is None:
            place = self.program.space.sbuf("values", FP32, sums.shape, sums.partitions)
            self.program.append(tensor_copy(place, sums))
            sums = place
        self._values[number] = sums

    def _exponentials(self, scores: Tensor, first: int, bias: Tensor, before: Tensor | None) -> tuple[Tensor, Tensor]:
        """Append the bias of the keys so far, exp(scores * scale + bias), and its sum; return the latter two.

        Arguments:
            scores: of keys from the first one on.
            bias: where it goes.
            before: that of earlier keys; None: there are none.
        """
        program, space, n = self.program, self.program.space, scores.partitions
        scaled, weights = (space.sbuf("scores", fmt, scores.shape, n) for fmt in (FP32, self.head.v.format))
        total, largest = (space.sbuf(name, FP32, (1,), n) for name in ("total", "largest"))
        if self.past is not None:
            hide(program, scores, self.past + self.rows.start - first)
        # From here on in SBUF, so that the bank is soon free.
        program.append(tensor_scalar_reduce(scaled, scores, self.scale, AluOp.MULTIPLY, largest, AluOp.MAX))
        least = {} if before is None else {"s1": before, "op1": AluOp.MIN}
        program.append(tensor_scalar(bias, largest, -1.0, AluOp.MULTIPLY, **least))
        # Backwards, as the array reads its operands forwards: behind it, it would wait in one bank after another.
        program.append(activation(weights[:, ::-1], scaled[:, ::-1], "exp", bias=bias, sum_into=total))
        return weights, total

    def _turned(self, weights: Tensor, lengths: Sequence[int]) -> list[Tensor]:
        """Append and return weights transposed, a tensor for each tile of keys, of such lengths."""
        n, found = weights.partitions, []
        ends = [*accumulate(lengths, initial=0)]
        for size, alike in groupby(map(slice, ends, ends[1:]), key=length):
            alike = list(alike)
            # In two banks, or more, so that both engines bring them to SBUF at once.
            most = min(max(1, self.program.config.psum_words // n), -(-len(alike) // 2))
            for few in cut(0, len(alike), most):
                sums = turned(self.program, [weights[:, part] for part in alike[few]], self.matrix)
                tile = self.program.space.sbuf("weights_t", weights.format, sums.shape, size)
                self.program.append(next(self.copies)(tile, sums))
                found += [tile[:, part] for part in cut(0, tile.size, n)]
        return found

    def _added(self, new: Tensor, rescale: Tensor, old: Tensor) -> Tensor:
        """Append and return what a block adds to what was known before, scaled."""
        place = self.program.space.sbuf("values", FP32, new.shape, new.partitions)
        self.program.append(scalar_tensor_tensor(place, old, rescale, AluOp.MULTIPLY, new, AluOp.ADD))
        return place

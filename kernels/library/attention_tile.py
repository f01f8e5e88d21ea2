"""Attention of a tile of queries of one head, in blocks of keys: the scores of a query and a block fill a PSUM bank.

1. The array multiplies q k.T.
2. The vector engine finds the largest score of each query.
3. The scalar engine computes exponentials and their sums.
4. The array transposes these weights, since the second product contracts over keys, and multiplies them by v.

Sums of earlier blocks are rescaled to the maximum so far, so that any number of keys fits.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any, NamedTuple

from neuroncore_rtl.kernels.library.product import accumulate_product
from neuroncore_rtl.kernels.library.transpose import transpose_tiles
from neuroncore_rtl.kernels.program import Program, Tensor
from neuroncore_rtl.kernels.program.instructions import (
    activation,
    affine_select,
    scalar_tensor_tensor,
    tensor_copy,
    tensor_scalar,
    tensor_scalar_reduce,
)
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.blocks import cut, length, neighbours
from neuroncore_rtl.kernels.tiling.inverse import inverse
from neuroncore_rtl.kernels.tiling.rows import Rows
from neuroncore_rtl.spec.formats import FP32
from neuroncore_rtl.spec.isa import AluOp, Elementwise, Index

__all__ = ["HIDDEN", "Head", "Queries", "hide"]

Copy = Callable[[Tensor, Tensor], Elementwise]
"""Instruction of either engine that copies a tensor from PSUM to SBUF: destination, source."""

HIDDEN = -(2.0**100)
"""Score that replaces the score of a masked key: its exponential is zero."""


class Head(NamedTuple):
    """Operands of a head: `Rows`, matrices in HBM, which `attention` loads, or a tensor in SBUF as a single tile.

    Several heads of queries may have the same keys and values (grouped queries).

    Arguments:
        k_t: transposed keys [width, keys], in tiles of the same rows as q_t.
        v: values [keys, features], in tiles that are legal operands and results of the array.
    """

    q_t: Any  # Rows, HbmTensor or Tensor; Rows within `Queries`
    k_t: Any
    v: Any


@located
def hide(program: Program, scores: Tensor, own: int) -> None:
    """Append the causal mask of scores: query i, from 0 on, sees only the keys of columns 0 to `own` + i."""
    visible = min(max(0, own + 1), scores.size)
    if visible < scores.size:
        index, hidden = Index(base=own - visible, partition=1, steps=(-1,)), scores[:, visible:]
        # Keep a score where index of query - index of key >= 0.
        program.append(affine_select(hidden, hidden, index, AluOp.IS_GE, HIDDEN))


@dataclass
class Queries:
    """Attention of one head for a tile of queries.

    `rows` are the indices of the queries, and `past` keys lie before the position of query 0; None masks no key.
    `matrix` is an identity matrix in the format of v, `copies` yields functions that return a copy instruction from
    PSUM to SBUF, on alternating engines. `finish` appends the consumers of `out`; for `bias` and `inverse` see
    `kernels.library.attention.Attended`.
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
        # Results of the blocks so far: negated maximum, sum of exponentials, and weighted values by piece of columns.
        self._bias: Tensor | None = None
        self._total: Tensor | None = None
        self._values: dict[int, Tensor] = {}

    def blocks(self) -> Iterator[Iterator[None]]:
        """Yield, for each block of keys, the generator of its steps; see `kernels.tiling.pipeline.pipelined`."""
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
        program, space = self.program, self.program.space
        keys = slice(parts[0].start, parts[-1].stop)
        scores = accumulate_product(
            program, self.head.q_t.tiles, [tile[:, keys] for tile in self.head.k_t.tiles], self.rows
        )
        n = scores.partitions
        yield
        before, self._bias = self._bias, self.bias if last else space.sbuf("bias", FP32, (1,), n)
        weights, total = self._exponentials(scores, keys.start, self._bias, before)
        rescale = None
        if before is not None:
            rescale = space.sbuf("rescale", FP32, (1,), n)
            program.append(activation(rescale, before, "exp", scale=-1.0, bias=self._bias))
        yield
        # The array multiplies scores of the next tiles while these exponentials are in flight.
        yield
        weights_t = self._transpose(weights, [length(part) for part in parts])
        yield
        if rescale is not None:
            assert self._total is not None
            total = self._rescaled_sum(total, rescale, self._total)
        self._total = total
        if last:
            inverse(program, self.inverse, self._total)
        pieces = cut(0, self.out.size, program.config.psum_words)
        for number, columns in enumerate(pieces):
            sums = accumulate_product(program, weights_t, [tile[:, columns] for tile in values], slice(0, n))
            # Yield only after the last piece, so that at most one bank of sums is unread at a yield; more would fill
            # PSUM.
            if columns is pieces[-1]:
                yield
            self._keep(number, columns, sums, rescale, last)
        if last:
            self.finish()

    def _keep(self, number: int, columns: slice, sums: Tensor, rescale: Tensor | None, last: bool) -> None:
        if rescale is not None:
            sums = self._rescaled_sum(sums, rescale, self._values[number])
        if last:
            self.program.append(tensor_scalar(self.out[:, columns], sums, self.inverse, AluOp.MULTIPLY))
            return
        if rescale is None:
            place = self.program.space.sbuf("values", FP32, sums.shape, sums.partitions)
            self.program.append(tensor_copy(place, sums))
            sums = place
        self._values[number] = sums

    def _exponentials(self, scores: Tensor, first: int, bias: Tensor, before: Tensor | None) -> tuple[Tensor, Tensor]:
        """Append and return exponentials and their sums; `bias` receives the negated maximum so far.

        `first` is the index of the block's first key, `before` the negated maximum over all earlier blocks, or None.
        """
        program, space, n = self.program, self.program.space, scores.partitions
        scaled, weights = (space.sbuf("scores", fmt, scores.shape, n) for fmt in (FP32, self.head.v.format))
        total, largest = (space.sbuf(name, FP32, (1,), n) for name in ("total", "largest"))
        if self.past is not None:
            hide(program, scores, self.past + self.rows.start - first)
        # Move the scores to SBUF, to free the bank early.
        program.append(tensor_scalar_reduce(scaled, scores, self.scale, AluOp.MULTIPLY, largest, AluOp.MAX))
        least = {} if before is None else {"s1": before, "op1": AluOp.MIN}
        program.append(tensor_scalar(bias, largest, -1.0, AluOp.MULTIPLY, **least))
        # In reverse order: the array reads forwards, and following it would conflict in bank after bank.
        program.append(activation(weights[:, ::-1], scaled[:, ::-1], "exp", bias=bias, sum_into=total))
        return weights, total

    def _transpose(self, weights: Tensor, lengths: Sequence[int]) -> list[Tensor]:
        n, found = weights.partitions, []
        ends = [*accumulate(lengths, initial=0)]
        for size, alike in groupby(map(slice, ends, ends[1:]), key=length):
            alike = list(alike)
            # At least two PSUM banks, so that both engines can copy at the same time.
            most = min(max(1, self.program.config.psum_words // n), -(-len(alike) // 2))
            for few in cut(0, len(alike), most):
                sums = transpose_tiles(self.program, [weights[:, part] for part in alike[few]], self.matrix)
                tile = self.program.space.sbuf("weights_t", weights.format, sums.shape, size)
                self.program.append(next(self.copies)(tile, sums))
                found += [tile[:, part] for part in cut(0, tile.size, n)]
        return found

    def _rescaled_sum(self, new: Tensor, rescale: Tensor, old: Tensor) -> Tensor:
        place = self.program.space.sbuf("values", FP32, new.shape, new.partitions)
        self.program.append(scalar_tensor_tensor(place, old, rescale, AluOp.MULTIPLY, new, AluOp.ADD))
        return place

"""Scaled dot-product attention: softmax(q k.T * scale) v of each head, any number of queries and keys.

Scores and weights never leave the chip. A tile of queries goes over blocks of keys, as many as a bank of PSUM holds the
scores of: the vector engine finds the largest score, the scalar engine computes exponentials and their sum, the tensor
engine turns these weights round, as the second product contracts over keys. What earlier blocks have summed up is
scaled to the maximum so far, so that any number of keys fits.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from math import sqrt
from typing import NamedTuple

from neuroncore_rtl.kernels.library.blocks import cut, length, neighbours
from neuroncore_rtl.kernels.library.pipeline import pipelined
from neuroncore_rtl.kernels.library.product import accumulated
from neuroncore_rtl.kernels.library.transfer import lanes_of
from neuroncore_rtl.kernels.library.transpose import identity, turned
from neuroncore_rtl.kernels.program import Program, Rows, Tensor, place_rows
from neuroncore_rtl.kernels.program.instructions import (
    activation,
    affine_select,
    reciprocal,
    scalar_tensor_tensor,
    tensor_copy,
    tensor_scalar,
    tensor_scalar_reduce,
    tensor_tensor,
)
from neuroncore_rtl.spec.config import PSUM_WORDS
from neuroncore_rtl.spec.formats import BF16, FP32, INT8, MATMUL_FORMATS, Format
from neuroncore_rtl.spec.isa import AluOp, Index

__all__ = ["HIDDEN", "Attended", "Head", "attention", "hide"]

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


class Attended(NamedTuple):
    """What attention returns, in SBUF, in tiles of queries that may be operands of the array.

    Arguments:
        out: [queries, features], those of the heads side by side.
        biases, inverses: [queries, heads], FP32: the weights of head h are exp(scores * scale + biases[:, h]) *
            inverses[:, h], biases being largest scores with the other sign.
    """

    out: Rows
    biases: Rows
    inverses: Rows


def attention(
    program: Program,
    heads: Sequence[Head],
    matrix: Tensor | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    name: str = "attended",
    fmt: Format = BF16,
) -> Attended:
    """Append and return softmax(q k.T * scale) v, each head's features beside those of the one before.

    Arguments:
        program: what it is appended to.
        heads: of as many queries and keys each, of formats that the tensor engine multiplies in one pass.
        matrix: an identity matrix of the format of v; None: one is made.
        causal: whether a query sees only keys up to its own, the last query's being the last key.
        scale: of scores, above 0; None: 1 / sqrt(width).
        name, fmt: of the result.

    Raises:
        ValueError: if shapes or formats do not fit each other, or there are more queries than keys if causal.
    """
    queries, keys = _check(heads, causal, scale)
    lanes, widths = lanes_of(program.config), [head.v.shape[1] for head in heads]
    ends = [sum(widths[: number + 1]) for number in range(len(heads))]
    out = place_rows(program.space, name, fmt, queries, sum(widths), lanes=lanes)
    biases, inverses = (
        place_rows(program.space, f"{name}.{what}", FP32, queries, len(heads), lanes=lanes)
        for what in ("biases", "inverses")
    )
    matrix = matrix or identity(program, heads[0].v.format)
    pipelined(
        _Tile(
            program,
            head,
            rows,
            keys - queries if causal else None,
            scale or 1 / sqrt(head.q_t.shape[0]),
            matrix,
            out.tiles[tile][:, end - width : end],
            biases.tiles[tile][:, number : number + 1],
            inverses.tiles[tile][:, number : number + 1],
        ).steps()
        for number, (head, width, end) in enumerate(zip(heads, widths, ends, strict=True))
        for tile, rows in enumerate(out.parts)
    )
    return Attended(out, biases, inverses)


def _check(heads: Sequence[Head], causal: bool, scale: float | None) -> tuple[int, int]:
    """Return how many queries and keys there are; ValueError if heads do not fit."""
    (_, queries), (keys, _) = heads[0].q_t.shape, heads[0].v.shape
    allowed = [fmt for fmt in MATMUL_FORMATS if fmt not in (FP32, INT8)]
    for q_t, k_t, v in heads:
        width = q_t.shape[0]
        if (q_t.shape[1], k_t.shape, v.shape[0]) != (queries, (width, keys), keys):
            found = ", ".join(str(list(one.shape)) for one in (q_t, k_t, v))
            raise ValueError(
                f"q_t, k_t, v must be [width, {queries}], [width, {keys}], [{keys}, features], not {found}"
            )
        if q_t.format not in allowed or k_t.format != q_t.format or v.format not in allowed:
            names = ", ".join(fmt.name for fmt in allowed)
            found = ", ".join(one.format.name for one in (q_t, k_t, v))
            raise ValueError(f"q_t, k_t, v: formats must be of {names}, that of q_t that of k_t, not {found}")
    if causal and queries > keys:
        raise ValueError(f"queries must be at most the {keys} keys if causal, not {queries}")
    if scale is not None and not scale > 0:
        raise ValueError(f"scale must be above 0, not {scale}")
    return queries, keys


def hide(program: Program, scores: Tensor, own: int, place: Tensor | None = None) -> int:
    """Append what hides from a tile of queries the scores of keys that come after a query's own.

    Arguments:
        program: what it is appended to.
        scores: in PSUM.
        own: column of the first query's own key; each query's is the one behind that of the query before.
        place: like scores, where those of keys go that not all queries see; None: they stay.

    Returns:
        How many keys, from the first one on, all queries see.
    """
    visible = min(max(0, own + 1), scores.size)
    if visible < scores.size:
        index = Index(base=own - visible, partition=1, steps=(-1,))
        hidden = (place or scores)[:, visible:]
        # Number of query - number of key >= 0.
        program.append(affine_select(hidden, scores[:, visible:], index, AluOp.IS_GE, HIDDEN))
    return visible


class _Tile(NamedTuple):
    """Queries of a head that are a tile of the result.

    Arguments:
        rows: which queries.
        past: keys before that of the first query of all; None: every query sees all keys.
        out, bias, inverse: where results go.
    """

    program: Program
    head: Head
    rows: slice
    past: int | None
    scale: float
    matrix: Tensor
    out: Tensor
    bias: Tensor
    inverse: Tensor

    def steps(self) -> Iterator[None]:
        """Append it, a step at a time."""
        space, head = self.program.space, self.head
        keys = head.v.shape[0] if self.past is None else self.past + self.rows.stop
        seen = [
            tile[: keys - part.start]
            for part, tile in zip(head.v.parts, head.v.tiles, strict=True)
            if part.start < keys
        ]
        parts = Rows(tuple(seen)).parts
        before = None
        for few in neighbours(parts, PSUM_WORDS):
            first, end, last = parts[few][0].start, parts[few][-1].stop, parts[few][-1] is parts[-1]
            scores = accumulated(
                self.program, head.q_t.tiles, [tile[:, first:end] for tile in head.k_t.tiles], self.rows
            )
            yield
            bias = self.bias if last else space.sbuf("bias", FP32, (1,), scores.partitions)
            weights, total = self._exponentials(scores, first, bias, before)
            yield
            weights_t = self._turned(weights, [length(part) for part in parts[few]])
            yield
            sums = [
                accumulated(
                    self.program, weights_t, [tile[:, columns] for tile in seen[few]], slice(0, scores.partitions)
                )
                for columns in cut(0, self.out.size, PSUM_WORDS)
            ]
            # One block's sums may wait in PSUM.
            alone = last and before is None
            before = _Sums(bias, total, sums) if alone else self._added(bias, total, sums, before)
        yield
        self.program.append(reciprocal(self.inverse, before.total))
        for columns, part in zip(cut(0, self.out.size, PSUM_WORDS), before.values, strict=True):
            self.program.append(tensor_scalar(self.out[:, columns], part, self.inverse, AluOp.MULTIPLY))

    def _exponentials(self, scores: Tensor, first: int, bias: Tensor, before: "_Sums | None") -> tuple[Tensor, Tensor]:
        """Append the bias of the keys so far, exp(scores * scale + bias), and its sum; return the latter two.

        Arguments:
            scores: of keys from the first one on.
            bias: where it goes.
            before: what is known of earlier keys; None: there are none.
        """
        program, space, n = self.program, self.program.space, scores.partitions
        scaled, weights = (space.sbuf("scores", fmt, scores.shape, n) for fmt in (FP32, self.head.v.format))
        total, *largest = (space.sbuf(name, FP32, (1,), n) for name in ("total", "largest", "largest"))
        # PSUM is read once, as one engine reads it at a time.
        seen = scores.size
        if self.past is not None:
            seen = hide(program, scores, self.past + self.rows.start - first, scaled)
        pieces = [(scores, slice(0, seen)), (scaled, slice(seen, scores.size))]
        pieces = [(source, columns) for source, columns in pieces if length(columns)]
        for (source, columns), most in zip(pieces, largest, strict=False):
            operands = scaled[:, columns], source[:, columns], self.scale
            program.append(tensor_scalar_reduce(*operands, AluOp.MULTIPLY, most, AluOp.MAX))
        if len(pieces) > 1:
            program.append(tensor_tensor(largest[0], *largest, AluOp.MAX))
        least = (before.bias, AluOp.MIN) if before else ()
        program.append(tensor_scalar(bias, largest[0], -1.0, AluOp.MULTIPLY, *least))
        program.append(activation(weights, scaled, "exp", bias=bias, sum_into=total))
        return weights, total

    def _turned(self, weights: Tensor, lengths: Sequence[int]) -> list[Tensor]:
        """Append and return weights transposed, a tensor for each tile of keys, of such lengths."""
        n, found = weights.partitions, []
        ends = [*accumulate(lengths, initial=0)]
        for size, alike in groupby(map(slice, ends, ends[1:]), key=length):
            alike = list(alike)
            # As many as a bank has room for leave it together.
            for few in cut(0, len(alike), PSUM_WORDS // n):
                sums = turned(self.program, [weights[:, part] for part in alike[few]], self.matrix)
                tile = self.program.space.sbuf("weights_t", weights.format, sums.shape, size)
                self.program.append(activation(tile, sums, "identity", bias=-0.0))
                found += [tile[:, part] for part in cut(0, tile.size, n)]
        return found

    def _added(self, bias: Tensor, total: Tensor, sums: Sequence[Tensor], before: "_Sums | None") -> "_Sums":
        """Append and return the sums of a block and of those before, scaled to a bias."""
        program, space, n = self.program, self.program.space, bias.partitions
        places = [space.sbuf("values", FP32, part.shape, n) for part in sums]
        if before is None:
            for place, part in zip(places, sums, strict=True):
                program.append(tensor_copy(place, part))
            return _Sums(bias, total, places)
        rescale = space.sbuf("rescale", FP32, (1,), n)
        program.append(activation(rescale, before.bias, "exp", scale=-1.0, bias=bias))
        pairs = zip([total, *places], [before.total, *before.values], [total, *sums], strict=True)
        for place, old, new in pairs:
            program.append(scalar_tensor_tensor(place, old, rescale, AluOp.MULTIPLY, new, AluOp.ADD))
        return _Sums(bias, total, places)


class _Sums(NamedTuple):
    """What is known of the keys so far: their bias, the sum of their exponentials, and of values times these, in pieces
    of columns."""

    bias: Tensor
    total: Tensor
    values: Sequence[Tensor]

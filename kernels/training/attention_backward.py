"""Gradients of attention, softmax(q k.T * scale) v, of each head.

Weights are recomputed from q, k and two results of the forward kernel: the largest score of each query and the sum of
its exponentials. With p the weights and dout the gradient of the result:

* dv = p.T dout;  dp = dout v.T
* ds = p * (dp - sum(dout * out)); the sum equals sum(p * dp) over the keys of a query
* dq = ds k * scale;  dk = ds.T q * scale

Keys are processed in blocks with the scores of a PSUM bank, so SBUF needs room only for p and ds of a block. Only ds is
transposed, for dq: the other products contract over queries, which lie along the partitions.
"""

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import NamedTuple

from neuroncore_rtl.kernels.library.attention import Attended
from neuroncore_rtl.kernels.library.attention_tile import Head, hide
from neuroncore_rtl.kernels.library.product import accumulate_product
from neuroncore_rtl.kernels.library.transpose import identity, transpose, transpose_tiles
from neuroncore_rtl.kernels.program import Program, Tensor
from neuroncore_rtl.kernels.program.instructions import (
    activation,
    scalar_tensor_tensor,
    tensor_reduce,
    tensor_scalar,
    tensor_tensor,
)
from neuroncore_rtl.kernels.tiling.blocks import cut, length, neighbours
from neuroncore_rtl.kernels.tiling.rows import Rows, place_rows, scratch, tiles_of
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["AttentionGradients", "attention_backward"]


class AttentionGradients(NamedTuple):
    """Gradients of attention, BF16: q and k [queries or keys, width], v [keys, features].

    All heads lie side by side, in tiles that are legal operands of the array.
    """

    q: Rows
    k: Rows
    v: Rows


def attention_backward(
    program: Program,
    heads: Sequence[Head],
    attended: Attended,
    dout: Rows,
    matrix: Tensor | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> AttentionGradients:
    """Append and return the gradients of q, k and v.

    The operands of `heads` and `dout`, in the tiles of `attended.out`, must be BF16, else ValueError. `matrix` is a
    BF16 identity matrix; None to create it. `causal` and `scale` are as in `attention`.
    """
    for name, one in (("dout", dout), *((name, getattr(head, name)) for head in heads for name in Head._fields)):
        if one.format is not BF16:
            raise ValueError(f"{name}: format must be bf16, not {one.format.name}")
    if (dout.shape, dout.parts) != (attended.out.shape, attended.out.parts):
        raise ValueError(f"dout: shape must be {list(attended.out.shape)}, in the same tiles, not {list(dout.shape)}")
    queries, keys = dout.shape[0], heads[0].v.shape[0]
    lanes = program.lanes
    widths = [(head.q_t.shape[0], head.k_t.shape[0], head.v.shape[1]) for head in heads]
    results = AttentionGradients(
        *(
            place_rows(program.space, name, BF16, rows, sum(one), lanes=lanes)
            for name, rows, one in zip(
                ("dq", "dk", "dv"), (queries, keys, keys), zip(*widths, strict=True), strict=True
            )
        )
    )
    matrix = matrix or identity(program, BF16)
    shifts, means = _of_queries(program, heads, attended, dout)
    firsts = [0, 0, 0]
    for number, (head, own) in enumerate(zip(heads, widths, strict=True)):
        ends = [first + width for first, width in zip(firsts, own, strict=True)]
        places = [rows.columns(*span) for rows, *span in zip(results, firsts, ends, strict=True)]
        _Head(
            program,
            head,
            AttentionGradients(*places),
            dout.columns(firsts[2], ends[2]),
            shifts.columns(number, number + 1),
            means.columns(number, number + 1),
            matrix,
            keys - queries if causal else None,
            scale or 1 / sqrt(own[0]),
        ).append()
        firsts = ends
    return results


def _of_queries(program: Program, heads: Sequence[Head], attended: Attended, dout: Rows) -> tuple[Rows, Rows]:
    """Append and return two numbers per query and head, FP32 [queries, heads].

    They are the shift with which exp(scores * scale + shift) gives the weights, and sum(dout * out).
    """
    shifts, means = (scratch(program.space, name, dout, len(heads)) for name in ("shift", "mean"))
    products = scratch(program.space, "products", dout)
    for out, slopes, product, mean in tiles_of(attended.out, dout, products, means):
        program.append(tensor_tensor(product, out, slopes, AluOp.MULTIPLY))
        first = 0
        for number, head in enumerate(heads):
            part = product[:, first : first + head.v.shape[1]]
            program.append(tensor_reduce(mean[:, number : number + 1], part, AluOp.ADD))
            first += head.v.shape[1]
    for bias, inverse, shift in tiles_of(attended.biases, attended.inverses, shifts):
        program.append(activation(shift, inverse, "ln"))
        program.append(tensor_tensor(shift, shift, bias, AluOp.ADD))
    return shifts, means


class _Head(NamedTuple):
    """Gradient computation of one head. `shifts` and `means` are [queries, 1], see `_of_queries`."""

    program: Program
    head: Head
    results: AttentionGradients
    dout: Rows
    shifts: Rows
    means: Rows
    matrix: Tensor
    past: int | None
    scale: float

    def append(self) -> None:
        program, matrix, parts = self.program, self.matrix, self.head.v.parts
        dout_t = transpose(program, self.dout, matrix, "dout_t")
        v_t = transpose(program, self.head.v, matrix, "v_t")
        q, k = (transpose(program, one, matrix, name) for one, name in ((self.head.q_t, "q"), (self.head.k_t, "k")))
        before: dict[int, list[Tensor]] = {}
        for few in neighbours(parts, program.config.psum_words):
            block = _Block(self, parts[few], dout_t, v_t)
            block.values(self.results.v.tiles[few])
            slopes_t = block.transpose()
            block.keys(self.results.k.tiles[few], q)
            block.queries(self.results.q, slopes_t, k.tiles[few], before)


class _Block:
    def __init__(self, head: _Head, parts: Sequence[slice], dout_t: Rows, v_t: Rows):
        self._head, self._program, self._parts = head, head.program, parts
        self._first, space = parts[0].start, head.program.space
        self._weights: dict[int, Tensor] = {}
        self._slopes: dict[int, Tensor] = {}
        for number, rows in enumerate(head.dout.parts):
            seen = self._visible(number)
            if not seen:
                continue
            keys = slice(self._first, seen[-1].stop)
            scores = accumulate_product(self._program, head.head.q_t.tiles, _columns(head.head.k_t, keys), rows)
            if head.past is not None:
                hide(self._program, scores, head.past + rows.start - self._first)
            p, ds = (space.sbuf(name, BF16, scores.shape, scores.partitions) for name in ("weights", "slopes"))
            shift, mean = head.shifts.tiles[number], head.means.tiles[number]
            self._program.append(activation(p, scores, "exp", scale=head.scale, bias=shift))
            dp = accumulate_product(self._program, dout_t.tiles, _columns(v_t, keys), rows)
            self._program.append(scalar_tensor_tensor(ds, dp, mean, AluOp.SUBTRACT, p, AluOp.MULTIPLY))
            self._weights[number], self._slopes[number] = p, ds

    def values(self, places: Sequence[Tensor]) -> None:
        for place, sums, columns in self._over_queries(places, self._weights, self._head.dout):
            self._program.append(activation(place[:, columns], sums, "identity"))

    def keys(self, places: Sequence[Tensor], q: Rows) -> None:
        for place, sums, columns in self._over_queries(places, self._slopes, q):
            self._program.append(tensor_scalar(place[:, columns], sums, self._head.scale, AluOp.MULTIPLY))

    def transpose(self) -> dict[int, dict[int, Tensor]]:
        found: dict[int, dict[int, Tensor]] = {number: {} for number in self._slopes}
        for place, part in enumerate(self._parts):
            rows = [(number, self._head.dout.parts[number]) for number in self._slopes if part in self._visible(number)]
            for few in neighbours([own for _, own in rows], self._program.config.psum_words):
                tiles = [self._slopes[number][:, self._own(part)] for number, _ in rows[few]]
                sums = transpose_tiles(self._program, tiles, self._head.matrix)
                tile = self._program.space.sbuf("slopes_t", BF16, sums.shape, length(part))
                self._program.append(activation(tile, sums, "identity"))
                start = rows[few][0][1].start
                for number, own in rows[few]:
                    found[number][place] = tile[:, own.start - start : own.stop - start]
        return found

    def queries(
        self,
        dq: Rows,
        slopes_t: dict[int, dict[int, Tensor]],
        k: Sequence[Tensor],
        before: dict[int, list[Tensor]],
    ) -> None:
        """Append dq, or the part of it that the keys so far contribute.

        `before` has the FP32 sums of earlier blocks, replaced by the new ones.
        """
        program, space = self._program, self._program.space
        for number, tiles in slopes_t.items():
            out, last, earlier = dq.tiles[number], self._is_last(number), before.get(number)
            before[number] = []
            for piece, columns in enumerate(cut(0, out.size, program.config.psum_words)):
                moving = [k[place][:, columns] for place in tiles]
                sums = accumulate_product(program, list(tiles.values()), moving, slice(0, out.partitions))
                target = out[:, columns] if last else space.sbuf("dq", FP32, sums.shape, sums.partitions)
                if earlier is None:
                    program.append(tensor_scalar(target, sums, self._head.scale, AluOp.MULTIPLY))
                else:
                    added = (self._head.scale, AluOp.MULTIPLY, earlier[piece], AluOp.ADD)
                    program.append(scalar_tensor_tensor(target, sums, *added))
                before[number].append(target)

    def _over_queries(
        self, places: Sequence[Tensor], stationary: dict[int, Tensor], moving: Rows
    ) -> Iterator[tuple[Tensor, Tensor, slice]]:
        for place, part in zip(places, self._parts, strict=True):
            numbers = [number for number in stationary if part in self._visible(number)]
            for columns in cut(0, place.size, self._program.config.psum_words):
                operands = [moving.tiles[number][:, columns] for number in numbers]
                weights = [stationary[number] for number in numbers]
                yield place, accumulate_product(self._program, weights, operands, self._own(part)), columns

    def _visible(self, number: int) -> list[slice]:
        past, rows = self._head.past, self._head.dout.parts[number]
        return [part for part in self._parts if past is None or part.start < past + rows.stop]

    def _is_last(self, number: int) -> bool:
        past, end = self._head.past, self._parts[-1].stop
        return end == self._head.head.v.shape[0] or (
            past is not None and end >= past + self._head.dout.parts[number].stop
        )

    def _own(self, part: slice) -> slice:
        return slice(part.start - self._first, part.stop - self._first)


def _columns(matrix: Rows, columns: slice) -> list[Tensor]:
    return [tile[:, columns] for tile in matrix.tiles]

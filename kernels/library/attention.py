"""Scaled dot-product attention: softmax(q k.T * scale) v of each head, any number of queries and keys.

Scores and weights stay on chip. Several tiles of queries are in flight, so that the array works on some of them while
the vector and the scalar engine work on others.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle
from math import sqrt
from typing import NamedTuple

from neuroncore_rtl.kernels.library.attention_tile import Head, Queries
from neuroncore_rtl.kernels.library.transpose import identity
from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor
from neuroncore_rtl.kernels.program.instructions import activation, tensor_copy
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.pipeline import pipelined
from neuroncore_rtl.kernels.tiling.rows import Rows, as_rows, place_rows
from neuroncore_rtl.kernels.tiling.transfer import load
from neuroncore_rtl.spec.formats import BF16, FP32, INT8, Format

__all__ = ["Attended", "Head", "attention"]

Finish = Callable[[Tensor, slice, slice], None]
"""Called with a finished tile of a head in SBUF, and its rows and columns of the result."""


class Attended(NamedTuple):
    """Results of attention in SBUF; each tile has the rows of some queries and is a legal operand of the array.

    The weights of head h are exp(scores * scale + biases[:, h]) * inverses[:, h]. `out` is [queries, features], with
    the features of all heads side by side. `biases`, the negated largest scores, and `inverses`, the reciprocal sums of
    exponentials, are FP32 [queries, heads].
    """

    out: Rows
    biases: Rows
    inverses: Rows


@located
def attention(
    program: Program,
    heads: Sequence[Head],
    matrix: Tensor | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    name: str = "attended",
    fmt: Format | str = BF16,
    finish: Finish | None = None,
) -> Attended:
    """Append and return softmax(q k.T * scale) v, the features of all heads side by side.

    Arguments:
        program: program to which the instructions are appended.
        heads: operands of each head, all with the same number of queries and of keys, in formats that the array
            multiplies in one pass. A matrix in HBM is loaded once, even if several heads have it.
        matrix: identity matrix in the format of v; None to create it.
        causal: whether to mask the keys later than each query; the last query has the position of the last key.
        scale: positive factor of the scores; None for 1 / sqrt(width).
        name: name of the result.
        fmt: format of the result.
        finish: function that appends the consumers of each finished tile of a head.

    Raises:
        ValueError: if shapes or formats do not match, or there are more queries than keys if causal.
    """
    heads = _loaded(program, heads)
    queries, keys = _check(program.config.matmul_formats, heads, causal, scale)
    lanes, widths = program.lanes, [head.v.shape[1] for head in heads]
    ends = [sum(widths[: number + 1]) for number in range(len(heads))]
    out = place_rows(program.space, name, fmt, queries, sum(widths), lanes=lanes)
    biases, inverses = (
        place_rows(program.space, f"{name}.{what}", FP32, queries, len(heads), lanes=lanes)
        for what in ("biases", "inverses")
    )
    matrix = matrix or identity(program, heads[0].v.format)
    copies = cycle((partial(activation, function="identity"), tensor_copy))

    def tiles() -> Iterator[Queries]:
        for number, (head, width, end) in enumerate(zip(heads, widths, ends, strict=True)):
            columns = slice(end - width, end)
            # At both ends of the program engines stall for the steps of a single tile. Causal tiles are therefore
            # ordered so that the program starts and ends with short ones, and neighbours have similar lengths.
            for tile in range(len(out.tiles))[:: -1 if number % 2 else 1]:
                own = out.tiles[tile][:, columns]
                yield Queries(
                    program,
                    head,
                    out.parts[tile],
                    keys - queries if causal else None,
                    scale or 1 / sqrt(head.q_t.shape[0]),
                    matrix,
                    copies,
                    own,
                    biases.tiles[tile][:, number : number + 1],
                    inverses.tiles[tile][:, number : number + 1],
                    partial(finish or _nothing, own, out.parts[tile], columns),
                )

    pipelined(block for tile in tiles() for block in tile.blocks())
    return Attended(out, biases, inverses)


def _loaded(program: Program, heads: Sequence[Head]) -> list[Head]:
    """Return the heads with operands in SBUF; append the load of each matrix in HBM."""
    if not heads or not all(isinstance(head, tuple) and len(head) == len(Head._fields) for head in heads):
        raise ValueError(f"attention: heads must be a list of Head(q_t, k_t, v), at least one, not {heads!r}")
    sources = dict.fromkeys(one for head in heads for one in head if isinstance(one, HbmTensor))
    loaded = {source: load(program, source) for source in sources}

    def rows(name: str, one: Rows | Tensor | HbmTensor) -> Rows:
        return loaded[one] if isinstance(one, HbmTensor) else as_rows(one, name)

    return [Head(*map(rows, Head._fields, head)) for head in heads]


def _nothing(out: Tensor, rows: slice, columns: slice) -> None:
    """Do nothing: the default `finish`, which appends no consumers."""


def _check(formats: Sequence[Format], heads: Sequence[Head], causal: bool, scale: float | None) -> tuple[int, int]:
    (_, queries), (keys, _) = heads[0].q_t.shape, heads[0].v.shape
    allowed = [fmt for fmt in formats if fmt not in (FP32, INT8)]
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
            raise ValueError(f"q_t, k_t, v: formats must be among {names}, the same for q_t and k_t, not {found}")
        parts = [[tile.partitions for tile in one.tiles] for one in (q_t, k_t)]
        if parts[0] != parts[1]:
            raise ValueError(f"k_t: tiles must have the rows of q_t's, {parts[0]}, not {parts[1]}")
    if causal and queries > keys:
        raise ValueError(f"queries must be at most the {keys} keys if causal, not {queries}")
    if scale is not None and not scale > 0:
        raise ValueError(f"scale must be above 0, not {scale}")
    return queries, keys

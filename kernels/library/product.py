"""Products of matrices on chip: what a layer is made of. Operands may be in HBM, the result is in SBUF.

The array adds up along the partitions of both operands: a.T b of a [K, M] and b [K, N]. A matrix of tokens by features
that is contracted over its features is therefore held with the features along the partitions, and called by its name
with `_t`.
"""

from collections.abc import Callable, Sequence

from neuroncore_rtl.kernels.library.blocks import cut, length, neighbours
from neuroncore_rtl.kernels.library.matmul import passes
from neuroncore_rtl.kernels.library.transfer import Matrix, aligned, lanes_of, load
from neuroncore_rtl.kernels.program import HbmTensor, Program, Rows, Tensor, load_stationary, multiply_moving
from neuroncore_rtl.kernels.program.instructions import tensor_copy
from neuroncore_rtl.spec.config import PSUM_WORDS
from neuroncore_rtl.spec.formats import BF16, FP32, INT8, INT32, MATMUL_FORMATS, Format

__all__ = ["Finish", "accumulated", "product"]

Finish = Callable[[Tensor, Tensor, slice, slice], None]
"""Appends what finishes a piece of a product: it is given the piece's place in SBUF, its sums in PSUM, and its rows and
columns of the result."""


def product(
    program: Program,
    a: Matrix,
    b: Matrix,
    *,
    name: str = "product",
    fmt: Format = BF16,
    parts: Sequence[slice] | None = None,
    finish: Finish | None = None,
) -> Rows:
    """Append a.T b, and return it, [M, N].

    Arguments:
        program: what it is appended to.
        a: [K, M]; b: [K, N] of the same format, one that the tensor engine multiplies. What is in SBUF is cut into
            tiles of at most as many rows as the array has, and what is in HBM comes in strips of columns.
        name: of the result.
        fmt: of the result.
        parts: its rows, cut into tiles one after the other, each at most the columns of the array; None: tiles that may
            be operands again. Neighbours share a pass of the array if each starts where an access may.
        finish: appends what brings a piece of the sums to its place; None: they are cast.

    Raises:
        ValueError: if shapes or formats do not fit.
    """
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[0] != b.shape[0]:
        raise ValueError(f"{name}: operands must be [K, M] and [K, N], not {list(a.shape)} and {list(b.shape)}")
    if a.format != b.format or a.format not in MATMUL_FORMATS:
        names = ", ".join(one.name for one in MATMUL_FORMATS)
        found = f"{a.format.name} and {b.format.name}"
        raise ValueError(f"{name}: operands must have the same format of {names}, not {found}")
    config, (m, n) = program.config, (a.shape[1], b.shape[1])
    depth = next((one.parts for one in (a, b) if isinstance(one, Rows)), cut(0, a.shape[0], config.rows))
    parts = cut(0, m, lanes_of(config)) if parts is None else parts
    names = {part.start: f"{name}[{part.start}:{part.stop}]" for part in parts}
    results = {part.start: program.space.sbuf(names[part.start], fmt, (n,), length(part)) for part in parts}

    def cast(out: Tensor, sums: Tensor, rows: slice, columns: slice) -> None:
        program.append(tensor_copy(out, sums))

    if isinstance(a, HbmTensor) and isinstance(b, HbmTensor):
        b = load(program, b, depth)
    groups = [parts[few] for few in neighbours(parts, config.columns, config.quadrant)]
    strips = neighbours([slice(group[0].start, group[-1].stop) for group in groups], PSUM_WORDS)
    # What is on chip needs no strips, and so what is in HBM comes once.
    for few in strips if isinstance(a, HbmTensor) else [slice(None)]:
        strip = groups[few]
        rows = slice(strip[0][0].start, strip[-1][-1].stop)
        stationary = _columns(program, a, depth, rows)
        for columns in cut(0, n, PSUM_WORDS):
            moving = _columns(program, b, depth, columns)
            for group in strip:
                first = group[0].start
                sums = accumulated(program, stationary, moving, slice(first - rows.start, group[-1].stop - rows.start))
                for part in group:
                    own = sums[part.start - first : part.stop - first]
                    (finish or cast)(results[part.start][:, columns], own, part, columns)
    return Rows(tuple(results.values()))


def _columns(program: Program, operand: Matrix, depth: Sequence[slice], columns: slice) -> list[Tensor]:
    """Return columns of an operand, a tensor for each tile of K, in SBUF."""
    if isinstance(operand, HbmTensor):
        return list(load(program, operand[:, columns], depth).tiles)
    return [tile[:, columns] for tile in operand.tiles]


def accumulated(program: Program, stationary: Sequence[Tensor], moving: Sequence[Tensor], columns: slice) -> Tensor:
    """Append the product a.T b of some columns of a, and return it, in a bank of PSUM.

    Arguments:
        program: what it is appended to.
        stationary: tiles of a, each of at most as many rows as the array has.
        moving: tiles of b of the same rows, of as many columns as a bank has room for.
        columns: of a, at most as many as the array has.
    """
    fmt, n = moving[0].format, moving[0].size
    # A bank of its own, so that what drains others does not wait for the array.
    bank = program.space.psum("sums", INT32 if fmt is INT8 else FP32, (PSUM_WORDS,), length(columns))
    sums = bank[:, :n]
    accumulate = False
    for tile, b in zip(stationary, moving, strict=True):
        a = aligned(program, tile[:, columns])
        for half, other, loaded in passes(fmt):
            if loaded:
                program.append(load_stationary(a, half=half))
            program.append(multiply_moving(sums, b, half=other, accumulate=accumulate))
            accumulate = True
    return sums

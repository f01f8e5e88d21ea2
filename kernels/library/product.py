"""Products of matrices on chip: what a layer is made of. Operands may be in HBM, the result is in SBUF.

The array adds up along the partitions of both operands: a.T b of a [K, M] and b [K, N]. A matrix of tokens by features
that is contracted over its features is therefore held with the features along the partitions, and called by its name
with `_t`.
"""

from collections.abc import Callable, Sequence
from math import ceil

from neuroncore_rtl.kernels.library.matmul import passes
from neuroncore_rtl.kernels.program import HbmTensor, Program, Rows, Tensor, load_stationary, multiply_moving
from neuroncore_rtl.kernels.program.instructions import tensor_copy
from neuroncore_rtl.kernels.tiling.blocks import cut, length, neighbours
from neuroncore_rtl.kernels.tiling.transfer import Matrix, aligned, load
from neuroncore_rtl.spec.config import PSUM_BANKS
from neuroncore_rtl.spec.formats import BF16, FP32, INT8, INT32, Format

__all__ = ["accumulated", "product", "strips_of"]

OPEN = PSUM_BANKS // 2
"""Groups that are summed up together at most: the other banks are left to those before and behind."""

LEAST = 32
"""Columns of the last strip of a product, on a small array: as the tensor engine gets a record in nine cycles."""

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
    if a.format != b.format or a.format not in program.config.matmul_formats:
        names = ", ".join(one.name for one in program.config.matmul_formats)
        found = f"{a.format.name} and {b.format.name}"
        raise ValueError(f"{name}: operands must have the same format of {names}, not {found}")
    config, (m, n) = program.config, (a.shape[1], b.shape[1])
    depth = next((one.parts for one in (a, b) if isinstance(one, Rows)), cut(0, a.shape[0], program.rows))
    parts = cut(0, m, program.lanes) if parts is None else parts
    names = {part.start: f"{name}[{part.start}:{part.stop}]" for part in parts}
    results = {part.start: program.space.sbuf(names[part.start], fmt, (n,), length(part)) for part in parts}

    def cast(out: Tensor, sums: Tensor, rows: slice, columns: slice) -> None:
        program.append(tensor_copy(out, sums))

    if isinstance(a, HbmTensor) and isinstance(b, HbmTensor):
        b = load(program, b, depth)
    groups = [parts[few] for few in neighbours(parts, config.columns, config.quadrant)]
    # Half a bank's columns come together, so that the array need not wait for long.
    strips = neighbours([slice(group[0].start, group[-1].stop) for group in groups], config.psum_words // 2)
    # What is on chip needs no strips, and so what is in HBM comes once.
    for few in strips if isinstance(a, HbmTensor) else [slice(None)]:
        strip = groups[few]
        rows = slice(strip[0][0].start, strip[-1][-1].stop)
        stationary = _columns(program, a, depth, rows)
        for columns in strips_of(b, m, program.columns, config.psum_words):
            moving = _columns(program, b, depth, columns)
            # What comes from HBM is multiplied as it comes, but of the last groups each is finished before the next one
            # begins, so that little is left to be done at the end.
            arrives = isinstance(a, HbmTensor) or (isinstance(b, HbmTensor) and columns.stop < n)
            for some in cut(0, len(strip), OPEN if arrives else 1):
                left = [slice(group[0].start - rows.start, group[-1].stop - rows.start) for group in strip[some]]
                for group, sums in zip(strip[some], _summed(program, stationary, moving, left), strict=True):
                    for part in group:
                        own = sums[part.start - group[0].start : part.stop - group[0].start]
                        (finish or cast)(results[part.start][:, columns], own, part, columns)
    return Rows(tuple(results.values()))


def _columns(program: Program, operand: Matrix, depth: Sequence[slice], columns: slice) -> list[Tensor]:
    """Return columns of an operand, a tensor for each tile of K, in SBUF."""
    if isinstance(operand, HbmTensor):
        return list(load(program, operand[:, columns], depth).tiles)
    return [tile[:, columns] for tile in operand.tiles]


def strips_of(b: Matrix, m: int, width: int, words: int) -> list[slice]:
    """Return the columns of b that are multiplied together, for m columns of a on an array of `width` columns
    and banks of PSUM of so many words.

    Where the array has as much to do as HBM, which brings them, they get ever fewer: so what finishes a strip is done
    while the next one is multiplied, and little is left to be done behind the last one.
    """
    n = b.shape[1]
    if not isinstance(b, HbmTensor) or m < width:
        return cut(0, n, words)
    least, found, start = max(LEAST, width // 2), [], 0
    while start < n:
        half = ceil((n - start) / 2 / least) * least
        found.append(slice(start, min(start + min(half, words), n)))
        start = found[-1].stop
    return found


def accumulated(program: Program, stationary: Sequence[Tensor], moving: Sequence[Tensor], columns: slice) -> Tensor:
    """Append the product a.T b of some columns of a, and return it, in a bank of PSUM.

    Arguments:
        program: what it is appended to.
        stationary: tiles of a, each of at most as many rows as the array has.
        moving: tiles of b of the same rows, of as many columns as a bank has room for.
        columns: of a, at most as many as the array has.
    """
    return _summed(program, stationary, moving, [columns])[0]


def _summed(
    program: Program, stationary: Sequence[Tensor], moving: Sequence[Tensor], groups: Sequence[slice]
) -> list[Tensor]:
    """Append such products of some groups of columns, tile of K by tile of K."""
    fmt, n = moving[0].format, moving[0].size
    # A bank of its own for each, so that what drains others does not wait for the array.
    kind = INT32 if fmt is INT8 else FP32
    sums = [
        program.space.psum("sums", kind, (program.config.psum_words,), length(columns))[:, :n] for columns in groups
    ]
    for number, (tile, b) in enumerate(zip(stationary, moving, strict=True)):
        for columns, own in zip(groups, sums, strict=True):
            a = aligned(program, tile[:, columns])
            accumulate = number > 0
            for half, other, loaded in passes(fmt):
                if loaded:
                    program.append(load_stationary(a, half=half))
                program.append(multiply_moving(own, b, half=other, accumulate=accumulate))
                accumulate = True
    return sums

"""Matrix products on chip, from which layers are made: operands in HBM or SBUF, the result in SBUF.

The array contracts along the partitions of both operands: a.T b of a [K, M] and b [K, N]. A matrix of tokens by
features that is contracted over features therefore has the features along the partitions; its name ends in `_t`.
"""

from collections.abc import Callable, Sequence
from math import ceil

from neuroncore_rtl.kernels.library.matmul import add_products
from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor
from neuroncore_rtl.kernels.program.instructions import tensor_copy, tensor_tensor
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.blocks import cut, length, neighbours
from neuroncore_rtl.kernels.tiling.rows import Rows
from neuroncore_rtl.kernels.tiling.transfer import Matrix, aligned, load, matrix_of
from neuroncore_rtl.spec.config import PSUM_BANKS
from neuroncore_rtl.spec.formats import BF16, FP32, INT8, INT32, Format
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["accumulate_product", "product", "strips_of"]

OPEN = PSUM_BANKS // 2
"""Maximum PSUM banks in which sums accumulate at the same time; the other banks hold the sums before and after them."""

LEAST = 32
"""Minimum columns of the last strip on a small array, since the tensor engine receives only one record in nine cycles.
"""

Finish = Callable[[Tensor, Tensor, slice, slice], None]
"""Appends the instructions that finish a piece: destination in SBUF, sums in PSUM, rows and columns of the result."""


@located
def product(
    program: Program,
    a: Matrix | Tensor,
    b: Matrix | Tensor,
    *,
    name: str = "product",
    fmt: Format | str = BF16,
    parts: Sequence[slice] | None = None,
    factors: Rows | None = None,
    finish: Finish | None = None,
) -> Rows:
    """Append and return the product a.T b, [M, N], or its elements times `factors`, which have tiles like the result's.

    a is [K, M]: in SBUF, a tile may have at most as many rows as the array; from HBM, strips of columns are loaded. b
    is [K, N], in the format of a, which the tensor engine must multiply; in SBUF in tiles like those of a. `parts` are
    the rows of each tile of the result, at most the columns of the array; None for tiles that may be operands. Adjacent
    tiles share a pass of the array if each starts at a legal partition. `finish` replaces the cast of the sums,
    and must not be given beside `factors`.
    """
    if factors is not None and finish is not None:
        raise ValueError(f"{name}: factors must not be given beside finish, which replaces their product")
    a, b = matrix_of(a, f"{name}: a"), matrix_of(b, f"{name}: b")
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[0] != b.shape[0]:
        found = f"{list(a.shape)} and {list(b.shape)} (`transpose` gives a matrix its columns as rows)"
        raise ValueError(f"{name}: operands must be [K, M] and [K, N], not {found}")
    if a.format != b.format or a.format not in program.config.matmul_formats:
        names = ", ".join(one.name for one in program.config.matmul_formats)
        found = f"{a.format.name} and {b.format.name}"
        raise ValueError(f"{name}: operands must have the same format of {names}, not {found}")
    config, (m, n) = program.config, (a.shape[1], b.shape[1])
    depth = next((one.parts for one in (a, b) if isinstance(one, Rows)), cut(0, a.shape[0], program.rows))
    parts = cut(0, m, program.lanes) if parts is None else parts
    names = {part.start: f"{name}[{part.start}:{part.stop}]" for part in parts}
    results = {part.start: program.space.sbuf(names[part.start], fmt, (n,), length(part)) for part in parts}

    others = factors.by_first if factors else {}

    def cast(out: Tensor, sums: Tensor, rows: slice, columns: slice) -> None:
        if factors is None:
            program.append(tensor_copy(out, sums))
        else:
            program.append(tensor_tensor(out, sums, others[rows.start][:, columns], AluOp.MULTIPLY))

    if isinstance(a, HbmTensor) and isinstance(b, HbmTensor):
        b = load(program, b, depth)
    groups = [parts[few] for few in neighbours(parts, config.columns, config.quadrant)]
    # Load half a bank of columns at a time, so that the array does not stall for long.
    strips = neighbours([slice(group[0].start, group[-1].stop) for group in groups], config.psum_words // 2)
    # An operand on chip needs no strips, so the other one is loaded only once.
    for few in strips if isinstance(a, HbmTensor) else [slice(None)]:
        strip = groups[few]
        rows = slice(strip[0][0].start, strip[-1][-1].stop)
        stationary = _columns(program, a, depth, rows)
        for columns in strips_of(b, m, program.columns, config.psum_words):
            moving = _columns(program, b, depth, columns)
            # Groups are interleaved while operands arrive from HBM. The last groups are finished one by one, so that
            # little work remains at the end.
            arrives = isinstance(a, HbmTensor) or (isinstance(b, HbmTensor) and columns.stop < n)
            for some in cut(0, len(strip), OPEN if arrives else 1):
                left = [slice(group[0].start - rows.start, group[-1].stop - rows.start) for group in strip[some]]
                for group, sums in zip(strip[some], _accumulate_groups(program, stationary, moving, left), strict=True):
                    for part in group:
                        own = sums[part.start - group[0].start : part.stop - group[0].start]
                        (finish or cast)(results[part.start][:, columns], own, part, columns)
    return Rows(tuple(results.values()))


def _columns(program: Program, operand: Matrix, depth: Sequence[slice], columns: slice) -> list[Tensor]:
    if isinstance(operand, HbmTensor):
        return list(load(program, operand[:, columns], depth).tiles)
    return [tile[:, columns] for tile in operand.tiles]


@located
def strips_of(b: Matrix, m: int, width: int, words: int) -> list[slice]:
    """Return the columns of b [K, N] that are multiplied together, for m columns of a.

    If the load of b is as slow as the array, strips become ever narrower: a strip is finished while the next one is
    multiplied, and little work remains after the last one. The array has `width` columns, a PSUM bank has `words`
    words.
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


@located
def accumulate_product(
    program: Program, stationary: Sequence[Tensor], moving: Sequence[Tensor], columns: slice
) -> Tensor:
    """Append the product a.T b for at most as many columns of a as the array has; return it, in a PSUM bank.

    The tiles of a have at most as many rows as the array. The tiles of b have the same rows, and at most as many
    columns as a bank has words.
    """
    return _accumulate_groups(program, stationary, moving, [columns])[0]


def _accumulate_groups(
    program: Program, stationary: Sequence[Tensor], moving: Sequence[Tensor], groups: Sequence[slice]
) -> list[Tensor]:
    fmt, n = moving[0].format, moving[0].size
    # A separate bank for each group, so that draining one does not stall for the array.
    kind = INT32 if fmt is INT8 else FP32
    sums = [
        program.space.psum("sums", kind, (program.config.psum_words,), length(columns))[:, :n] for columns in groups
    ]
    for number, (tile, b) in enumerate(zip(stationary, moving, strict=True)):
        for columns, own in zip(groups, sums, strict=True):
            add_products(program, [own], aligned(program, tile[:, columns]), [b], accumulate=number > 0)
    return sums

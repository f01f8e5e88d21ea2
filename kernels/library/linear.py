"""Linear layers, y = function(x w + bias), of any size; operands in HBM or SBUF."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from neuroncore_rtl.kernels.library.product import product
from neuroncore_rtl.kernels.library.transpose import identity, transpose_tiles
from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor
from neuroncore_rtl.kernels.program.instructions import NEUTRAL_BIAS, activation, tensor_copy, tensor_tensor
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.rows import Rows
from neuroncore_rtl.kernels.tiling.transfer import Matrix, load, load_row, matrix_of, on_chip, one_pass
from neuroncore_rtl.spec.formats import BF16, Format
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["column_of", "linear", "linear_t"]


@located
def linear_t(
    program: Program,
    w: Matrix,
    x_t: Matrix | Tensor,
    bias: HbmTensor | Mapping[int, Tensor] | None = None,
    function: str = "identity",
    *,
    name: str = "y_t",
    fmt: Format | str = BF16,
    parts: Sequence[slice] | None = None,
) -> Rows:
    """Append and return y_t = function(w.T x_t + bias), [outputs, tokens], for consumers that sum over outputs.

    w is [inputs, outputs], x_t [inputs, tokens]. The bias is [outputs] in HBM, or the result of `column_of`.
    `function` is one of the scalar engine, applied to the FP32 sum plus bias in one instruction. `parts` is as in
    `kernels.library.product.product`.
    """
    if not isinstance(bias, HbmTensor | Mapping | None):
        rule = f"a vector [{w.shape[1]}] in HBM, or the result of `column_of`"
        raise ValueError(f"{name}: bias must be {rule}, not {type(bias).__name__}")
    biases = column_of(program, bias, w.shape[1], parts) if isinstance(bias, HbmTensor) else bias or {}

    def finish(out: Tensor, sums: Tensor, rows: slice, columns: slice) -> None:
        program.append(activation(out, sums, function, bias=biases.get(rows.start, NEUTRAL_BIAS)))

    return product(program, w, x_t, name=name, fmt=fmt, parts=parts, finish=finish)


@located
def linear(
    program: Program,
    x_t: Matrix | Tensor,
    w: Matrix,
    bias: HbmTensor | Tensor | None = None,
    residual: Matrix | Tensor | None = None,
    *,
    name: str = "y",
    fmt: Format | str = BF16,
) -> Rows:
    """Append and return y = x w + bias + residual, [tokens, outputs], for consumers that work on a token's features.

    The additions are in FP32, the bias first. x_t is [inputs, tokens], w [inputs, outputs]; the bias is [outputs] in
    HBM, or the result of `load_row`. The residual is [tokens, outputs], in HBM, or on chip in tiles
    like the result's.
    """
    if bias is not None and bias.shape != w.shape[1:]:
        raise ValueError(f"{bias.name}: shape must be {list(w.shape[1:])}, not {list(bias.shape)}")
    row = load_row(program, bias) if isinstance(bias, HbmTensor) else bias
    before = {}
    if residual is not None:
        rows, shape = on_chip(program, residual), (matrix_of(x_t, f"{name}: x_t").shape[1], w.shape[1])
        parts = cut(0, shape[0], program.lanes)
        if rows.shape != shape or rows.parts != parts:
            rule, found = f"{list(shape)} in tiles of {program.lanes} rows", [tile.partitions for tile in rows.tiles]
            raise ValueError(f"{name}: residual must be {rule}, not {list(rows.shape)} in tiles of {found}")
        before = rows.by_first

    def finish(out: Tensor, sums: Tensor, rows: slice, columns: slice) -> None:
        added = [] if row is None else [row[: sums.partitions, columns]]
        added += [before[rows.start][:, columns]] if before else []
        if not added:
            program.append(activation(out, sums, "identity"))
        for number, term in enumerate(added):
            target = out if number == len(added) - 1 else sums
            program.append(tensor_tensor(target, sums, term, AluOp.ADD))

    return product(program, x_t, w, name=name, fmt=fmt, finish=finish)


@located
def column_of(
    program: Program,
    bias: HbmTensor,
    size: int,
    parts: Sequence[slice] | None = None,
    matrix: Tensor | None = None,
) -> dict[int, Tensor]:
    """Append the load of a vector of parameters, one per partition; return its tiles by their first rows.

    The tiles have the rows `parts`, by default the rows of tiles that may be operands of the array. `matrix` is an
    identity matrix in the format of bias; None to create it.
    """
    if bias.shape != (size,):
        raise ValueError(f"{bias.name}: shape must be [{size}], not {list(bias.shape)}")
    lanes = program.lanes
    parts = cut(0, size, lanes) if parts is None else parts
    if not one_pass(program.config, bias.format):
        return dict(zip((part.start for part in parts), load(program, bias.reshape(size, 1), parts).tiles, strict=True))
    # DMA would move one element per beat. Instead load each part as a row, and let the array transpose the rows.
    matrix, found = matrix or identity(program, bias.format), {}
    for count, alike in groupby(parts, key=length):
        alike = list(alike)
        rows = load(program, bias[alike[0].start : alike[-1].stop].reshape(-1, count))
        for few in cut(0, len(rows.tiles), max(1, program.config.psum_words // lanes)):
            sums = transpose_tiles(program, rows.tiles[few], matrix)
            columns = program.space.sbuf(bias.name, bias.format, sums.shape, count)
            program.append(tensor_copy(columns, sums))
            first = rows.parts[few.start].start
            for number, part in enumerate(alike[first : first + sums.size]):
                found[part.start] = columns[:, number : number + 1]
    return found

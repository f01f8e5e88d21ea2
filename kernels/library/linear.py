"""Linear layers: y = function(x w + bias), of any size, between matrices wherever they are."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from neuroncore_rtl.kernels.library.product import product
from neuroncore_rtl.kernels.library.transpose import identity, turned
from neuroncore_rtl.kernels.program import HbmTensor, Program, Rows, Tensor
from neuroncore_rtl.kernels.program.instructions import activation, tensor_copy, tensor_tensor
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.transfer import Matrix, load, load_row, one_pass
from neuroncore_rtl.spec.formats import BF16, Format
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["column_of", "linear", "linear_t"]


def linear_t(
    program: Program,
    w: Matrix,
    x_t: Matrix,
    bias: HbmTensor | Mapping[int, Tensor] | None = None,
    function: str = "identity",
    *,
    name: str = "y_t",
    fmt: Format = BF16,
    parts: Sequence[slice] | None = None,
) -> Rows:
    """Append and return y_t = function(w.T x_t + bias), [outputs, tokens]: what follows may contract over outputs.

    Arguments:
        program: what it is appended to.
        w: [inputs, outputs]; x_t: [inputs, tokens], features along the partitions.
        bias: [outputs], in HBM, or as `column_of` brings it; None: there is none.
        function: of the scalar engine, on the FP32 sum; what has a bias costs no more.
        name, fmt, parts: of the result, as of :func:`kernels.library.product.product`.

    Raises:
        ValueError: if shapes or formats do not fit.
    """
    biases = column_of(program, bias, w.shape[1], parts) if isinstance(bias, HbmTensor) else bias or {}

    def finish(out: Tensor, sums: Tensor, rows: slice, columns: slice) -> None:
        # Adding -0.0 changes nothing, not even the sign of a zero.
        program.append(activation(out, sums, function, bias=biases.get(rows.start, -0.0)))

    return product(program, w, x_t, name=name, fmt=fmt, parts=parts, finish=finish)


def linear(
    program: Program,
    x_t: Matrix,
    w: Matrix,
    bias: HbmTensor | Tensor | None = None,
    residual: Rows | None = None,
    *,
    name: str = "y",
    fmt: Format = BF16,
) -> Rows:
    """Append and return y = x w + bias + residual, [tokens, outputs]: what follows may go along a token's features.

    Arguments:
        program: what it is appended to.
        x_t: [inputs, tokens]; w: [inputs, outputs].
        bias: [outputs], in HBM, or as `load_row` brings it; None: there is none.
        residual: [tokens, outputs] in tiles like the result's; None: there is none.
        name, fmt: of the result; what is added is added in FP32, the bias first.

    Raises:
        ValueError: if shapes or formats do not fit.
    """
    if bias is not None and bias.shape != w.shape[1:]:
        raise ValueError(f"{bias.name}: shape must be {list(w.shape[1:])}, not {list(bias.shape)}")
    row = load_row(program, bias) if isinstance(bias, HbmTensor) else bias
    before = residual.by_first if residual else {}

    def finish(out: Tensor, sums: Tensor, rows: slice, columns: slice) -> None:
        added = [] if row is None else [row[: sums.partitions, columns]]
        added += [before[rows.start][:, columns]] if before else []
        if not added:
            program.append(activation(out, sums, "identity", bias=-0.0))
        for number, term in enumerate(added):
            target = out if number == len(added) - 1 else sums
            program.append(tensor_tensor(target, sums, term, AluOp.ADD))

    return product(program, x_t, w, name=name, fmt=fmt, finish=finish)


def column_of(
    program: Program,
    bias: HbmTensor,
    size: int,
    parts: Sequence[slice] | None = None,
    matrix: Tensor | None = None,
) -> dict[int, Tensor]:
    """Return parameters, one a partition, by the row of the result at which a tile of them starts.

    Arguments:
        program: what it is appended to.
        bias: [size], in HBM.
        size: rows of the result.
        parts: those of each tile; None: tiles that may be operands again.
        matrix: an identity matrix of the format of bias; None: one is made.
    """
    if bias.shape != (size,):
        raise ValueError(f"{bias.name}: shape must be [{size}], not {list(bias.shape)}")
    lanes = program.lanes
    parts = cut(0, size, lanes) if parts is None else parts
    if not one_pass(program.config, bias.format):
        return dict(zip((part.start for part in parts), load(program, bias.reshape(size, 1), parts).tiles, strict=True))
    # DMA moves an element a beat; a part comes as a row, and the tensor engine turns as many as there are partitions.
    matrix, found = matrix or identity(program, bias.format), {}
    for count, alike in groupby(parts, key=length):
        alike = list(alike)
        rows = load(program, bias[alike[0].start : alike[-1].stop].reshape(-1, count))
        for few in cut(0, len(rows.tiles), max(1, program.config.psum_words // lanes)):
            sums = turned(program, rows.tiles[few], matrix)
            columns = program.space.sbuf(bias.name, bias.format, sums.shape, count)
            program.append(tensor_copy(columns, sums))
            first = rows.parts[few.start].start
            for number, part in enumerate(alike[first : first + sums.size]):
                found[part.start] = columns[:, number : number + 1]
    return found

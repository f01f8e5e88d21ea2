"""Embeddings: rows of a table by token numbers, and the gradient of the table."""

from neuroncore_rtl.kernels.program import HbmTensor, Program, dma_gather
from neuroncore_rtl.kernels.program.instructions import iota, tensor_scalar
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.rows import Rows, scratch, tiles_of
from neuroncore_rtl.kernels.training.linear_backward import weight_gradient
from neuroncore_rtl.spec.formats import INT32
from neuroncore_rtl.spec.isa import AluOp, Index

__all__ = ["embedding", "embedding_backward"]


def embedding(program: Program, table: HbmTensor, numbers: Rows, name: str = "embedded") -> Rows:
    """Append and return the rows of a table, [tokens, features] in its format.

    Row numbers are INT32 [tokens, 1]; a number out of range is a run-time error.
    """
    result = scratch(program.space, name, numbers, table.shape[1], table.format)
    for out, own in tiles_of(result, numbers):
        program.append(dma_gather(out, table, own), next(program.loads))
    return result


def embedding_backward(
    program: Program, rows: int, numbers: Rows, dy: Rows, before: Rows | None = None, name: str = "dtable"
) -> Rows:
    """Append and return the gradient of a table of `rows` rows, plus `before`, FP32 [rows, features].

    Copies do not add. So the gradient is a product with the one-hot matrix of the numbers, about a PSUM bank of rows at
    a time. Numbers out of range contribute nothing. Numbers and dy have tiles of the same tokens; the tensor engine
    must be able to multiply the format of dy.
    """
    tiles, lanes = [], program.lanes
    for part in cut(0, rows, max(1, program.config.psum_words // lanes) * lanes):
        row = program.space.sbuf("rows", INT32, (length(part),))
        program.append(iota(row, Index(base=part.start, steps=(1,))))
        onehots = scratch(program.space, "onehot", dy, length(part), dy.format)
        for onehot, own in tiles_of(onehots, numbers):
            program.append(tensor_scalar(onehot, row[: onehot.partitions], own, AluOp.IS_EQUAL))
        tiles += weight_gradient(program, onehots, dy, _within(before, part), name).tiles
    return Rows(tuple(tiles))


def _within(matrix: Rows | None, part: slice) -> Rows | None:
    if matrix is None:
        return None
    pairs = zip(matrix.parts, matrix.tiles, strict=True)
    return Rows(tuple(tile for own, tile in pairs if part.start <= own.start < part.stop))

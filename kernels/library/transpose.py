"""Transposition by the tensor engine, and other moves on chip, each on the engine that has less to do.

The tensor engine needs one cycle per column, while DMA needs one cycle per element.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from neuroncore_rtl.kernels.library.matmul import passes
from neuroncore_rtl.kernels.program import Program, Tensor, load_stationary, multiply_moving
from neuroncore_rtl.kernels.program.instructions import activation, affine_select, memset, tensor_copy
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.rows import Rows, as_rows
from neuroncore_rtl.kernels.tiling.transfer import aligned, one_pass
from neuroncore_rtl.spec.formats import FP32, Format
from neuroncore_rtl.spec.isa import AluOp, Engine, Index

__all__ = ["ChipMoves", "identity", "transpose", "transpose_tiles"]


@located
def identity(program: Program, fmt: Format | str) -> Tensor:
    """Append and return an identity matrix in SBUF, as large as the array."""
    size = program.lanes
    ones, matrix = (program.space.sbuf(name, fmt, (size,), size) for name in ("ones", "identity"))
    program.append(memset(ones, 1.0))
    program.append(affine_select(matrix, ones, Index(partition=1, steps=(-1,)), AluOp.IS_EQUAL, 0.0))
    return matrix


@located
def transpose(program: Program, x: Rows | Tensor, matrix: Tensor | None = None, name: str = "x_t") -> Rows:
    """Append and return x.T, bit for bit, in tiles that may be operands of the array.

    `matrix` is an identity matrix in the format of x; None to create it.

    Raises:
        ValueError: if the array does not multiply the format in one pass, or a tile has more rows than an operand.
    """
    x = as_rows(x, "x")
    (rows, columns), most = x.shape, max(tile.partitions for tile in x.tiles)
    if not one_pass(program.config, x.format):
        rule = "format must be one that the array multiplies in one pass, such as bf16"
        raise ValueError(f"{name}: {rule}, not {x.format.name}")
    if most > program.lanes:
        raise ValueError(f"{name}: tiles of x must have at most {program.lanes} rows, as `load` makes them, not {most}")
    matrix = matrix or identity(program, x.format)
    tiles = []
    for part in cut(0, columns, program.lanes):
        tile = program.space.sbuf(f"{name}[{part.start}:{part.stop}]", x.format, (rows,), length(part))
        # A PSUM bank holds several transposed tiles, which one instruction copies.
        for few in cut(0, len(x.tiles), max(1, program.config.psum_words // program.lanes)):
            first, last = x.parts[few.start].start, x.parts[few.stop - 1].stop
            sums = transpose_tiles(program, [source[:, part] for source in x.tiles[few]], matrix)
            program.append(activation(tile[:, first:last], sums, "identity"))
        tiles.append(tile)
    return Rows(tuple(tiles))


@located
def transpose_tiles(program: Program, tiles: Sequence[Tensor], matrix: Tensor) -> Tensor:
    """Append and return the transposed tiles, side by side in a PSUM bank, exact in any format of floats.

    The tiles have the same number of columns, at most as many as an operand, and together at most as many rows as a
    bank has words. `matrix` is an identity matrix in their format.
    """
    sums, first = program.space.psum("turned", FP32, (program.config.psum_words,), tiles[0].size), 0
    for tile in tiles:
        start, size = tile.partition, tile.partitions
        stationary, ones = aligned(program, tile), matrix[start : start + size, start : start + size]
        for half in sorted({half for half, _, _ in passes(tile.format)}):
            program.append(load_stationary(stationary, half=half))
            to = sums[:, first : first + size]
            program.append(multiply_moving(to, ones, accumulate=half > 0, transpose=True))
        first += size
    return sums[:, :first]


@dataclass
class ChipMoves:
    """Moves on chip.

    Arguments:
        program: where instructions are appended.
        busy: cycles of each engine so far.
        matrices: identity matrices in SBUF by format.
    """

    program: Program
    busy: Counter[Engine] = field(default_factory=Counter)
    matrices: dict[Format, Tensor] = field(default_factory=dict)

    def move(self, dst: Tensor, source: Tensor) -> None:
        """Append a copy, a cast if the formats differ."""
        copies = tensor_copy(dst, source), activation(dst, source, "identity")
        copy = min(copies, key=lambda one: self.busy[one.engine])
        self.busy[copy.engine] += dst.size
        self.program.append(copy)

    def copied(self, source: Tensor, fmt: Format | None = None, name: str = "") -> Tensor:
        """Append and return a copy in SBUF, by default of the same format and name."""
        copy = self.program.space.sbuf(name or source.name, fmt or source.format, source.shape, source.partitions)
        self.move(copy, source)
        return copy

    def turned(self, tiles: Sequence[Tensor]) -> Tensor:
        """Append and return transposed tiles, side by side in a PSUM bank; see `transpose_tiles`."""
        fmt = tiles[0].format
        if fmt not in self.matrices:
            self.matrices[fmt] = identity(self.program, fmt)
        return transpose_tiles(self.program, tiles, self.matrices[fmt])

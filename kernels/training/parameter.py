"""Parameters that stay in SBUF during training, with the state of the optimiser."""

from neuroncore_rtl.kernels.library.product import product
from neuroncore_rtl.kernels.program import Allocator, Draw, HbmTensor, Program, Tensor, dma_copy
from neuroncore_rtl.kernels.program.instructions import memset, tensor_copy
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.kernels.tiling.rows import Rows
from neuroncore_rtl.spec.config import LOAD_COLUMNS
from neuroncore_rtl.spec.formats import FP32, Format
from neuroncore_rtl.spec.isa import Index

__all__ = ["Parameter"]


class Parameter:
    """Matrix of parameters in SBUF, one row per partition, with AdamW's moments and the gradient.

    All tiles are in one tensor, [tiles, columns] in each of `lanes` partitions, so that one instruction of the
    optimiser processes the whole matrix. Missing rows of the last tile stay zero.

    `fmt` is the format of the values; moments and gradient are FP32. `lanes`, the rows of a tile, are at most
    `Program.lanes`. `first` and `second` are AdamW's moments.
    """

    def __init__(self, space: Allocator, name: str, fmt: Format, rows: int, columns: int, lanes: int):
        self.shape = rows, columns
        self._parts = cut(0, rows, lanes)
        # A LoadStationary must start at a group of columns.
        pitch = -(-columns // LOAD_COLUMNS) * LOAD_COLUMNS
        formats = {"": fmt, "first moment of ": FP32, "second moment of ": FP32, "gradient of ": FP32}
        self.values, self.first, self.second, self.gradient = (
            space.sbuf(f"{kind}{name}", one, (len(self._parts), pitch), lanes)[:, :, :columns]
            for kind, one in formats.items()
        )

    @property
    def rows(self) -> Rows:
        """Values of the parameters as a matrix in tiles."""
        return Rows(tuple(self.values[: length(part), tile] for tile, part in enumerate(self._parts)))

    def draw(self, seed: int, stream: int) -> Draw:
        """Return random words numbered by element of the matrix, independent of the tiling."""
        lanes, columns = self.values.partitions, self.shape[1]
        return Draw(seed=seed, stream=stream, index=Index(partition=columns, steps=(lanes * columns, 1)))

    def load(self, program: Program, source: HbmTensor) -> None:
        """Append the load of the values from [rows, columns], or from [columns] for every row; zero the moments."""
        for tensor in (self.values, self.first, self.second, self.gradient):
            program.append(memset(tensor, 0.0))
        matrix = source.broadcast_to(*self.shape)
        for part, tile in zip(self._parts, self.rows.tiles, strict=True):
            program.append(dma_copy(tile, matrix[part]), next(program.loads))

    def store(self, program: Program, target: HbmTensor) -> None:
        """Append the store of the values, [rows, columns], or of the first row, [columns]."""
        rows = self.rows.tiles if len(target.shape) > 1 else (self.values[:1, 0],)
        matrix = target.reshape(-1, self.shape[1])
        for part, tile in zip(self._parts, rows, strict=False):
            program.append(dma_copy(matrix[part], tile), next(program.stores))

    def set_gradient(self, program: Program, a: Rows, b: Rows) -> None:
        """Append the computation gradient = a.T b, with a [K, rows] and b [K, columns]."""

        def finish(out: Tensor, sums: Tensor, rows: slice, columns: slice) -> None:
            tile = rows.start // self.gradient.partitions
            program.append(tensor_copy(self.gradient[: sums.partitions, tile, columns], sums))

        product(program, a, b, parts=self._parts, finish=finish)

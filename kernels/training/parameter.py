"""Parameters that stay in SBUF while they are trained, with all that an optimiser keeps of them."""

from neuroncore_rtl.kernels.library.product import product
from neuroncore_rtl.kernels.program import Allocator, Draw, HbmTensor, Program, Rows, Tensor, dma_copy
from neuroncore_rtl.kernels.program.instructions import memset, tensor_copy
from neuroncore_rtl.kernels.tiling.blocks import cut, length
from neuroncore_rtl.spec.config import LOAD_COLUMNS
from neuroncore_rtl.spec.formats import FP32, Format
from neuroncore_rtl.spec.isa import Index

__all__ = ["Parameter"]


class Parameter:
    """A matrix of parameters, a row a partition, its moments and its gradient.

    All tiles are one tensor's, so that an instruction of the optimiser reaches the whole matrix. Where the last tile
    has fewer rows, there are zeros, which stay.

    Arguments:
        space: where it is named.
        name: of the matrix.
        fmt: of its values; the rest is FP32.
        rows, columns: its shape.
        lanes: rows of a tile, no more than are operands of the array (`Program.lanes`).

    Attributes:
        values, first, second, gradient: [tiles, columns] in each of `lanes` partitions.
    """

    def __init__(self, space: Allocator, name: str, fmt: Format, rows: int, columns: int, lanes: int):
        self.shape = rows, columns
        self._parts = cut(0, rows, lanes)
        # A LoadStationary reads from where a group of columns starts.
        pitch = -(-columns // LOAD_COLUMNS) * LOAD_COLUMNS
        formats = {"": fmt, "first moment of ": FP32, "second moment of ": FP32, "gradient of ": FP32}
        self.values, self.first, self.second, self.gradient = (
            space.sbuf(f"{kind}{name}", one, (len(self._parts), pitch), lanes)[:, :, :columns]
            for kind, one in formats.items()
        )

    @property
    def rows(self) -> Rows:
        """The values as a matrix."""
        return Rows(tuple(self.values[: length(part), tile] for tile, part in enumerate(self._parts)))

    def draw(self, seed: int, stream: int) -> Draw:
        """Return the draw that numbers the values as elements of the matrix, however it is cut into tiles."""
        lanes, columns = self.values.partitions, self.shape[1]
        return Draw(seed=seed, stream=stream, index=Index(partition=columns, steps=(lanes * columns, 1)))

    def load(self, program: Program, source: HbmTensor) -> None:
        """Append what brings the values from HBM, [rows, columns], or [columns] for every row; all else is zero."""
        for tensor in (self.values, self.first, self.second, self.gradient):
            program.append(memset(tensor, 0.0))
        matrix = source.broadcast_to(*self.shape)
        for part, tile in zip(self._parts, self.rows.tiles, strict=True):
            program.append(dma_copy(tile, matrix[part]), next(program.loads))

    def store(self, program: Program, target: HbmTensor) -> None:
        """Append what brings the values to HBM, [rows, columns], or the first row to [columns]."""
        rows = self.rows.tiles if len(target.shape) > 1 else (self.values[:1, 0],)
        matrix = target.reshape(-1, self.shape[1])
        for part, tile in zip(self._parts, rows, strict=False):
            program.append(dma_copy(matrix[part], tile), next(program.stores))

    def set_gradient(self, program: Program, a: Rows, b: Rows) -> None:
        """Append gradient = a.T b, of a [K, rows] and b [K, columns]."""

        def finish(out: Tensor, sums: Tensor, rows: slice, columns: slice) -> None:
            tile = rows.start // self.gradient.partitions
            program.append(tensor_copy(self.gradient[: sums.partitions, tile, columns], sums))

        product(program, a, b, parts=self._parts, finish=finish)

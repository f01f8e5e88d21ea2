"""Matrix multiplication on the whole core, from HBM to HBM: C[M, N] = A[M, K] x B[K, N] of any shape.

A is stored transposed, [K, M], as kernels of this machine take it: K goes along the partitions for both operands. C is
cut into *groups*, the rows of an array's columns by up to a PSUM bank of words, each an accumulation over K:

* A *block* is up to eight groups of the same columns of C. It takes the tiles of K in *chunks*; a chunk's operands are
  in one of two buffers, so that the next chunk's are on their way while this one's are multiplied.
* The first block starts with chunks of one tile, whose operands are soon there, and goes on with ever longer ones. All
  others have chunks as long as a buffer, mostly all of K, so that their groups finish one by one.
* The last group is cut into ever narrower pieces, so that little is left to be done when the last sum is ready.
* C may be asked for in *strips* of rows, one after the other, so that what is done with one of them, such as a
  collective, can be appended behind its stores and before the next one.

A finished group goes from PSUM to SBUF, cast on the way, and from there to HBM, while its bank waits for its next turn.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from neuroncore_rtl.kernels.library.blocks import OutputBlock, OutputGroup, blocks, cut, length
from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, dma_copy
from neuroncore_rtl.kernels.program.instructions import tensor_copy
from neuroncore_rtl.spec.config import LINE_BYTES, LOAD_COLUMNS, PSUM_BANKS, PSUM_WORDS
from neuroncore_rtl.spec.formats import FP32, INT8, INT32, MATMUL_FORMATS, Format
from neuroncore_rtl.spec.isa import LoadStationary, MultiplyMoving, Storage

__all__ = ["Finish", "Stored", "matmul", "passes"]

Finish = Callable[[Tensor, Tensor, slice, slice], None]
"""Appends what finishes a group; it is given its destination in SBUF, its sums in PSUM, its rows and columns of C."""

Stored = Callable[[slice], None]
"""Appends what follows when all of a strip's stores are appended; it is given the strip's rows."""

EARLY = 64
"""Columns of B that the first copies bring on a small array; on a large one as many as outlast the load of weights."""

STAGES = PSUM_BANKS
"""Finished groups in SBUF that may be on their way to HBM."""


def matmul(
    program: Program,
    c: HbmTensor,
    a: HbmTensor,
    b: HbmTensor,
    finish: Finish | None = None,
    *,
    strips: Sequence[slice] | None = None,
    stored: Stored | None = None,
) -> None:
    """Append C = A x B.

    Arguments:
        program: what it is appended to; the rest of SBUF, and all of PSUM, are used while it runs.
        c: [M, N] of any format: FP32 sums, or INT32 for INT8, are cast.
        a: A transposed, [K, M].
        b: [K, N] of the format of a, one that the tensor engine multiplies.
        finish: appends what happens to a group's sums; None: they are copied.
        strips: rows of C, consecutive ones from 0 on; None: all of them together. A strip is computed before the next
            one, and takes B from HBM anew.
        stored: what follows a strip; None: nothing.

    Raises:
        ValueError: if shapes or formats do not fit, or SBUF has no room for a tile of K.
    """
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[0] != b.shape[0] or c.shape != (a.shape[1], b.shape[1]):
        raise ValueError(f"c, a, b must be [M, N], [K, M], [K, N], not {c.shape!r}, {a.shape!r}, {b.shape!r}")
    if a.format != b.format or a.format not in MATMUL_FORMATS:
        names = ", ".join(fmt.name for fmt in MATMUL_FORMATS)
        raise ValueError(f"a and b must have the same format of {names}, not {a.format.name} and {b.format.name}")
    kernel = _Kernel(program, c, a, b, finish, strips or [slice(0, c.shape[0])])
    kernel.run(stored or (lambda rows: None))


def passes(fmt: Format, transposed: bool = False) -> list[tuple[int, int, bool]]:
    """Return the passes of a format over a tile of K: half of the stationary operand, half of the moving one, and
    whether the stationary one has to be loaded for it.

    The order of the passes of FP32 is that of (half of A, half of B), whichever is stationary: so the shape of a
    product, which decides that, does not show in its bits.
    """
    halves = (0, 1) if fmt is FP32 else (0,)
    pairs = [(b, a) if transposed else (a, b) for a in halves for b in halves]
    before = [None, *(stationary for stationary, _ in pairs)]
    return [(stationary, moving, stationary != last) for (stationary, moving), last in zip(pairs, before, strict=False)]


class _Kernel:
    """One product as it is appended."""

    def __init__(
        self, program: Program, c: HbmTensor, a: HbmTensor, b: HbmTensor, finish: Finish | None, strips: Sequence[slice]
    ):
        self.program, self.config = program, program.config
        self.c, self.a, self.b = c, a, b
        self.finish = finish or (lambda out, sums, rows, columns: program.append(tensor_copy(out, sums)))
        self.element = a.format.bits // 8
        self.pitch = -(-self.config.columns // LOAD_COLUMNS) * LOAD_COLUMNS  # of stationary tiles, in elements
        self.depth = cut(0, a.shape[0], self.config.rows)
        self.strips = strips
        self.blocks = [block for rows in strips for block in blocks(rows, *c.shape, self.config)]
        self.loading, self.storing = program.load_queues, program.store_queues
        self.loads = self.stores = self.stored = self.groups = 0

        space = program.space
        self.sums = space.psum("sums", INT32 if a.format is INT8 else FP32, (PSUM_BANKS, PSUM_WORDS))
        widest = max(length(group.columns) for block in self.blocks for group in block.groups)
        lanes = min(self.config.columns, c.shape[0])
        self.stages = [space.sbuf(f"stage{n}", c.format, (widest,), lanes) for n in range(STAGES)]
        # A buffer starts at the start of a line, which is aligned enough for every format.
        room = (len(space.room(Storage.SBUF)) - STAGES * (widest * c.format.bits // 8 + LINE_BYTES)) // 2
        wanted = max(len(self.depth) * self._tile_bytes(block) for block in self.blocks)
        self.size = min(room // LINE_BYTES, -(-wanted // LINE_BYTES)) * LINE_BYTES
        if self.size < max(self._tile_bytes(block) for block in self.blocks):
            raise ValueError(f"SBUF must have room for two buffers of a tile of K, not {2 * room} bytes")
        self.buffers = [space.sbuf(f"buffer{n}", INT8, (self.size,)) for n in (0, 1)]

    def run(self, stored: Stored) -> None:
        turn, strips = 0, list(self.strips)
        for number, block in enumerate(self.blocks):
            first, last = number == 0, number == len(self.blocks) - 1
            banks = [(self.groups + n) % PSUM_BANKS for n in range(len(block.groups))]
            self.groups += len(block.groups)
            for chunk in self._chunks(block, growing=first):
                operands = _Operands(self, block, chunk, self.buffers[turn % 2].address, first and chunk.start == 0)
                turn += 1
                operands.load()
                for group, bank in zip(block.groups, banks, strict=True):
                    for k in range(chunk.start, chunk.stop):
                        self._multiply(operands, group, bank, k)
                    if chunk.stop == len(self.depth):
                        self._drain(group, self.sums[:, bank], 1 + last * (self.config.hbm_ports - 1))
            if last or self.blocks[number + 1].rows.start >= strips[0].stop:
                stored(strips.pop(0))

    def _tile_bytes(self, block: OutputBlock) -> int:
        """Return the bytes of a partition that a tile of K of a block's operands takes."""
        return (ceil(length(block.rows) / self.config.columns) * self.pitch + length(block.columns)) * self.element

    def _chunks(self, block: OutputBlock, growing: bool) -> Iterator[slice]:
        first, most = 0, self.size // self._tile_bytes(block)
        while first < len(self.depth):
            size = min(most, max(1, first)) if growing else most
            yield slice(first, min(first + size, len(self.depth)))
            first += size

    def _multiply(self, operands: "_Operands", group: OutputGroup, bank: int, k: int) -> None:
        """Append what adds a tile of K to a group."""
        a, rows = operands.stationary(k, group.rows), length(self.depth[k])
        common = {"format": a.format, "k": rows, "m": length(group.rows)}
        accumulate = k > 0
        for half, moving_half, loads in passes(a.format):
            if loads:
                self.program.append(LoadStationary(**common, half=half, address=a.address))
            for part in operands.parts(k, group.columns):
                self.program.append(
                    MultiplyMoving(
                        **common,
                        half=moving_half,
                        n=length(part),
                        address=operands.moving(k, part).address,
                        stride=self.element,
                        psum=self.sums[:, bank, part.start - group.columns.start].address // 4,
                        accumulate=accumulate,
                    )
                )
            accumulate = True

    def _drain(self, group: OutputGroup, sums: Tensor, parts: int) -> None:
        """Append what brings a group to HBM."""
        m, n = length(group.rows), length(group.columns)
        out = self.stages[self.stores % STAGES][:m, :n]
        self.stores += 1
        self.finish(out, sums[:m, :n], group.rows, group.columns)
        for part in cut(0, m, ceil(m / parts)):
            target = self.c[group.rows, group.columns][part]
            self.program.append(dma_copy(target, out[part]), self.storing[self.stored % len(self.storing)])
            self.stored += 1

    def load(self, target: Tensor, source: HbmTensor, parts: int) -> None:
        """Append what brings a tile of K to SBUF, by as many DMA engines at once."""
        for part in cut(0, target.partitions, ceil(target.partitions / parts)):
            self.program.append(dma_copy(target[part], source[part]), self.loading[self.loads % len(self.loading)])
            self.loads += 1


@dataclass(frozen=True)
class _Operands:
    """A chunk's operands in a buffer: the tiles of A, one behind the other, then those of B.

    Arguments:
        kernel: the product.
        block: whose they are.
        chunk: the tiles of K.
        address: of the buffer.
        early: whether the tensor engine has nothing else to do yet, so that the first tile comes in parts.
    """

    kernel: _Kernel
    block: OutputBlock
    chunk: slice
    address: int
    early: bool

    @property
    def tiles(self) -> list[slice]:
        """Rows of C that share stationary operands, as many as the array has columns."""
        return cut(self.block.rows.start, self.block.rows.stop, self.kernel.config.columns)

    def stationary(self, k: int, rows: slice) -> Tensor:
        """Return where the tile of A of some rows of C is."""
        kernel = self.kernel
        tile = (k - self.chunk.start) * len(self.tiles) + (rows.start - self.block.rows.start) // kernel.config.columns
        return self._tensor("a", k, tile * kernel.pitch, rows)

    def moving(self, k: int, columns: slice) -> Tensor:
        """Return where the tile of B of some columns is."""
        width = length(self.block.columns)
        first = length(self.chunk) * len(self.tiles) * self.kernel.pitch
        place = (k - self.chunk.start) * width + columns.start - self.block.columns.start
        return self._tensor("b", k, first + place, columns)

    def parts(self, k: int, columns: slice) -> list[slice]:
        """Return the columns of a tile of B as they arrive."""
        if not (self.early and k == 0):
            return [columns]
        return cut(columns.start, columns.stop, max(EARLY, self.kernel.config.columns))

    def load(self) -> None:
        """Append the copies that bring the operands from HBM, in the order in which they are needed."""
        kernel = self.kernel
        for k in range(self.chunk.start, self.chunk.stop):
            early = self.early and k == 0
            together = kernel.pitch == kernel.config.columns and not early
            rows = [self.block.rows] if together else self.tiles
            ports = kernel.config.hbm_ports if early else 1
            first, *others = [(self.stationary(k, part), kernel.a[kernel.depth[k], part]) for part in rows]
            columns = [
                (self.moving(k, part), kernel.b[kernel.depth[k], part]) for part in self.parts(k, self.block.columns)
            ]
            for target, source in (first, *columns, *others):
                kernel.load(target, source, ports)

    def _tensor(self, name: str, k: int, place: int, part: slice) -> Tensor:
        kernel = self.kernel
        return Tensor(
            name=name,
            format=kernel.a.format,
            address=self.address + place * kernel.element,
            partitions=length(kernel.depth[k]),
            shape=(length(part),),
        )

"""Matrix multiplication on the whole core, from HBM to HBM: C[M, N] = A[M, K] x B[K, N] of any shape.

A is stored transposed, [K, M]: both operands have K along the partitions. C is cut into *groups*, each an accumulation
over K: as many rows as the array has columns, and up to a PSUM bank of columns.

* A *block* is up to eight groups in the same columns of C. It processes the tiles of K in *chunks*: all tiles of a
  chunk are added to one group, then to the next. Longer chunks finish the first groups earlier, but they need more
  operands early, and room in SBUF for these.
* Operands stay in SBUF while there is room (`kernels.tiling.resident`), and loads are prefetched at the full rate
  of HBM.
* The last group is cut into ever narrower pieces, so that little work remains after the last sum.
* A vector A is loaded as rows (`kernels.tiling.column`); the load of B limits the speed.
* C may be computed in *strips* of rows, so that a consumer of a strip, such as a collective, can be appended between
  its stores and the next strip.

A finished group is cast and copied to SBUF, and then to HBM, in pieces of some columns. Copies are distributed over the
DMA engines of all ports (`kernels.tiling.engines`). A record can wait on two semaphores, so each operand is loaded
by at most two copies. The order of all instructions is fixed here, not by the scheduler.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, pairwise
from math import ceil

from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, load_stationary, multiply_moving
from neuroncore_rtl.kernels.program.instructions import tensor_copy
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.kernels.tiling.blocks import LAST, OutputBlock, OutputGroup, blocks, cut, length
from neuroncore_rtl.kernels.tiling.column import Column
from neuroncore_rtl.kernels.tiling.engines import LONG, TilingEngines, beats
from neuroncore_rtl.kernels.tiling.resident import Panel, Resident
from neuroncore_rtl.spec.config import LINE_BYTES, LOAD_COLUMNS, PSUM_BANKS
from neuroncore_rtl.spec.formats import FP32, INT8, INT32, Format
from neuroncore_rtl.spec.isa import RECORD_BYTES, LoadStationary, MultiplyMoving, Storage

__all__ = ["Stored", "add_products", "matmul", "passes"]

Finish = Callable[[Tensor, Tensor, slice, slice], None]
"""Appends the instructions that finish a piece of a group: destination in SBUF, sums in PSUM, rows and columns of C.

A piece has up to `DRAIN` columns. The instructions keep their order.
"""

Stored = Callable[[slice], None]
"""Appends the consumers of a strip, after all its stores; called with its rows."""

EARLY = 32
"""Columns of the first copy of B; minimum columns of a store."""

DRAIN = 128
"""Maximum columns of a store: in FP32 a line of every SBUF bank, so that ports do not conflict."""

COPY = 128
"""Minimum columns of a copy of A; a copy of B has a port's share of a PSUM bank."""

SHARE = 7 / 8
"""Fraction of cycles in which a saturated HBM moves a beat."""

HALVED = 12
"""Number of final tiles of K for which copies of B are half as wide, if HBM is the bottleneck: at the end the array
still has to multiply the last copy.
"""

STAGES = 32
"""Finished pieces in flight to HBM for which SBUF has room beside the operands."""


@located
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

    The instructions use all of PSUM and all free bytes of SBUF. c is [M, N] in any format; FP32 sums, or INT32 for
    INT8, are cast. a is A transposed, [K, M]; b is [K, N] in the format of a. `finish` replaces the copy of the sums.
    `strips` are consecutive ranges of rows of C, from row 0 on, computed one after another; `stored` appends the
    consumers of a strip. Raises ValueError if shapes or formats do not match, or SBUF has no room for a tile of both
    operands.
    """
    for matrix in (c, a, b):
        if not isinstance(matrix, HbmTensor):
            raise ValueError(f"c, a, b must be matrices in HBM (`product` has others), not {type(matrix).__name__}")
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[0] != b.shape[0] or c.shape != (a.shape[1], b.shape[1]):
        raise ValueError(f"c, a, b must be [M, N], [K, M], [K, N], not {c.shape!r}, {a.shape!r}, {b.shape!r}")
    if a.format != b.format or a.format not in program.config.matmul_formats:
        names = ", ".join(fmt.name for fmt in program.config.matmul_formats)
        raise ValueError(f"a and b must have the same format of {names}, not {a.format.name} and {b.format.name}")
    kernel = _Kernel(program, c, a, b, finish, strips or [slice(0, c.shape[0])])
    with program.in_order():
        kernel.append(stored or (lambda rows: None))


@located
def passes(fmt: Format, transposed: bool = False) -> list[tuple[int, int, bool]]:
    """Return the passes over a tile of K: half of the stationary and of the moving operand, and whether to load.

    If `transposed`, B is stationary. FP32 passes are ordered by (half of A, half of B) in both cases. So the choice of
    the stationary operand, which depends on the shape, does not change the bits of a product.
    """
    halves = (0, 1) if fmt is FP32 else (0,)
    pairs = [(b, a) if transposed else (a, b) for a in halves for b in halves]
    before = [None, *(stationary for stationary, _ in pairs)]
    return [(stationary, moving, stationary != last) for (stationary, moving), last in zip(pairs, before, strict=False)]


@located
def add_products(
    program: Program,
    sums: Sequence[Tensor],
    stationary: Tensor,
    moving: Sequence[Tensor],
    *,
    accumulate: bool,
    transposed: bool = False,
    whole: tuple[bool, bool] = (False, False),
) -> None:
    """Append sums[i] += stationary.T moving[i] in PSUM for one tile of K; = instead of += unless `accumulate`.

    `transposed` is as in `passes`. An operand is `whole` if the upper half of each FP32 significand is all of it.
    """
    last = None
    for half, other, _ in passes(stationary.format, transposed):
        if (half and whole[0]) or (other and whole[1]):
            continue
        if half != last:
            program.append(load_stationary(stationary, half=half))
        for total, operand in zip(sums, moving, strict=True):
            program.append(multiply_moving(total, operand, half=other, accumulate=accumulate))
        last, accumulate = half, True


class _Kernel:
    def __init__(
        self, program: Program, c: HbmTensor, a: HbmTensor, b: HbmTensor, finish: Finish | None, strips: Sequence[slice]
    ):
        self.program, self.config = program, program.config
        self.c, self.a, self.b = c, a, b
        self.finish = finish or (lambda out, sums, rows, columns: program.append(tensor_copy(out, sums)))
        self.element = a.format.bits // 8
        self.depth = cut(0, a.shape[0], self.config.rows)
        self.widths = (
            max(self.config.columns, COPY),
            max(self.config.columns, self.config.psum_words // self.config.hbm_ports),
        )
        self.strips = strips
        first = self._groups_in_time()
        m, n = c.shape
        self.blocks = [block for rows in strips for block in blocks(rows, m, n, self.config, first)]
        self.column = Column(program, a)
        sizes = [self._beats(length(self.depth[0]), min(*of)) for of in zip(self.widths, c.shape, strict=True)]
        self.loading = TilingEngines(program, program.load_queues, min(sizes[1:] if self.column.tiles else sizes))
        self.banks = cycle(range(PSUM_BANKS))

        space = program.space
        self.sums = space.psum("sums", INT32 if a.format is INT8 else FP32, (PSUM_BANKS, self.config.psum_words))
        widest = max(length(part) for block in self.blocks for group in block.groups for part in self._pieces(group))
        lanes = min(self.config.columns, c.shape[0])
        self.storing = TilingEngines(
            program, program.store_queues, beats(self.config, lanes, widest * c.format.bits // 8)
        )
        # Reserve room for pieces in flight to HBM, and at least a quarter of SBUF for other temporaries.
        stages = STAGES * -(-widest * c.format.bits // 8 // LINE_BYTES) * LINE_BYTES
        room = len(space.room(Storage.SBUF)) - self.column.size
        self.resident = self._resident(room, max(stages, room // 4))
        self.weights = None
        self.starved = False  # whether loads of B limit the speed of the block, with A loaded as rows

    def append(self, stored: Stored) -> None:
        strips = list(self.strips)
        for number, block in enumerate(self.blocks):
            first, last = number == 0, number == len(self.blocks) - 1
            banks = [next(self.banks) for _ in block.groups]
            for chunk in self._chunks(number):
                for group, bank in zip(block.groups, banks, strict=True):
                    for k in range(chunk.start, chunk.stop):
                        early = first and k == 0 and not self.starved
                        self._multiply(block, group, bank, k, early, alone=length(chunk) == 1)
                    if chunk.stop == len(self.depth):
                        self._drain(group, self.sums[:, bank], self.config.hbm_ports if last else 1)
            if last or self.blocks[number + 1].strip != block.strip:
                stored(strips.pop(0))

    def _beats(self, rows: int, columns: int) -> int:
        return beats(self.config, rows, columns * self.element)

    def _groups_in_time(self) -> int:
        """Return the least groups per block for which HBM, loading all operands, is as fast as the array.

        A tile of B is used by all groups of a block, a tile of A by one. If loading A alone is slower than the array,
        return the maximum.
        """
        columns = min(self.config.psum_words, self.c.shape[1])
        # HBM also delivers the records of each load: of the copy, and of the tensor engine for every group.
        record = beats(self.config, 1, RECORD_BYTES)
        a, b = (
            (self._beats(self.config.rows, n) + records * record) / self.config.hbm_ports
            for n, records in ((self.config.columns, 3), (columns, 1))
        )
        spare = SHARE * columns * len(passes(self.a.format)) - a
        return min(PSUM_BANKS, ceil(b / spare)) if spare > 0 else PSUM_BANKS

    def _resident(self, room: int, reserved: int) -> Resident:
        self.panels, uses = {}, {}
        for number, block in enumerate(self.blocks):
            for group in block.groups:
                for panel in self._panels(block, group):
                    users = uses.setdefault(panel, [])
                    if number not in users[-1:]:
                        users.append(number)
        # A slot starts at a line, which is aligned for every format.
        size = -(-max(panel.size for panel in uses) // LINE_BYTES) * LINE_BYTES
        self.capacity = (room - reserved) // size
        if self.capacity < 2:
            rule = f"room for two tiles of K, {2 * size:,} bytes of a partition, and {reserved:,} for results"
            raise ValueError(f"SBUF must have {rule}, not {room:,}")
        count = min(self.capacity, len(self.depth) * len(uses))
        places = self.program.space.sbuf("operands", INT8, (count, size))
        return Resident([places[:, n].address for n in range(count)], self.depth, uses, self._load)

    def _panels(self, block: OutputBlock, group: OutputGroup) -> tuple[Panel, Panel]:
        columns = self.config.columns
        pitch = -(-columns // LOAD_COLUMNS) * LOAD_COLUMNS
        # A panel of A has at most as many rows of C as a PSUM bank has words, and as a block has.
        span = min(PSUM_BANKS, max(1, self.config.psum_words // pitch)) * columns
        start = block.strip.start + (group.rows.start - block.strip.start) // span * span
        rows = slice(start, min(start + span, block.strip.stop))
        wanted = Panel(self.a, rows, columns, pitch), Panel(self.b, block.columns)
        return tuple(self.panels.setdefault((panel.source, panel.columns.start), panel) for panel in wanted)

    def _chunks(self, number: int) -> Iterator[slice]:
        """Yield the chunks of K of a block: single tiles first, then longer chunks.

        There are just enough single tiles that no operand is late for the first group. If HBM is slower than the array,
        longer chunks only let the first group drain before the last one is finished.
        """
        block, depth = self.blocks[number], len(self.depth)
        panels = [self._panels(block, group) for group in block.groups]
        most = max(1, self.capacity // (2 * len({panel for pair in panels for panel in pair})))
        columns = [length(group.columns) for group in block.groups]
        # Time of the loads of a tile, and of the first group, relative to all products of the tile.
        loads = self._load_cycles(block) / (SHARE * sum(columns) * depth * len(passes(self.a.format)))
        share = columns[0] / sum(columns)
        single = 0
        self.starved = loads >= 1 and self.column.tiles > 0
        if loads >= 1:
            single = max(0, depth - LAST)
        elif number == 0 and loads > share:
            single = ceil((depth - 1) * (loads - share) / (1 - share))
        for chunk in (*cut(0, single, 1), *cut(single, depth, most)):
            self.resident.start(number, chunk.start)
            yield chunk

    def _load_cycles(self, block: OutputBlock) -> float:
        wanted = {}
        for group in block.groups:
            a, b = self._panels(block, group)
            wanted |= {(a, group.rows.start): (a, group.rows), (b, group.columns.start): (b, group.columns)}
        moved = sum(
            self._beats(length(rows), self.resident.lacking(panel, k, columns))
            for panel, columns in wanted.values()
            for k, rows in enumerate(self.depth)
        )
        return moved / self.config.hbm_ports

    def _multiply(self, block: OutputBlock, group: OutputGroup, bank: int, k: int, early: bool, alone: bool) -> None:
        """Append the product of a tile of K, added to a group.

        If `early`, the array would be idle, so the first copies are short. If `alone`, the chunk has one tile: the
        other groups of the block use it next, so the tile of B is loaded for all of them.
        """
        left, right = self._panels(block, group)
        a_width, b_width = self.widths
        if self.starved:
            if block is self.blocks[-1] and k >= len(self.depth) - HALVED:
                b_width = max(a_width, b_width // 2)
        elif early or k == len(self.depth) - 1:
            b_width = min(b_width, a_width)
        rows, columns, first_a, first_b = group.rows, group.columns, None, None
        if early:
            first_a, first_b = self.config.columns, max(EARLY, self.config.columns)
        else:
            rows = slice(rows.start, min(rows.start + a_width, block.rows.stop, left.columns.stop))
            columns = block.columns if alone else columns
        if k < self.column.tiles:
            address = self.column.bring(k)
        else:
            self.resident.bring(left, k, rows, a_width, first_a)
            address = self.resident.address(left, k, group.rows.start)
        pieces = self.resident.bring(right, k, columns, b_width, first_b)
        common = {"format": self.a.format, "k": length(self.depth[k]), "m": length(group.rows)}
        # Each copy of B is multiplied when it arrives.
        parts = _cut_at(group.columns, pieces)
        accumulate = k > 0
        for half, moving_half, _ in passes(self.a.format):
            weights = left, k, group.rows.start, half
            if weights != self.weights:
                self.weights = weights
                self.program.append(LoadStationary(**common, half=half, address=address))
            for part in parts:
                self.program.append(
                    MultiplyMoving(
                        **common,
                        half=moving_half,
                        n=length(part),
                        address=self.resident.address(right, k, part.start),
                        stride=self.element,
                        psum=self.sums[:, bank, part.start - group.columns.start].address // 4,
                        accumulate=accumulate,
                    )
                )
            accumulate, parts = True, [group.columns]

    def _pieces(self, group: OutputGroup) -> list[slice]:
        half = ceil(length(group.columns) / 2)
        return cut(group.columns.start, group.columns.stop, min(DRAIN, max(EARLY, self.config.columns, half)))

    def _drain(self, group: OutputGroup, sums: Tensor, parts: int) -> None:
        m = length(group.rows)
        for columns in self._pieces(group):
            first = columns.start - group.columns.start
            out = self.program.space.sbuf("result", self.c.format, (length(columns),), m)
            self.weights = None  # `finish` may replace the stationary operand
            self.finish(out, sums[:m, first : first + length(columns)], group.rows, columns)
            for part in cut(0, m, ceil(m / parts)):
                self.storing.copy(self.c[group.rows, columns][part], out[part])

    def _load(self, target: Tensor, source: HbmTensor, early: bool) -> None:
        """Append the load of some columns of an operand's tile, `source`.

        Two DMA engines load them if an instruction is already waiting, or if the load is long and engines share a port,
        which would interleave two long copies anyway.
        """
        if self.loading.are_alone:
            parts = 1 + (early and self.config.hbm_ports > 1)
        else:
            parts = 1 + (self._beats(target.partitions, target.size) >= LONG)
        for part in cut(0, target.partitions, ceil(target.partitions / parts)):
            self.loading.copy(target[part], source[part])


def _cut_at(columns: slice, pieces: Sequence[slice]) -> list[slice]:
    bounds = [columns.start, *(p.start for p in pieces if columns.start < p.start < columns.stop), columns.stop]
    return [slice(*pair) for pair in pairwise(bounds)]

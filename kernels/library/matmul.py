"""Matrix multiplication on the whole core, from HBM to HBM: C[M, N] = A[M, K] x B[K, N] of any shape.

A is stored transposed, [K, M], as kernels of this machine take it: K goes along the partitions for both operands. C is
cut into *groups*, the rows of an array's columns by up to a PSUM bank of words, each an accumulation over K:

* A *block* is up to eight groups of the same columns of C. It takes the tiles of K in *chunks*: a chunk's tiles are
  added to one group after the other. The longer the chunks, the earlier the first groups are ready; so they are as long
  as operands are there in time, and there is room for as many more in SBUF.
* What comes from HBM stays in SBUF for as long as there is room (:mod:`kernels.tiling.resident`): with enough of it
  both operands are loaded once, and loads are as far ahead of the array as HBM lets them.
* The last group is cut into ever narrower pieces, so that little is left to be done when the last sum is ready.
* If A is a vector, it comes as rows (:mod:`kernels.tiling.column`), and what HBM brings of B sets the pace.
* C may be asked for in *strips* of rows, one after the other, so that what is done with one of them, such as a
  collective, can be appended behind its stores and before the next one.

A finished group goes from PSUM to SBUF, cast on the way, and from there to HBM, in pieces of some columns. Copies
are shared among the DMA engines of all ports (:mod:`kernels.tiling.engines`). A record has two waits, so what one
needs comes by two of them at most. The order of it all is chosen here, and kept to.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, pairwise
from math import ceil

from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor
from neuroncore_rtl.kernels.program.instructions import tensor_copy
from neuroncore_rtl.kernels.tiling.blocks import LAST, OutputBlock, OutputGroup, blocks, cut, length
from neuroncore_rtl.kernels.tiling.column import Column
from neuroncore_rtl.kernels.tiling.engines import LONG, TilingEngines, beats
from neuroncore_rtl.kernels.tiling.resident import Panel, Resident
from neuroncore_rtl.spec.config import LINE_BYTES, LOAD_COLUMNS, PSUM_BANKS
from neuroncore_rtl.spec.formats import FP32, INT8, INT32, Format
from neuroncore_rtl.spec.isa import RECORD_BYTES, LoadStationary, MultiplyMoving, Storage

__all__ = ["Stored", "matmul", "passes"]

Finish = Callable[[Tensor, Tensor, slice, slice], None]
"""Appends what finishes a piece of a group, up to `DRAIN` columns. It is given its destination in SBUF, sums in PSUM,
its rows and columns of C. What it appends keeps its order, too."""

Stored = Callable[[slice], None]
"""Appends what follows when all of a strip's stores are appended; it is given the strip's rows."""

EARLY = 32
"""Columns of B that the first copy brings, and of a group that go to HBM together, at least."""

DRAIN = 128
"""Columns of a group that go to HBM together: in FP32 a line of every bank of SBUF, so that ports do not meet."""

COPY = 128
"""Columns of A that a copy brings, if the array is not larger; of B it is the share of a port."""

SHARE = 7 / 8
"""Of its cycles HBM moves a beat, when it has to."""

HALVED = 12
"""Last tiles of K whose copies of B are half as wide if the array waits for them: it is behind by a copy at the end."""

STAGES = 32
"""Pieces of finished groups for which SBUF has room beside the operands, on their way to HBM."""


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
        finish: appends what happens to a piece of sums; None: they are copied.
        strips: rows of C, consecutive ones from 0 on; None: all of them together. A strip is computed before the next
            one.
        stored: what follows a strip; None: nothing.

    Raises:
        ValueError: if shapes or formats do not fit, or SBUF has no room for a tile of both operands.
    """
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[0] != b.shape[0] or c.shape != (a.shape[1], b.shape[1]):
        raise ValueError(f"c, a, b must be [M, N], [K, M], [K, N], not {c.shape!r}, {a.shape!r}, {b.shape!r}")
    if a.format != b.format or a.format not in program.config.matmul_formats:
        names = ", ".join(fmt.name for fmt in program.config.matmul_formats)
        raise ValueError(f"a and b must have the same format of {names}, not {a.format.name} and {b.format.name}")
    kernel = _Kernel(program, c, a, b, finish, strips or [slice(0, c.shape[0])])
    with program.in_order():
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
        # As many pieces as may be on their way to HBM, and at least a quarter for what else is in use.
        stages = STAGES * -(-widest * c.format.bits // 8 // LINE_BYTES) * LINE_BYTES
        room = len(space.room(Storage.SBUF)) - self.column.size
        self.resident = self._resident(room - max(stages, room // 4))
        self.weights = None
        self.starved = False  # whether the array waits for B, which one engine brings, in all of a block

    def run(self, stored: Stored) -> None:
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
        """Return the beats of a copy of an operand."""
        return beats(self.config, rows, columns * self.element)

    def _groups_in_time(self) -> int:
        """Return how many groups it takes at least that the array is no faster than HBM, which brings all operands.

        It brings a tile of B for all of them, and one of A for each; so if it is slower than the array with every one
        of them alone, no number is enough.
        """
        columns = min(self.config.psum_words, self.c.shape[1])
        # Each comes with records: of the copy, and for every group those of the tensor engine.
        record = beats(self.config, 1, RECORD_BYTES)
        a, b = (
            (self._beats(self.config.rows, n) + records * record) / self.config.hbm_ports
            for n, records in ((self.config.columns, 3), (columns, 1))
        )
        spare = SHARE * columns * len(passes(self.a.format)) - a
        return min(PSUM_BANKS, ceil(b / spare)) if spare > 0 else PSUM_BANKS

    def _resident(self, room: int) -> Resident:
        """Give operands so many bytes of a partition, or as many as they need."""
        self.panels, uses = {}, {}
        for number, block in enumerate(self.blocks):
            for group in block.groups:
                for panel in self._panels(block, group):
                    users = uses.setdefault(panel, [])
                    if number not in users[-1:]:
                        users.append(number)
        # A place starts at the start of a line, which is aligned enough for every format.
        size = -(-max(panel.size for panel in uses) // LINE_BYTES) * LINE_BYTES
        self.capacity = room // size
        if self.capacity < 2:
            raise ValueError(f"SBUF must have room for two tiles of K, {2 * size} bytes, not {room}")
        count = min(self.capacity, len(self.depth) * len(uses))
        places = self.program.space.sbuf("operands", INT8, (count, size))
        return Resident([places[:, n].address for n in range(count)], self.depth, uses, self._load)

    def _panels(self, block: OutputBlock, group: OutputGroup) -> tuple[Panel, Panel]:
        """Return the panels of A and B that a group needs."""
        columns = self.config.columns
        pitch = -(-columns // LOAD_COLUMNS) * LOAD_COLUMNS
        # As many rows of C as a tile of B has columns at most, or as a block has.
        span = min(PSUM_BANKS, max(1, self.config.psum_words // pitch)) * columns
        start = block.strip.start + (group.rows.start - block.strip.start) // span * span
        rows = slice(start, min(start + span, block.strip.stop))
        wanted = Panel(self.a, rows, columns, pitch), Panel(self.b, block.columns)
        return tuple(self.panels.setdefault((panel.source, panel.columns.start), panel) for panel in wanted)

    def _chunks(self, number: int) -> Iterator[slice]:
        """Return the tiles of K that a block adds to one group after the other: single ones, then all others.

        The single ones are as few as it takes that no operand is late for the first group, which then goes on without
        the other ones. If HBM is slower than the array, there are others only so that the first group is on its way to
        HBM when the last one is ready.
        """
        block, depth = self.blocks[number], len(self.depth)
        panels = [self._panels(block, group) for group in block.groups]
        most = max(1, self.capacity // (2 * len({panel for pair in panels for panel in pair})))
        columns = [length(group.columns) for group in block.groups]
        # What the loads of a tile take of the time of its products, and what the first group takes.
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
        """Return how long HBM takes to bring what a block lacks."""
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
        """Append what adds a tile of K to a group.

        Arguments:
            early: whether the array has nothing else to do yet, and HBM time for short copies.
            alone: whether the other groups of the block follow with the same tile.
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
        # B is multiplied as it comes.
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
        """Return the columns of a group that go to HBM together: half of them at most, to start with it early."""
        half = ceil(length(group.columns) / 2)
        return cut(group.columns.start, group.columns.stop, min(DRAIN, max(EARLY, self.config.columns, half)))

    def _drain(self, group: OutputGroup, sums: Tensor, parts: int) -> None:
        """Append what brings a group to HBM, each piece of it by as many copies."""
        m = length(group.rows)
        for columns in self._pieces(group):
            first = columns.start - group.columns.start
            out = self.program.space.sbuf("result", self.c.format, (length(columns),), m)
            self.weights = None  # whatever that appends
            self.finish(out, sums[:m, first : first + length(columns)], group.rows, columns)
            for part in cut(0, m, ceil(m / parts)):
                self.storing.copy(self.c[group.rows, columns][part], out[part])

    def _load(self, target: Tensor, source: HbmTensor, early: bool) -> None:
        """Append what brings a piece of an operand to SBUF.

        Two engines bring it if something waits for it already; or if engines share a port and it is long, as two long
        copies would come at the same time there instead of one after the other.
        """
        if self.loading.are_alone:
            parts = 1 + (early and self.config.hbm_ports > 1)
        else:
            parts = 1 + (self._beats(target.partitions, target.size) >= LONG)
        for part in cut(0, target.partitions, ceil(target.partitions / parts)):
            self.loading.copy(target[part], source[part])


def _cut_at(columns: slice, pieces: Sequence[slice]) -> list[slice]:
    """Cut columns where one of the pieces starts."""
    bounds = [columns.start, *(p.start for p in pieces if columns.start < p.start < columns.stop), columns.stop]
    return [slice(*pair) for pair in pairwise(bounds)]

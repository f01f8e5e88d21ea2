"""The bytes that an instruction reads and writes, and whether those of two instructions meet."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from neuroncore_rtl.spec.config import LOAD_COLUMNS, Config
from neuroncore_rtl.spec.isa import (
    Access,
    DmaCopy,
    DmaIndex,
    DmaTensor,
    Elementwise,
    LoadStationary,
    MultiplyMoving,
    Pointer,
    Storage,
)
from neuroncore_rtl.spec.isa.collective import BLOCKS_OF_DST, BLOCKS_OF_SRC, Collective, CollectiveKind, element_bytes
from neuroncore_rtl.spec.isa.collective_legality import uses_dst, uses_src
from neuroncore_rtl.spec.isa.legality import counts_of, uses
from neuroncore_rtl.spec.isa.record import Instruction

__all__ = ["Footprint", "Region", "check_apart"]

MOST_RUNS = 1 << 20
"""A region of more runs than this counts as all of its span."""


@dataclass(frozen=True)
class Region:
    """The elements of one access: the same bytes in each of some partitions.

    Arguments:
        name: what the instruction calls it, such as dst or a.
        storage: where it is; HBM is one partition.
        partition, partitions: the first one, and how many.
        address: of the element of index 0.
        size: bytes of an element.
        dimensions: count and step in bytes of each dimension that has more than one element, outermost first.
        partition_step: from one partition to the next, at least 1.
    """

    name: str
    storage: Storage
    partition: int
    partitions: int
    address: int
    size: int
    dimensions: tuple[tuple[int, int], ...]
    partition_step: int = 1

    @property
    def rows(self) -> range:
        """The partitions."""
        return range(self.partition, self.partition + self.partitions * self.partition_step, self.partition_step)

    @cached_property
    def span(self) -> tuple[int, int]:
        """The first byte, and the one after the last."""
        spans = [(count - 1) * step for count, step in self.dimensions]
        low, high = (sum(pick(span, 0) for span in spans) for pick in (min, max))
        return self.address + low, self.address + high + self.size

    @cached_property
    def is_dense(self) -> bool:
        """Whether it certainly touches every byte of its span."""
        reach = self.size
        for step, count in sorted((abs(step), count) for count, step in self.dimensions):
            if step > reach:
                return False
            reach += (count - 1) * step
        return True

    @cached_property
    def is_distinct(self) -> bool:
        """Whether certainly no two of its elements are the same: each step goes beyond all that smaller ones reach."""
        reach = 0
        for step, count in sorted((abs(step), count) for count, step in self.dimensions):
            if step <= reach:
                return False
            reach += (count - 1) * step
        return True

    @cached_property
    def addresses(self) -> np.ndarray:
        """The address of every byte; some may be there more than once."""
        addresses = self.address + np.arange(self.size)
        for count, step in self.dimensions:
            addresses = (addresses + step * np.arange(count)[:, np.newaxis]).reshape(-1)
        return addresses

    @cached_property
    def runs(self) -> tuple[np.ndarray, int]:
        """Ascending addresses of the runs of bytes that it consists of, and the length of all of them."""
        low, high = self.span
        starts, length, number = np.array([low]), self.size, 1
        for step, count in sorted((abs(step), count) for count, step in self.dimensions):
            if number == 1 and step <= length:
                length += (count - 1) * step
                continue
            number *= count
            if number > MOST_RUNS:
                return np.array([low]), high - low
            starts = (starts + step * np.arange(count)[:, np.newaxis]).reshape(-1)
        return np.unique(starts), length

    def overlaps(self, other: "Region") -> bool:
        """Return whether the two have a byte in common."""
        if self.storage != other.storage or not _meet(self.rows, other.rows):
            return False
        low, high = max(self.span[0], other.span[0]), min(self.span[1], other.span[1])
        if low >= high or (self.is_dense and other.is_dense):
            return low < high
        (starts, length), (others, reach) = self.runs, other.runs
        # For each run of the other: the first run of this one that ends behind its start.
        nearest = np.searchsorted(starts, others - length, side="right")
        near = nearest < len(starts)
        return bool((starts[nearest[near]] < others[near] + reach).any())

    def coincides(self, other: "Region") -> bool:
        """Return whether the two are the same element for element, and no element is there twice."""
        return self.place == other.place and self.is_distinct

    @property
    def place(self) -> tuple:
        """All but the name."""
        return (
            self.storage, self.partition, self.partitions, self.partition_step, self.address, self.size,
            self.dimensions,
        )  # fmt: skip


def _meet(a: range, b: range) -> bool:
    if a.start >= b.stop or b.start >= a.stop:
        return False
    return a.step == b.step == 1 or not set(a).isdisjoint(b)


class Footprint:
    """What an instruction touches.

    Arguments:
        instruction: a legal one, of any engine.
        config: the machine's parameters.

    Attributes:
        reads: regions of the sources, of scalars and of row numbers in memory.
        writes: regions of the destination, and of a reduction's result. What a MultiplyMoving accumulates to is here.
    """

    def __init__(self, instruction: Instruction, config: Config):
        self.reads: list[Region]
        self.writes: list[Region]
        match instruction:
            case Elementwise():
                self.reads, self.writes = _elementwise(instruction, config)
            case LoadStationary():
                self.reads, self.writes = [_stationary(instruction)], []
            case MultiplyMoving():
                self.reads, self.writes = [_moving(instruction)], [_result(instruction)]
            case DmaCopy():
                self.reads, self.writes = _copy(instruction)
            case Collective():
                self.reads, self.writes = _collective(instruction)


def check_apart(instruction: Instruction, footprint: Footprint) -> None:
    """Refuse an instruction that writes over a tensor of its own other than element for element.

    Scalars and statistics are read before anything is written; of everything else the order of reading and writing is
    the engine's affair.

    Raises:
        ValueError: with both regions.
    """
    if isinstance(instruction, LoadStationary | MultiplyMoving):
        return
    if isinstance(instruction, Collective):
        _check_blocks(instruction, footprint)
        return
    sources = [region for region in footprint.reads if region.name not in ("s0", "s1")]
    dst, *results = footprint.writes
    pairs = [(dst, source) for source in sources]
    pairs += [(result, region) for result in results for region in (dst, *sources)]
    for written, other in pairs:
        same = written is dst and written.coincides(other)
        if not same and written.overlaps(other):
            name = instruction.opcode.name if isinstance(instruction, Elementwise) else "DMA_COPY"
            raise ValueError(
                f"{name}: {written.name} must be apart from {other.name}, or for dst the same "
                f"element for element, not bytes {written.span} over {other.span}"
            )


def _check_blocks(instruction: Collective, footprint: Footprint) -> None:
    own = instruction.rank * instruction.pitch
    same = {
        CollectiveKind.ALL_REDUCE: instruction.dst == instruction.src,
        CollectiveKind.BROADCAST: instruction.dst == instruction.src,
        CollectiveKind.REDUCE_SCATTER: instruction.dst == instruction.src + own,
        CollectiveKind.ALL_GATHER: instruction.src == instruction.dst + own,
    }
    for src in footprint.reads:
        for dst in footprint.writes:
            if dst.overlaps(src) and not same.get(instruction.kind, False):
                raise ValueError(
                    f"{instruction.kind.name}: dst must be apart from src, or the same block where the two may be, "
                    f"not bytes {dst.span} over {src.span}"
                )


def _elementwise(instruction: Elementwise, config: Config) -> tuple[list[Region], list[Region]]:
    lanes, values = instruction.partitions, instruction.fields(config)

    def tensor(name: str) -> Region:
        access: Access = getattr(instruction, name)
        size = access.format.bits // 8
        counts = reversed(counts_of(values, name)[: len(access.steps)])
        dimensions = tuple((n, step * size) for n, step in zip(counts, access.steps, strict=True) if n > 1)
        return Region(name, access.storage, access.partition, lanes, access.address, size, dimensions)

    def scalar(name: str) -> Region:
        pointer: Pointer = getattr(instruction, name)
        return Region(name, Storage.SBUF, pointer.partition, lanes, pointer.address, pointer.format.bits // 8, ())

    used = uses(values)
    scalars = [name for name in ("s0", "s1") if name in used and isinstance(getattr(instruction, name), Pointer)]
    reads = [tensor(name) for name in ("a", "b") if name in used] + [scalar(name) for name in scalars]
    return reads, [tensor(name) for name in ["dst"] + ["b"] * ("result" in used)]


def _stationary(load: LoadStationary) -> Region:
    size = load.format.bits // 8
    columns = -(-load.m // LOAD_COLUMNS) * LOAD_COLUMNS
    return Region("stationary", Storage.SBUF, 0, load.k, load.address, size, ((columns, size),))


def _moving(multiply: MultiplyMoving) -> Region:
    size = multiply.format.bits // 8
    dimensions = ((multiply.n, multiply.stride),) if multiply.n > 1 else ()
    return Region("moving", Storage.SBUF, 0, multiply.k, multiply.address, size, dimensions)


def _result(multiply: MultiplyMoving) -> Region:
    dimensions = ((multiply.n, 4),) if multiply.n > 1 else ()
    return Region("psum", Storage.PSUM, 0, multiply.m, 4 * multiply.psum, 4, dimensions)


def _copy(copy: DmaCopy) -> tuple[list[Region], list[Region]]:
    reads = [_of_copy("src", copy.src, copy.shape, copy.gather)]
    index = copy.gather or copy.scatter
    if index:
        reads.append(Region("index", Storage.SBUF, index.partition, copy.shape[0], index.address, 4, ()))
    return reads, [_of_copy("dst", copy.dst, copy.shape, copy.scatter)]


def _of_copy(name: str, tensor: DmaTensor, shape: tuple[int, ...], index: DmaIndex | None) -> Region:
    """Return a copy's region; row numbers are not known yet, so they may be all those below the limit."""
    size = tensor.format.bits // 8
    counts = (max(index.limit, 1), *shape[1:]) if index else shape
    dimensions = tuple(
        (count, step * size)
        for d, (count, step) in enumerate(zip(counts, tensor.steps, strict=True))
        if count > 1 and d != tensor.axis
    )
    first, rows, step = tensor.partition, 1, 1
    if tensor.axis is not None and tensor.steps[tensor.axis]:
        rows, step = shape[tensor.axis], tensor.steps[tensor.axis]
        first += min(0, (rows - 1) * step)
    if tensor.storage == Storage.HBM:
        first = 0
    return Region(name, tensor.storage, first, rows, tensor.address, size, dimensions, abs(step))


def _collective(instruction: Collective) -> tuple[list[Region], list[Region]]:
    """Return what a rank reads and writes in its own HBM."""
    values = instruction.fields()
    reads = [_blocks(instruction, "src", instruction.kind in BLOCKS_OF_SRC)] * uses_src(values)
    return reads, [_blocks(instruction, "dst", instruction.kind in BLOCKS_OF_DST)] * uses_dst(values)


def _blocks(instruction: Collective, name: str, several: bool) -> Region:
    size = element_bytes(instruction.dtype)
    counts = (instruction.group.ranks if several else 1, instruction.pitch), (instruction.count, size)
    dimensions = tuple((count, step) for count, step in counts if count > 1)
    return Region(name, Storage.HBM, 0, 1, getattr(instruction, name), size, dimensions)

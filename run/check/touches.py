"""Bytes that an instruction reads and writes, for the checks of finished programs and runs.

Programs are made with `reads` and `writes` of `spec.isa`; these share no code with this module, so that a mistake in
one of them becomes a difference.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Instruction, collective
from neuroncore_rtl.spec.isa.elementwise import counts_of, uses

__all__ = ["Touch", "touches_of"]

WORD = 4
"""Bytes of a word of PSUM, and of a row number."""


@dataclass(frozen=True)
class Touch:
    """An access to the same bytes in each of several partitions.

    Arguments:
        name: name of the operand, such as dst or a.
        writes: whether it is a write.
        storage: the memory; HBM is one partition.
        partitions: ascending.
        starts: ascending addresses of runs of adjacent bytes.
        length: bytes of a run.
    """

    name: str
    writes: bool
    storage: isa.Storage
    partitions: range
    starts: np.ndarray
    length: int

    @cached_property
    def box(self) -> tuple[int, int, int, int, int]:
        """Bounding box of the access: storage, first and end partition, first and end byte; ends are exclusive."""
        partitions, starts = self.partitions, self.starts
        return self.storage, partitions[0], partitions[-1] + 1, int(starts[0]), int(starts[-1]) + self.length

    def meets(self, other: "Touch") -> bool:
        """Return whether two accesses share a byte."""
        if self.storage != other.storage or set(self.partitions).isdisjoint(other.partitions):
            return False
        # This access's first run that ends after the start of each run of the other.
        place = np.searchsorted(self.starts, other.starts - self.length, side="right")
        within = place < len(self.starts)
        return bool(np.any(self.starts[place[within]] < other.starts[within] + other.length))


def touches_of(instruction: Instruction, config: Config) -> list[Touch]:
    """Return the memory accesses of a legal instruction.

    A gather or scatter accesses every row below its limit, since its indices are not known.
    """
    match instruction:
        case isa.Elementwise():
            return list(_elementwise(instruction, config))
        case isa.DmaCopy():
            return list(_copy(instruction))
        case isa.LoadStationary(m=m, address=address):
            size = instruction.format.bits // 8
            return [_touch("stationary", False, isa.Storage.SBUF, _rows(instruction), address, size, [(m, size)])]
        case isa.MultiplyMoving():
            return list(_multiply(instruction))
        case collective.Collective():
            return list(_collective(instruction))
        case isa.Nop():
            return []
    raise TypeError(f"instruction must be one of the core's, not {instruction!r}")


def _touch(
    name: str, writes: bool, storage: isa.Storage, partitions: range, address: int, size: int, dimensions
) -> Touch:
    """Return the access to elements of `size` bytes, from `address` on; `dimensions`: (count, distance in bytes)."""
    starts, length = np.array([address]), size
    for step, count in sorted((abs(step), count) for count, step in dimensions if step):
        if len(starts) == 1 and step <= length:
            length += (count - 1) * step
        else:
            starts = (starts + step * np.arange(count)[:, np.newaxis]).reshape(-1)
    # Steps above are absolute values; negative ones lower the first address.
    low = sum(min((count - 1) * step, 0) for count, step in dimensions)
    if partitions.step < 0:
        partitions = partitions[::-1]
    return Touch(name, writes, storage, partitions, np.unique(starts + low), length)


def _elementwise(instruction: isa.Elementwise, config: Config) -> Iterator[Touch]:
    values = instruction.fields(config)
    used = uses(values) | {"dst"}
    for name in ("dst", "a", "b", "s0", "s1", "result"):
        field, writes = "b" if name == "result" else name, name in ("dst", "result")
        place = getattr(instruction, field)
        if name not in used or isinstance(place, int):
            continue
        size = place.format.bits // 8
        partitions = range(place.partition, place.partition + instruction.partitions)
        if isinstance(place, isa.Pointer):
            yield _touch(name, writes, isa.Storage.SBUF, partitions, place.address, size, ())
            continue
        steps = [step * size for step in reversed(place.steps)]
        dimensions = list(zip(counts_of(values, field), steps, strict=False))
        yield _touch(name, writes, place.storage, partitions, place.address, size, dimensions)


def _copy(instruction: isa.DmaCopy) -> Iterator[Touch]:
    for name, writes, index in (("src", False, instruction.gather), ("dst", True, instruction.scatter)):
        tensor: isa.DmaTensor = getattr(instruction, name)
        counts = list(instruction.shape)
        if index is not None:
            counts[0] = index.limit
        size = tensor.format.bits // 8
        partitions = range(tensor.partition, tensor.partition + 1) if tensor.storage != isa.Storage.HBM else range(1)
        if tensor.axis is not None:
            count, step = counts.pop(tensor.axis), tensor.steps[tensor.axis]
            if step:
                partitions = range(tensor.partition, tensor.partition + count * step, step)
        steps = [step * size for d, step in enumerate(tensor.steps) if d != tensor.axis]
        dimensions = list(zip(counts, steps, strict=True))
        yield _touch(name, writes, tensor.storage, partitions, tensor.address, size, dimensions)
    index: isa.DmaIndex | None = instruction.gather or instruction.scatter
    if index is not None:
        partitions = range(index.partition, index.partition + instruction.shape[0])
        yield _touch("index", False, isa.Storage.SBUF, partitions, index.address, WORD, ())


def _multiply(multiply: isa.MultiplyMoving) -> Iterator[Touch]:
    size = multiply.format.bits // 8
    moving, words = [(multiply.n, multiply.stride)], [(multiply.n, WORD)]
    yield _touch("moving", False, isa.Storage.SBUF, _rows(multiply), multiply.address, size, moving)
    columns = range(multiply.column, multiply.column + multiply.m)
    for writes in (False, True) if multiply.accumulate else (True,):
        yield _touch("psum", writes, isa.Storage.PSUM, columns, WORD * multiply.psum, WORD, words)


def _rows(instruction: isa.TensorInstruction) -> range:
    return range(instruction.row, instruction.row + instruction.k)


def _collective(instruction: collective.Collective) -> Iterator[Touch]:
    """Yield the accesses of a collective to the HBM of one core; other cores have a separate HBM."""
    values = instruction.fields()
    size = instruction.count * collective.element_bytes(instruction.dtype)
    places = (
        ("src", False, collective.uses_src(values), instruction.src, collective.BLOCKS_OF_SRC),
        ("dst", True, collective.uses_dst(values), instruction.dst, collective.BLOCKS_OF_DST),
    )
    for name, writes, used, address, several in places:
        if used:
            blocks = instruction.group.ranks if instruction.kind in several else 1
            yield _touch(name, writes, isa.Storage.HBM, range(1), address, size, [(blocks, instruction.pitch)])

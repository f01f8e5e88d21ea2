"""Places for tensors in SBUF, PSUM and HBM.

A tensor on chip is a *temporary* unless told: it has a place from the instruction that touches it first to the one that
touches it last, and its place is known when the program is (:mod:`kernels.program.allocation`). Until then its address
is one of a *buffer* of its own, far beyond those of any memory, so that views, and what instructions touch, are worked
out in the same way. What is *kept* has its own place from the start to the end of the program.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from math import prod
from numbers import Integral

from neuroncore_rtl.kernels.program.source import located
from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor
from neuroncore_rtl.spec.config import LINE_BYTES, LOAD_COLUMNS, Config
from neuroncore_rtl.spec.formats import Format
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS, Region, Storage
from neuroncore_rtl.spec.isa.access import storage_partitions

__all__ = ["Allocator", "Buffer", "buffer_of", "buffers_of", "offset_of"]

BUFFER_BITS = 20
"""Bits of an address within a buffer; those above are the buffer's number, and 0 for what has its place."""

GRANULE = 4 * LOAD_COLUMNS
"""Bytes of which every buffer has a multiple: a LoadStationary reads whole groups of columns."""

_NUMBERS = count(1)
"""Of buffers, those of all programs, so that none takes another one's for its own."""

assert Config.RANGES["sbuf_bytes"][1] < 1 << BUFFER_BITS


@dataclass(frozen=True)
class Buffer:
    """A temporary: its name, where it will be, and its bytes of a partition."""

    name: str
    storage: Storage
    size: int

    @property
    def alignment(self) -> int:
        """Bytes of which its address is a multiple."""
        return min(LINE_BYTES, GRANULE << max(0, (self.size // GRANULE - 1).bit_length()))


def buffer_of(address: int) -> int:
    """Return the number of the buffer that an address is in, from 1 on; 0: it is the address of a place."""
    return address >> BUFFER_BITS


def buffers_of(regions: Iterable[Region]) -> tuple[int, ...]:
    """Return the number of the buffer that each region is in; 0: in none."""
    return tuple(0 if region.storage == Storage.HBM else buffer_of(region.address) for region in regions)


def offset_of(address: int) -> int:
    """Return an address within its buffer; that of a place is its own."""
    return address & ((1 << BUFFER_BITS) - 1)


class Allocator:
    """Names tensors, and gives out the bytes of what is kept and of HBM from the lowest address up.

    Arguments:
        config: the machine's parameters.
        hbm: the first address in HBM.

    Attributes:
        buffers: the temporaries by their numbers, which no other program's have.
        kept: the tensors on chip that have their places from the start to the end.
        hbm_tensors: those that have their places in HBM, in the order in which they got them.
    """

    HBM_ALIGNMENT = LINE_BYTES
    """Bytes of which every address in HBM is a multiple: no beat is shared by two tensors."""

    def __init__(self, config: Config, hbm: int = 0):
        self.config = config
        self.buffers: dict[int, Buffer] = {}
        self._ends = {
            Storage.SBUF: config.sbuf_bytes,
            Storage.PSUM: config.psum_bytes,
            Storage.HBM: 1 << HBM_ADDRESS_BITS,
        }
        self._used = {Storage.SBUF: 0, Storage.PSUM: 0, Storage.HBM: hbm}
        self.kept: list[Tensor] = []
        self.hbm_tensors: list[HbmTensor] = []

    def sbuf(
        self, name: str, fmt: Format, shape: tuple[int, ...], partitions: int | None = None, *, kept: bool = False
    ) -> Tensor:
        """Return a new tensor in SBUF, of all partitions unless told; ValueError if there is no room."""
        return self._on_chip(Storage.SBUF, name, fmt, shape, partitions, kept)

    def psum(
        self, name: str, fmt: Format, shape: tuple[int, ...], partitions: int | None = None, *, kept: bool = False
    ) -> Tensor:
        """Return a new tensor in PSUM, of all partitions unless told; ValueError if there is no room.

        A temporary of at most a bank lies within one, a larger one starts at the start of one.
        """
        return self._on_chip(Storage.PSUM, name, fmt, shape, partitions, kept)

    def hbm(self, name: str, fmt: Format, shape: tuple[int, ...]) -> HbmTensor:
        """Return a new tensor in HBM; ValueError if there is no room."""
        shape = _extents(name, shape)
        address = self._take(Storage.HBM, name, prod(shape) * fmt.bits // 8)
        self.hbm_tensors.append(HbmTensor(name=name, format=fmt, address=address, shape=shape))
        return self.hbm_tensors[-1]

    def room(self, storage: Storage) -> range:
        """Return the addresses that are not given out for good, on chip of a partition."""
        first = -(-self._used[storage] // LINE_BYTES) * LINE_BYTES
        return range(min(first, self._ends[storage]), self._ends[storage])

    def used(self, storage: Storage) -> int:
        """Return where what is given out for good ends, on chip in a partition."""
        return self._used[storage]

    def _on_chip(
        self, storage: Storage, name: str, fmt: Format, shape: tuple[int, ...], partitions: int | None, kept: bool
    ) -> Tensor:
        most = storage_partitions(storage, self.config)
        shape, partitions = _extents(name, shape), most if partitions is None else partitions
        if not isinstance(partitions, Integral) or not 1 <= partitions <= most:
            raise ValueError(f"{name}: partitions must be between 1 and {most}, not {partitions!r}")
        size = prod(shape) * fmt.bits // 8
        address = self._take(storage, name, size) if kept else self._buffer(storage, name, size)
        tensor = Tensor(name=name, format=fmt, address=address, partitions=partitions, shape=shape, storage=storage)
        self.kept += [tensor] if kept else []
        return tensor

    @located
    def _buffer(self, storage: Storage, name: str, size: int) -> int:
        most = len(self.room(storage))
        size = max(GRANULE, -(-size // GRANULE) * GRANULE)
        if size > most:
            raise ValueError(f"{name}: {storage.name} must have room for {size:,} bytes of a partition, not {most:,}")
        number = next(_NUMBERS)
        self.buffers[number] = Buffer(name, storage, size)
        return number << BUFFER_BITS

    @located
    def _take(self, storage: Storage, name: str, size: int) -> int:
        alignment = self.HBM_ALIGNMENT if storage == Storage.HBM else GRANULE
        address = -(-self._used[storage] // alignment) * alignment
        end = address + size
        if end > self._ends[storage]:
            raise ValueError(f"{name}: {storage.name} must end at {self._ends[storage]} bytes, not {end}")
        self._used[storage] = end
        return address


@located
def _extents(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape; ValueError if it is none."""
    extents = tuple(shape) if isinstance(shape, Iterable) else None
    if extents is None or not all(isinstance(extent, Integral) and extent >= 0 for extent in extents):
        raise ValueError(f"{name}: shape must be integers of at least 0, such as (4, 8), not {shape!r}")
    return tuple(map(int, extents))

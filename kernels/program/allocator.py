"""Declaration of tensors in SBUF, PSUM and HBM.

A *kept* tensor on chip has a fixed address. All others are *temporaries*: their addresses are allocated when the
program is complete (`kernels.program.allocation`). Until then a temporary lies in a virtual *buffer* above the
addresses of any memory, so that views and dependences are computed as for a final address.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from math import prod
from numbers import Integral

from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor
from neuroncore_rtl.kernels.source import located
from neuroncore_rtl.spec.config import LINE_BYTES, LOAD_COLUMNS, Config
from neuroncore_rtl.spec.formats import Format, format_named
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS, Region, Storage
from neuroncore_rtl.spec.isa.access import storage_partitions

__all__ = ["Allocator", "Buffer", "NoRoom", "buffer_of", "buffers_of", "offset_of"]

BUFFER_BITS = 26
"""Bits of an offset within a buffer; the higher bits are the buffer number, 0 for a fixed address."""

GRANULE = 4 * LOAD_COLUMNS
"""Unit of buffer sizes in bytes: a LoadStationary reads whole groups of columns."""

_NUMBERS = count(1)
"""Buffer numbers; unique across programs, to detect tensors of other programs."""

assert Config.RANGES["sbuf_bytes"][1] < 1 << BUFFER_BITS


class NoRoom(ValueError):
    """A tensor of a fixed address does not fit; `end` would be its end."""

    def __init__(self, message: str, end: int):
        super().__init__(message)
        self.end = end


@dataclass(frozen=True)
class Buffer:
    """Temporary tensor, which has no address until allocation.

    Arguments:
        name: name of the tensor in error messages.
        storage: SBUF or PSUM.
        size: size in bytes per partition.
    """

    name: str
    storage: Storage
    size: int

    @property
    def alignment(self) -> int:
        """Required alignment of the buffer's address, in bytes."""
        return min(LINE_BYTES, GRANULE << max(0, (self.size // GRANULE - 1).bit_length()))


def buffer_of(address: int) -> int:
    """Return the buffer number, from 1 on, that an address of a temporary contains; 0 for a fixed address."""
    return address >> BUFFER_BITS


def buffers_of(regions: Iterable[Region]) -> tuple[int, ...]:
    """Return the buffer number of each region; 0 for a fixed address."""
    return tuple(0 if region.storage == Storage.HBM else buffer_of(region.address) for region in regions)


def offset_of(address: int) -> int:
    """Return the offset of an address within its buffer, or a fixed address itself."""
    return address & ((1 << BUFFER_BITS) - 1)


class Allocator:
    """Allocator of a program's tensors.

    Kept tensors and tensors in HBM get ascending fixed addresses at their declaration; temporaries get a buffer number.

    Arguments:
        config: parameters of the machine.
        hbm: first address in HBM for tensors.

    Attributes:
        buffers: temporaries, by buffer number.
        kept: on-chip tensors that live during the whole program.
        hbm_tensors: all declared tensors in HBM.
    """

    HBM_ALIGNMENT = LINE_BYTES
    """Alignment in HBM in bytes: no two tensors share a beat."""

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

    @located
    def sbuf(
        self, name: str, fmt: Format | str, shape: tuple[int, ...], partitions: int | None = None, *, kept: bool = False
    ) -> Tensor:
        """Return a new tensor in SBUF, in all partitions by default.

        A temporary may exceed SBUF, see `kernels.program.fitting`. Raises ValueError if a kept one does not fit.
        """
        return self._on_chip(Storage.SBUF, name, fmt, shape, partitions, kept)

    @located
    def psum(
        self, name: str, fmt: Format | str, shape: tuple[int, ...], partitions: int | None = None, *, kept: bool = False
    ) -> Tensor:
        """Return a new tensor in PSUM, in all partitions by default.

        A temporary of at most a bank lies within one bank; a larger one starts at a bank. It may exceed PSUM, see
        `kernels.program.fitting`. Raises ValueError if a kept one does not fit.
        """
        return self._on_chip(Storage.PSUM, name, fmt, shape, partitions, kept)

    @located
    def hbm(self, name: str, fmt: Format | str, shape: tuple[int, ...]) -> HbmTensor:
        """Return a new tensor in HBM; ValueError if it does not fit."""
        fmt, shape = _format(name, fmt), _extents(name, shape)
        address = self._take(Storage.HBM, name, prod(shape) * fmt.bits // 8)
        self.hbm_tensors.append(HbmTensor(name=name, format=fmt, address=address, shape=shape))
        return self.hbm_tensors[-1]

    @located
    def hbm_bytes(self, name: str, size: int) -> int:
        """Return the address of new bytes in HBM that are no tensor of the program; ValueError if they do not fit."""
        return self._take(Storage.HBM, name, size)

    @located
    def set_end(self, storage: Storage, end: int) -> None:
        """Set the address behind the last tensor of a fixed address; on chip, an address in a partition."""
        self._used[storage] = end

    @located
    def limit(self, storage: Storage, end: int) -> None:
        """Set the address behind the last byte of a memory."""
        self._ends[storage] = end

    @located
    def temporary(self, storage: Storage, name: str, size: int) -> int:
        """Return the address of a new buffer of `size` bytes of a partition; ValueError if its offsets are too wide."""
        size = max(GRANULE, -(-size // GRANULE) * GRANULE)
        if size >= 1 << BUFFER_BITS:
            raise ValueError(
                f"{name}: a tensor must have less than {1 << BUFFER_BITS:,} bytes of a partition, not {size:,}"
            )
        number = next(_NUMBERS)
        self.buffers[number] = Buffer(name, storage, size)
        return number << BUFFER_BITS

    @located
    def room(self, storage: Storage) -> range:
        """Return the range of addresses above all tensors of a fixed address; on chip, addresses in a partition."""
        first = -(-self._used[storage] // LINE_BYTES) * LINE_BYTES
        return range(min(first, self._ends[storage]), self._ends[storage])

    @located
    def fixed_end(self, storage: Storage) -> int:
        """Return the address behind the last tensor of a fixed address; on chip, an address in a partition."""
        return self._used[storage]

    def _on_chip(
        self, storage: Storage, name: str, fmt: Format | str, shape: tuple[int, ...], partitions: int | None, kept: bool
    ) -> Tensor:
        most, fmt = storage_partitions(storage, self.config), _format(name, fmt)
        shape, partitions = _extents(name, shape), most if partitions is None else partitions
        if not isinstance(partitions, Integral) or not 1 <= partitions <= most:
            raise ValueError(f"{name}: partitions must be between 1 and {most}, not {partitions!r}")
        size = prod(shape) * fmt.bits // 8
        address = self._take(storage, name, size) if kept else self.temporary(storage, name, size)
        tensor = Tensor(name=name, format=fmt, address=address, partitions=partitions, shape=shape, storage=storage)
        self.kept += [tensor] if kept else []
        return tensor

    @located
    def _take(self, storage: Storage, name: str, size: int) -> int:
        alignment = self.HBM_ALIGNMENT if storage == Storage.HBM else GRANULE
        address = -(-self._used[storage] // alignment) * alignment
        end = address + size
        if end > self._ends[storage]:
            rule = f"tensors in {storage.name} must end by byte {self._ends[storage]}"
            raise NoRoom(f"{name}: {rule}, not {end}", end)
        self._used[storage] = end
        return address


@located
def _format(name: str, fmt: Format | str) -> Format:
    """Return a format or the format of a name, such as "bf16"; ValueError with the tensor's name if there is none."""
    try:
        return fmt if isinstance(fmt, Format) else format_named(fmt)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _extents(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape as integers; ValueError if it is not a sequence of them."""
    extents = tuple(shape) if isinstance(shape, Iterable) else None
    if extents is None or not all(isinstance(extent, Integral) and extent >= 0 for extent in extents):
        raise ValueError(f"{name}: shape must be integers of at least 0, such as (4, 8), not {shape!r}")
    return tuple(map(int, extents))

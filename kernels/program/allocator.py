"""Places for tensors in SBUF, PSUM and HBM."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

from neuroncore_rtl.kernels.program.tensor import HbmTensor, Tensor
from neuroncore_rtl.spec.config import LINE_BYTES, PSUM_BYTES, SBUF_BYTES, Config
from neuroncore_rtl.spec.formats import Format
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS, Storage
from neuroncore_rtl.spec.isa.access import storage_partitions

__all__ = ["Allocator"]


class Allocator:
    """Gives out the bytes of the storages from the lowest address up, on chip the same in all partitions.

    Arguments:
        config: the machine's parameters.
        alignment: bytes of which every address on chip is a multiple.
        hbm: the first address in HBM.
        sbuf_end: bytes of a partition of SBUF that may be given out.
    """

    HBM_ALIGNMENT = LINE_BYTES
    """Bytes of which every address in HBM is a multiple: no beat is shared by two tensors."""

    def __init__(self, config: Config, alignment: int = 4, hbm: int = 0, sbuf_end: int = SBUF_BYTES):
        self.config = config
        self.alignment = alignment
        self._ends = {Storage.SBUF: sbuf_end, Storage.PSUM: PSUM_BYTES, Storage.HBM: 1 << HBM_ADDRESS_BITS}
        self._used = {Storage.SBUF: 0, Storage.PSUM: 0, Storage.HBM: hbm}
        self._peak = dict(self._used)

    def sbuf(self, name: str, fmt: Format, shape: tuple[int, ...], partitions: int | None = None) -> Tensor:
        """Return a new tensor in SBUF, of all partitions unless told; ValueError if there is no room."""
        return self._place(Storage.SBUF, name, fmt, shape, partitions)

    def psum(self, name: str, fmt: Format, shape: tuple[int, ...], partitions: int | None = None) -> Tensor:
        """Return a new tensor in PSUM, of all partitions unless told; ValueError if there is no room."""
        return self._place(Storage.PSUM, name, fmt, shape, partitions)

    def hbm(self, name: str, fmt: Format, shape: tuple[int, ...]) -> HbmTensor:
        """Return a new tensor in HBM; ValueError if there is no room."""
        address = self._take(Storage.HBM, name, prod(shape) * fmt.bits // 8)
        return HbmTensor(name=name, format=fmt, address=address, shape=tuple(shape))

    def used(self, storage: Storage) -> int:
        """Return the bytes that are given out, on chip of a partition."""
        return self._used[storage]

    def free(self, storage: Storage) -> int:
        """Return the bytes that are left, on chip of a partition."""
        return self._ends[storage] - self._used[storage]

    def peak(self, storage: Storage) -> int:
        """Return the most bytes that were given out at any time, on chip of a partition."""
        return self._peak[storage]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Take back, at the end of the block, all that was given out in it."""
        used = dict(self._used)
        yield
        self._used = used

    def _place(
        self, storage: Storage, name: str, fmt: Format, shape: tuple[int, ...], partitions: int | None
    ) -> Tensor:
        most = storage_partitions(storage, self.config)
        partitions = most if partitions is None else partitions
        if not 1 <= partitions <= most:
            raise ValueError(f"{name}: partitions must be between 1 and {most}, not {partitions!r}")
        address = self._take(storage, name, prod(shape) * fmt.bits // 8)
        return Tensor(
            name=name, format=fmt, address=address, partitions=partitions, shape=tuple(shape), storage=storage
        )

    def _take(self, storage: Storage, name: str, size: int) -> int:
        alignment = self.HBM_ALIGNMENT if storage == Storage.HBM else self.alignment
        address = -(-self._used[storage] // alignment) * alignment
        end = address + size
        if end > self._ends[storage]:
            raise ValueError(f"{name}: {storage.name} must end at {self._ends[storage]} bytes, not {end}")
        self._used[storage] = end
        self._peak[storage] = max(self._peak[storage], end)
        return address

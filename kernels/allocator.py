"""Places for tensors in SBUF and PSUM."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

from kernels.tensor import Tensor
from spec.config import Config
from spec.formats import Format
from spec.isa import Storage
from spec.isa.access import storage_bytes, storage_partitions

__all__ = ["Allocator"]


class Allocator:
    """Gives out the bytes of both storages from address 0 up, the same in all partitions.

    Arguments:
        config: the machine's parameters.
        alignment: bytes of which every address is a multiple.
    """

    def __init__(self, config: Config, alignment: int = 4):
        self.config = config
        self.alignment = alignment
        self._used = {storage: 0 for storage in Storage}
        self._peak = {storage: 0 for storage in Storage}

    def sbuf(self, name: str, fmt: Format, shape: tuple[int, ...], partitions: int | None = None) -> Tensor:
        """Return a new tensor in SBUF, of all partitions unless told; ValueError if there is no room."""
        return self._place(Storage.SBUF, name, fmt, shape, partitions)

    def psum(self, name: str, fmt: Format, shape: tuple[int, ...], partitions: int | None = None) -> Tensor:
        """Return a new tensor in PSUM, of all partitions unless told; ValueError if there is no room."""
        return self._place(Storage.PSUM, name, fmt, shape, partitions)

    def used(self, storage: Storage) -> int:
        """Return the bytes of a partition that are given out."""
        return self._used[storage]

    def peak(self, storage: Storage) -> int:
        """Return the most bytes of a partition that were given out at any time."""
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
        address = -(-self._used[storage] // self.alignment) * self.alignment
        end = address + prod(shape) * fmt.bits // 8
        if end > storage_bytes(storage):
            raise ValueError(f"{name}: {storage.name} must end at {storage_bytes(storage)} bytes, not {end}")
        self._used[storage] = end
        self._peak[storage] = max(self._peak[storage], end)
        return Tensor(
            name=name, format=fmt, address=address, partitions=partitions, shape=tuple(shape), storage=storage
        )

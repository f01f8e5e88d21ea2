"""Address space of a hart: local memory, timer, and any bus with `load` and `store`."""

from collections.abc import Iterable
from typing import Protocol

from neuroncore_rtl.spec.memory_map import LOCAL_BASE, LOCAL_BYTES, TIMER_COMPARE, TIMER_NOW

__all__ = ["AccessFault", "AddressMap", "Bus", "LocalMemory", "Timer"]


class AccessFault(Exception):
    """An access failed: no memory or register has the address, or the device there refuses the access."""


class Bus(Protocol):
    """Interface of a memory or device that a hart accesses; an access that raises AccessFault has no effect.

    An access never crosses a word boundary.
    """

    def load(self, address: int, size: int) -> int:
        """Return the value of `size` bytes (1 to 4) at an address, little-endian."""
        ...

    def store(self, address: int, size: int, value: int) -> None:
        """Write the value of `size` bytes (1 to 4) at an address, little-endian."""


class LocalMemory:
    """Memory of program and data, `size` bytes from `base` on, both multiples of 4; zero after the initial image."""

    def __init__(self, image: bytes = b"", *, base: int = LOCAL_BASE, size: int = LOCAL_BYTES):
        if len(image) > size:
            raise ValueError(f"the image must have at most {size} bytes, not {len(image)}")
        if base % 4 or size % 4:
            raise ValueError(f"base and size must be multiples of 4, not {base:#x} and {size:#x}")
        self.base = base
        self.size = size
        self.bytes = bytearray(size)
        self.bytes[: len(image)] = image

    def load(self, address: int, size: int) -> int:
        """Return bytes; see `Bus`."""
        offset = self._offset(address, size)
        return int.from_bytes(self.bytes[offset : offset + size], "little")

    def store(self, address: int, size: int, value: int) -> None:
        """Write bytes; see `Bus`."""
        offset = self._offset(address, size)
        self.bytes[offset : offset + size] = value.to_bytes(size, "little")

    def _offset(self, address: int, size: int) -> int:
        offset = address - self.base
        if not 0 <= offset <= self.size - size:
            raise AccessFault(f"local memory has no {size} bytes at {address:#x}")
        return offset


class Timer:
    """RISC-V machine timer; each write must be of a whole word.

    Attributes:
        now: mtime, 64 bits; the owner of the hart advances it.
        compare: mtimecmp, 64 bits.
    """

    def __init__(self):
        self.now = 0
        self.compare = (1 << 64) - 1

    @property
    def pending(self) -> bool:
        """True while the timer requests its interrupt."""
        return self.now >= self.compare

    def load(self, address: int, size: int) -> int:
        """Return bytes of a register; see `Bus`."""
        name, offset = self._select(address)
        return getattr(self, name) >> 8 * offset & (1 << 8 * size) - 1

    def store(self, address: int, size: int, value: int) -> None:
        """Write a word of a register; see `Bus`."""
        name, offset = self._select(address)
        if size != 4:
            raise AccessFault(f"the timer's words must be written whole, not {size} bytes")
        setattr(self, name, getattr(self, name) & ~(0xFFFF_FFFF << 8 * offset) | value << 8 * offset)

    @staticmethod
    def _select(address: int) -> tuple[str, int]:
        for name, register in (("now", TIMER_NOW), ("compare", TIMER_COMPARE)):
            if 0 <= address - register < 8:
                return name, address - register
        raise AccessFault(f"the timer has no register at {address:#x}")


class AddressMap:
    """Address decoder that forwards each access to one of several buses, by address region.

    A region is a first address, a size in bytes and a bus.
    """

    def __init__(self, regions: Iterable[tuple[int, int, Bus]]):
        self.regions = [(first, first + size, bus) for first, size, bus in regions]

    def load(self, address: int, size: int) -> int:
        """Return bytes; see `Bus`."""
        return self._at(address).load(address, size)

    def store(self, address: int, size: int, value: int) -> None:
        """Write bytes; see `Bus`."""
        self._at(address).store(address, size, value)

    def _at(self, address: int) -> Bus:
        for first, end, bus in self.regions:
            if first <= address < end:
                return bus
        raise AccessFault(f"no region contains {address:#x}")

"""Window of the controller's address space onto an on-chip memory."""

import numpy as np

from neuroncore_rtl.golden.controller import AccessFault

__all__ = ["Window"]


class Window:
    """Address window onto a memory: byte a of partition p is at address base + (p << pitch_bits) + a.

    `memory` is uint8 [partitions, bytes]. Every word read is appended to `loaded`.
    """

    def __init__(self, memory: np.ndarray, base: int, pitch_bits: int, loaded: list[int]):
        self._words = memory.view("<u4")
        self._base = base
        self._pitch_bits = pitch_bits
        self._loaded = loaded

    def load(self, address: int, size: int) -> int:
        """Return a word; see `golden.controller.Bus`."""
        self._loaded.append(int(self._words[self._place(address, size)]))
        return self._loaded[-1]

    def store(self, address: int, size: int, value: int) -> None:
        """Write a word; see `golden.controller.Bus`."""
        self._words[self._place(address, size)] = value

    def _place(self, address: int, size: int) -> tuple[int, int]:
        partition, byte = divmod(address - self._base, 1 << self._pitch_bits)
        partitions, words = self._words.shape
        if size != 4 or partition >= partitions or byte >= 4 * words:
            raise AccessFault(f"no word of an on-chip memory at {address:#x}")
        return partition, byte // 4

"""Boot: checks the header of an image in HBM and returns the controller's program."""

import numpy as np

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS, RECORD_BYTES
from neuroncore_rtl.spec.memory_map import BOOT_WORDS, IMAGE_MAGIC

__all__ = ["BootFault", "boot_program"]


class BootFault(Exception):
    """An image's header is wrong, or HBM ends before the image's program.

    `word` is the index of the first wrong header word, 0 if header or program cannot be read.
    """

    def __init__(self, word: int):
        super().__init__(word)
        self.word = word


def boot_program(hbm: np.ndarray, address: int, config: Config) -> bytes:
    """Return the program of the image at `address`, rounded down to a multiple of RECORD_BYTES, or raise BootFault."""
    address &= -RECORD_BYTES
    words = np.frombuffer(_read_bytes(hbm, address, 4 * BOOT_WORDS), "<u4").tolist()
    _, size, program = words[:3]
    expected = (IMAGE_MAGIC, size, program, config.rows, config.columns, config.dma_engines, config.cores, 0)
    right = [word == wanted for word, wanted in zip(words, expected, strict=True)]
    right[1] = size <= config.local_bytes and size % 4 == 0
    right[2] = program % RECORD_BYTES == 0
    if not all(right):
        raise BootFault(right.index(False))
    return _read_bytes(hbm, (address + program) % (1 << HBM_ADDRESS_BITS), size)


def _read_bytes(hbm: np.ndarray, address: int, size: int) -> bytes:
    data = hbm[address : address + size].tobytes()
    if len(data) < size:
        raise BootFault(0)
    return data

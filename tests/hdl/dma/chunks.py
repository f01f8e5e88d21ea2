"""Chunks at random, for the tests of those who read and write them."""

from collections.abc import Iterator

import numpy as np

from neuroncore_rtl.hdl.dma.job import BURST_BEATS, WORD_BYTES
from neuroncore_rtl.hdl.memory.port import ADDRESS_BITS, PARTITION_BITS
from neuroncore_rtl.spec.isa import Storage

__all__ = ["BASES", "SPAN", "any_chunk", "beats_of", "grids"]

BASES, SPAN = (0x55_5555_4000, 0xAA_AAAA_8000), 1 << 13
"""Where those of HBM may be, and in how many bytes."""


def grids(size: int) -> dict[Storage, int]:
    """Return of each memory the bytes of which no chunk crosses a multiple, with accesses of `size` bytes."""
    return {Storage.SBUF: size, Storage.PSUM: WORD_BYTES, Storage.HBM: BURST_BEATS * size}


def any_chunk(rng: np.random.Generator, size: int, base: int) -> dict:
    """Return a chunk that an access of `size` bytes, or a burst of such, may be; half of them are of HBM, from `base`
    on."""
    storage = (Storage.SBUF, Storage.PSUM, Storage.HBM, Storage.HBM)[rng.integers(4)]
    grid = grids(size)[storage]
    place = int(rng.integers(grid)) if rng.random() < 0.7 else 0
    most = min(grid - place, int(rng.choice((size + WORD_BYTES, grid))))
    in_hbm = base + int(rng.integers(SPAN // grid)) * grid
    on_chip = int(rng.integers((1 << ADDRESS_BITS) // size)) * size + int(rng.integers(size // grid or 1)) * grid
    return {
        "storage": storage,
        "partition": int(rng.integers(1 << PARTITION_BITS)),
        "address": place + (in_hbm if storage == Storage.HBM else on_chip),
        "bytes": int(rng.integers(1, most + 1)) if rng.random() < 0.7 else most,
    }


def beats_of(chunk: dict, size: int) -> Iterator[tuple[int, int, bool]]:
    """Return the place and the number of the bytes in each beat of a chunk, and whether it is the last one."""
    place, left = chunk["address"] % size, chunk["bytes"]
    while left:
        count = min(size - place, left)
        yield place, count, left == count
        place, left = 0, left - count

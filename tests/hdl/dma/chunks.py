from collections.abc import Iterator

import numpy as np

from neuroncore_rtl.hdl.dma.job import BURST_BEATS, WORD_BYTES
from neuroncore_rtl.hdl.memory.port import ADDRESS_BITS, PARTITION_BITS
from neuroncore_rtl.spec.isa import Storage

__all__ = ["BASES", "SPAN", "any_chunk", "beats_of", "grids"]

BASES, SPAN = (0x55_5555_4000, 0xAA_AAAA_8000), 1 << 13
"""Start addresses of two regions of HBM, and the bytes of a region; a test takes all HBM chunks from one region."""


def grids(size: int) -> dict[Storage, int]:
    """Return the grid of each memory in bytes: a chunk crosses no multiple of it."""
    return {Storage.SBUF: size, Storage.PSUM: WORD_BYTES, Storage.HBM: BURST_BEATS * size}


def any_chunk(rng: np.random.Generator, size: int, base: int) -> dict:
    """Return a random chunk of at most `size` bytes; half of all chunks are in HBM, at `base` and above."""
    storage = (Storage.SBUF, Storage.PSUM, Storage.HBM, Storage.HBM)[rng.integers(4)]
    grid = grids(size)[storage]
    offset = int(rng.integers(grid)) if rng.random() < 0.7 else 0
    longest = min(grid - offset, int(rng.choice((size + WORD_BYTES, grid))))
    in_hbm = base + int(rng.integers(SPAN // grid)) * grid
    on_chip = int(rng.integers((1 << ADDRESS_BITS) // size)) * size + int(rng.integers(size // grid or 1)) * grid
    return {
        "storage": storage,
        "partition": int(rng.integers(1 << PARTITION_BITS)),
        "address": offset + (in_hbm if storage == Storage.HBM else on_chip),
        "bytes": int(rng.integers(1, longest + 1)) if rng.random() < 0.7 else longest,
    }


def beats_of(chunk: dict, size: int) -> Iterator[tuple[int, int, bool]]:
    """Yield offset and byte count of each beat of a chunk, and whether it is the last beat."""
    offset, remaining = chunk["address"] % size, chunk["bytes"]
    while remaining:
        count = min(size - offset, remaining)
        yield offset, count, remaining == count
        offset, remaining = 0, remaining - count

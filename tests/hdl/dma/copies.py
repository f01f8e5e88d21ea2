from dataclasses import replace

import numpy as np

from neuroncore_rtl.golden.memory.dma import DmaFault, dma_copy
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import INT8, Format
from neuroncore_rtl.spec.isa import DmaCopy, DmaIndex, DmaTensor, Storage, dma
from neuroncore_rtl.spec.isa.access import storage_bytes, storage_partitions
from tests.hdl.dma.machine import HBM_BYTES, Error, Memories
from tests.oracles.copies import any_copy, beyond, is_apart

__all__ = ["CONFIG", "execute", "legal_copy", "random_copy", "random_memories", "tensor"]
CONFIG = PRESETS["tiny"].with_overrides(rows=8)


def tensor(storage: Storage, address: int = 0, steps: tuple[int, ...] = (1,), fmt: Format = INT8, axis=None):
    return DmaTensor(format=fmt, address=address, storage=storage, steps=steps, axis=axis)


def random_memories(rng: np.random.Generator, config: Config) -> Memories:
    shapes = {s: (storage_partitions(s, config), storage_bytes(s, config)) for s in (Storage.SBUF, Storage.PSUM)}
    shapes[Storage.HBM] = (1, HBM_BYTES)
    return {storage: rng.integers(0, 256, shape, np.uint8) for storage, shape in shapes.items()}


def execute(copies: list[DmaCopy], memories: Memories, base: int = 0) -> list[Error]:
    """Execute legal copies on the memories; return the errors."""
    errors = []
    for number, copy in enumerate(copies):
        src, dst = (replace(s, address=s.address - base * (s.storage == Storage.HBM)) for s in (copy.src, copy.dst))
        hbm, sbuf, psum = (memories[storage] for storage in (Storage.HBM, Storage.SBUF, Storage.PSUM))
        try:
            dma_copy(replace(copy, src=src, dst=dst), hbm[0], sbuf, psum)
        except DmaFault as fault:
            errors.append(Error(number, int(fault.cause), fault.detail))
    return errors


def legal_copy(rng: np.random.Generator, config: Config, memories: Memories, base: int = 0) -> DmaCopy:
    """Return a random legal copy without overlap, and write the row numbers of its gather or scatter to `memories`."""
    while True:
        copy = random_copy(rng, config, base)
        if dma.dma_violation(copy.fields(), config) is not None:
            continue
        index = copy.gather or copy.scatter
        if index:
            rows = rng.integers(0, index.limit, copy.shape[0]).astype("<u4")
            if index.skip:
                rows = beyond(rng, index.limit, rows, rng.choice((0.1, 0.5, 1)))
            elif rng.random() < 0.2:
                too_large = index.limit + rng.integers(0, 3), rng.integers(index.limit, 1 << 32)
                rows[rng.integers(len(rows))] = rng.choice(too_large)
            if rng.random() >= 0.5:
                continue
            lanes, columns = (slice(at, at + n) for at, n in ((index.partition, len(rows)), (index.address, 4)))
            memories[Storage.SBUF][lanes, columns] = rows.view(np.uint8).reshape(-1, 4)
        if is_apart(copy, config):
            return copy


def random_copy(rng: np.random.Generator, config: Config, base: int = 0) -> DmaCopy:
    """Return a random copy of at most 300 elements within the machine's memories, in most cases a legal one."""
    windows = {storage: (0, storage_bytes(storage, config)) for storage in (Storage.SBUF, Storage.PSUM)}
    windows[Storage.HBM] = base, base + HBM_BYTES
    return any_copy(rng, config, windows, 300, DmaIndex(address=4 * int(rng.integers(config.sbuf_bytes // 4)), limit=5))

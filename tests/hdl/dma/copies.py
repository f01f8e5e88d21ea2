"""Random copies, and what they do as golden says it."""

from dataclasses import replace
from math import prod

import numpy as np

from neuroncore_rtl.golden.memory.dma import DmaFault, dma_copy
from neuroncore_rtl.spec.config import SBUF_BYTES, Config
from neuroncore_rtl.spec.formats import FORMATS, INT8, Format
from neuroncore_rtl.spec.isa import DmaCopy, DmaIndex, DmaTensor, Storage
from neuroncore_rtl.spec.isa.access import storage_bytes, storage_partitions
from neuroncore_rtl.spec.isa.dma import DMA_DIMENSIONS, HBM_ADDRESS_BITS, dma_violation
from tests.hdl.dma.machine import HBM_BYTES, Error, Memories
from tests.oracles.copies import places

__all__ = ["differing", "execute", "legal_copy", "random_copy", "random_memories", "tensor"]

_FORMATS = tuple(FORMATS.values())


def tensor(storage: Storage, address: int = 0, steps: tuple[int, ...] = (1,), fmt: Format = INT8, axis=None):
    """Return one side of a copy: adjacent bytes, if nothing else is said."""
    return DmaTensor(format=fmt, address=address, storage=storage, steps=steps, axis=axis)


def random_memories(rng: np.random.Generator, config: Config) -> Memories:
    """Return the memories of a machine, whole, with random bytes."""
    shapes = {s: (storage_partitions(s, config), storage_bytes(s)) for s in (Storage.SBUF, Storage.PSUM)}
    shapes[Storage.HBM] = (1, HBM_BYTES)
    return {storage: rng.integers(0, 256, shape, np.uint8) for storage, shape in shapes.items()}


def differing(memories: Memories, others: Memories) -> int:
    """Return how many memories differ."""
    return sum(not np.array_equal(memories[storage], others[storage]) for storage in Storage)


def execute(copies: list[DmaCopy], memories: Memories, base: int = 0) -> list[Error]:
    """Execute legal copies on the memories; return the errors. HBM's first byte has the address `base`."""
    errors = []
    for number, copy in enumerate(copies):
        sides = {
            name: replace(side, address=side.address - base * (side.storage == Storage.HBM))
            for name, side in (("src", copy.src), ("dst", copy.dst))
        }
        hbm, sbuf, psum = (memories[storage] for storage in (Storage.HBM, Storage.SBUF, Storage.PSUM))
        try:
            dma_copy(replace(copy, **sides), hbm[0], sbuf, psum)
        except DmaFault as fault:
            errors.append(Error(number, int(fault.cause), fault.detail))
    return errors


def legal_copy(
    rng: np.random.Generator, config: Config, memories: Memories, base: int = 0, elements: int = 300
) -> DmaCopy:
    """Return a random legal copy of up to so many elements, whose tensors do not overlap.

    The row numbers of a gather or scatter are written into the memories.
    """
    while True:
        copy = random_copy(rng, config, base, elements)
        if dma_violation(copy.fields(), config) is not None:
            continue
        index = copy.gather or copy.scatter
        if index:
            rows = rng.integers(0, index.limit, copy.shape[0]).astype("<u4")
            if rng.random() < 0.2:
                rows[rng.integers(len(rows))] = index.limit + rng.integers(0, 3)
            if rng.random() >= 0.5:
                continue
            lanes, columns = (slice(at, at + n) for at, n in ((index.partition, len(rows)), (index.address, 4)))
            memories[Storage.SBUF][lanes, columns] = rows.view(np.uint8).reshape(-1, 4)
        if _is_apart(copy):
            return copy


def random_copy(rng: np.random.Generator, config: Config, base: int, elements: int) -> DmaCopy:
    """Return a random copy of up to so many elements, most often a legal one."""
    rank = int(rng.integers(1, DMA_DIMENSIONS + 1))
    shape = [int(rng.choice((1, 2, 3, 4, 7, 16, elements))) for _ in range(rank)]
    while prod(shape) > elements:
        shape[rng.integers(rank)] = int(rng.integers(1, 5))
    formats = rng.choice(_FORMATS, 2)
    if rng.random() < 0.5:
        formats[1] = formats[0]
    storages = [Storage(storage) for storage in rng.choice(list(Storage), 2, p=(0.4, 0.2, 0.4))]
    kind = rng.random()
    gathers = kind < 0.1 and storages[0] == Storage.HBM
    indexed = (gathers, not gathers and kind < 0.2 and storages[1] == Storage.HBM)
    limit = 5
    if any(indexed):
        shape[0] = min(shape[0], config.partitions)
    src, dst = (
        _random_tensor(rng, config, fmt, storage, shape, base, limit if by_rows else None)
        for fmt, storage, by_rows in zip(formats, storages, indexed, strict=True)
    )
    index = {}
    if any(indexed):
        partition = int(rng.integers(config.partitions - shape[0] + 1))
        address = 4 * int(rng.integers(SBUF_BYTES // 4))
        index["gather" if gathers else "scatter"] = DmaIndex(address=address, partition=partition, limit=limit)
    return DmaCopy(shape=tuple(shape), src=src, dst=dst, **index)


def _random_tensor(
    rng: np.random.Generator, config: Config, fmt: Format, storage: Storage, shape, base: int, rows: int | None
) -> DmaTensor:
    """Return a tensor that often lies inside its storage; `rows`: row numbers that its outermost dimension takes."""
    rank, size = len(shape), fmt.bits // 8
    axis, partition = None, 0
    if storage != Storage.HBM:
        limit = storage_partitions(storage, config)
        partition = int(rng.integers(limit))
        able = [d for d in range(rank) if shape[d] <= limit]
        if able and rng.random() < 0.7:
            axis = int(rng.choice(able))
    counts = [rows or shape[0], *shape[1:]]
    steps, dense = [0] * rank, 1
    low = high = 0
    for d in reversed(range(rank)):
        if d == axis:
            steps[d] = int(rng.choice((1, 1, -1, 0, 2)))
            span = (shape[d] - 1) * steps[d]
            first, end = max(0, -span), limit - max(0, span)
            partition = int(rng.integers(first, end)) if first < end else partition
            continue
        steps[d] = int(rng.choice((dense, dense, dense, -dense, dense + int(rng.integers(1, 40)), 0, 2, -3)))
        dense = max(abs(steps[d]), 1) * counts[d]
        span = (counts[d] - 1) * steps[d] * size
        low, high = low + min(span, 0), high + max(span, 0)
    first, end = (base, base + HBM_BYTES) if storage == Storage.HBM else (0, storage_bytes(storage))
    first, end = first - low, end - high - size
    if end < first:
        return _random_tensor(rng, config, fmt, storage, shape, base, rows)
    place = rng.random()
    address = first if place < 0.05 else end if place < 0.1 else int(rng.integers(first, end + 1))
    address = min(max(address // size * size, -(-first // size) * size), (1 << HBM_ADDRESS_BITS) - 1)
    return DmaTensor(format=fmt, address=address, storage=storage, steps=tuple(steps), partition=partition, axis=axis)


def _is_apart(copy: DmaCopy) -> bool:
    """Return whether a copy writes nothing that it reads, row numbers included."""
    index = copy.gather or copy.scatter

    def touched(tensor: DmaTensor, indexed) -> set:
        shape = (index.limit, *copy.shape[1:]) if indexed else copy.shape
        return {byte for element in places(tensor, shape) for byte in element}

    read = touched(copy.src, copy.gather)
    if index:
        numbers = ((index.partition + row, index.address + byte) for row in range(copy.shape[0]) for byte in range(4))
        read |= {(Storage.SBUF, *place) for place in numbers}
    return read.isdisjoint(touched(copy.dst, copy.scatter))

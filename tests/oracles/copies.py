"""Random legal DMA copies, and the locations of their bytes from a loop over elements."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

import numpy as np

from neuroncore_rtl.run.check.touches import touches_of
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FORMATS, INT32, Format
from neuroncore_rtl.spec.isa import DmaCopy, DmaIndex, DmaTensor, Storage, access, dma

__all__ = [
    "INDEX_ADDRESS", "INDEX_LIMIT", "SBUF_USED", "USED_BYTES", "any_copy", "beyond", "is_apart", "places",
    "random_copy", "word_copy",
]  # fmt: skip

Window = tuple[int, int]

_FORMATS = tuple(FORMATS.values())

USED_BYTES = 1024  # bytes of a partition that copies use, few enough for overlaps
SBUF_USED = 1 << 14
INDEX_ADDRESS = SBUF_USED - 64
INDEX_LIMIT = 10  # row numbers are less than this


def random_copy(rng: np.random.Generator, config: Config, hbm_bytes: int) -> DmaCopy:
    """Return a random legal copy of up to 200 elements, without overlap; its row numbers are at `INDEX_ADDRESS`."""
    windows = dict.fromkeys((Storage.SBUF, Storage.PSUM), (0, USED_BYTES)) | {Storage.HBM: (0, hbm_bytes)}
    while True:
        copy = any_copy(rng, config, windows, 200, DmaIndex(address=INDEX_ADDRESS, limit=INDEX_LIMIT))
        if dma.dma_violation(copy.fields(), config) is None and is_apart(copy, config):
            return copy


def is_apart(copy: DmaCopy, config: Config) -> bool:
    """Return whether a copy writes none of the bytes it reads, row numbers included (their order is undefined)."""
    touches = touches_of(copy, config)
    return not any(one.meets(other) for one in touches if one.writes for other in touches if not other.writes)


def any_copy(
    rng: np.random.Generator, config: Config, windows: Mapping[Storage, Window], elements: int, index: DmaIndex
) -> DmaCopy:
    rank = int(rng.integers(1, dma.DMA_DIMENSIONS + 1))
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
    if any(indexed):
        shape[0] = min(shape[0], config.partitions)
    src, dst = (
        _tensor(rng, config, fmt, storage, shape, windows[storage], index.limit if by_rows else None)
        for fmt, storage, by_rows in zip(formats, storages, indexed, strict=True)
    )
    rows = {}
    if any(indexed):
        partition = int(rng.integers(config.partitions - shape[0] + 1))
        rows["gather" if gathers else "scatter"] = replace(index, partition=partition, skip=bool(rng.random() < 0.5))
    return DmaCopy(shape=tuple(shape), src=src, dst=dst, **rows)


def beyond(rng: np.random.Generator, limit: int, rows: np.ndarray, share: float) -> np.ndarray:
    """Return `rows` with a share of them replaced by row numbers at or above `limit`, or negative ones."""
    others = rng.choice([limit, limit + 1, limit + 2, 1 << 31, (1 << 32) - limit, (1 << 32) - 1], len(rows))
    return np.where(rng.random(len(rows)) < share, others, rows).astype("<u4")


def _tensor(rng, config, fmt: Format, storage: Storage, shape, window: Window, rows: int | None) -> DmaTensor:
    rank, size = len(shape), fmt.bits // 8
    axis, partition = None, 0
    if storage != Storage.HBM:
        limit = access.storage_partitions(storage, config)
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
    first, end = window[0] - low, window[1] - high - size
    if end < first:
        return _tensor(rng, config, fmt, storage, shape, window, rows)
    place = rng.random()
    address = first if place < 0.05 else end if place < 0.1 else int(rng.integers(first, end + 1))
    address = min(max(address // size * size, -(-first // size) * size), (1 << dma.HBM_ADDRESS_BITS) - 1)
    return DmaTensor(format=fmt, address=address, storage=storage, steps=tuple(steps), partition=partition, axis=axis)


def word_copy(source: int, target: int) -> DmaCopy:
    sides = (DmaTensor(format=INT32, storage=Storage.HBM, address=at, steps=(1,)) for at in (source, target))
    return DmaCopy(shape=(1,), **dict(zip(("src", "dst"), sides, strict=True)))


def places(
    tensor: DmaTensor, shape: tuple[int, ...], rows: list[int] | None = None
) -> Iterator[list[tuple[Storage, int, int]]]:
    """Yield (storage, partition, address) of an element's bytes in row-major order; `rows`: numbers if indexed."""
    for index in np.ndindex(*shape):
        partition, address = tensor.partition, tensor.address
        for dimension, (number, step) in enumerate(zip(index, tensor.steps, strict=True)):
            if dimension == tensor.axis:
                partition += number * step
                continue
            if dimension == 0 and rows is not None:
                number = rows[number]
            address += number * step * (tensor.format.bits // 8)
        yield [(tensor.storage, partition, address + byte) for byte in range(tensor.format.bits // 8)]

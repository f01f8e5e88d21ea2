"""Random copies, and what they do: element by element, as the specification says it."""

from math import prod

import numpy as np

from neuroncore_rtl.golden.elementwise.words import load, store
from neuroncore_rtl.spec.config import SBUF_BYTES, Config
from neuroncore_rtl.spec.formats import FORMATS, Format
from neuroncore_rtl.spec.isa import Cause, DmaCopy, DmaIndex, DmaTensor, Storage
from neuroncore_rtl.spec.isa.access import storage_bytes, storage_partitions
from neuroncore_rtl.spec.isa.dma import DMA_DIMENSIONS, HBM_ADDRESS_BITS, dma_violation
from tests.hdl.dma.machine import HBM_BYTES, Error, Memories

__all__ = ["cast", "execute", "legal_copy", "random_copy", "random_memories", "run"]

_FORMATS = tuple(FORMATS.values())


def random_memories(rng: np.random.Generator, config: Config) -> Memories:
    """Return the memories of a machine, whole, with random bytes."""
    shapes = {s: (storage_partitions(s, config), storage_bytes(s)) for s in (Storage.SBUF, Storage.PSUM)}
    shapes[Storage.HBM] = (1, HBM_BYTES)
    return {storage: rng.integers(0, 256, shape, np.uint8) for storage, shape in shapes.items()}


def run(words, memories: Memories, config: Config, base: int = 0) -> list[Error]:
    """Execute instruction words on the memories; return the errors. HBM's first byte has the address `base`."""
    errors = []
    for number, word in enumerate(words):
        broken = dma_violation(DmaCopy.unpack(word), config)
        if broken is not None:
            errors.append(Error(number, int(broken[0]), 0))
            continue
        wrong = execute(DmaCopy.decode(DmaCopy.unpack(word)), memories, base)
        if wrong is not None:
            errors.append(Error(number, int(Cause.INDEX), wrong))
    return errors


def execute(copy: DmaCopy, memories: Memories, base: int = 0) -> int | None:
    """Execute a legal copy; return the row number that stops it."""
    index, rows, wrong = copy.gather or copy.scatter, None, None
    if index:
        words = memories[Storage.SBUF][index.partition :, index.address : index.address + 4]
        rows = np.ascontiguousarray(words[: copy.shape[0]]).view("<u4")[:, 0].astype(np.int64)
        beyond = np.flatnonzero(rows >= index.limit)
        if beyond.size:
            wrong = int(rows[beyond[0]])
            rows = rows[: beyond[0]]
    shape = copy.shape if rows is None else (len(rows), *copy.shape[1:])
    if prod(shape):
        sources = _places(copy.src, shape, rows if copy.gather else None, base)
        targets = _places(copy.dst, shape, rows if copy.scatter else None, base)
        elements = memories[copy.src.storage][sources]
        memories[copy.dst.storage][targets] = cast(elements, copy.src.format, copy.dst.format)
    return wrong


def _places(tensor: DmaTensor, shape: tuple[int, ...], rows, base: int) -> tuple[np.ndarray, np.ndarray]:
    """Return partition and address of every byte, [elements, bytes of an element]."""
    size = tensor.format.bits // 8
    partition = np.full(shape, tensor.partition, np.int64)
    address = np.full(shape, tensor.address - (base if tensor.storage == Storage.HBM else 0), np.int64)
    for d, step in enumerate(tensor.steps):
        along = np.arange(shape[d]) if d or rows is None else rows
        along = along.reshape([-1 if i == d else 1 for i in range(len(shape))]) * step
        if d == tensor.axis:
            partition += along
        else:
            address += along * size
    return partition.reshape(-1, 1), address.reshape(-1, 1) + np.arange(size)


def cast(elements: np.ndarray, src: Format, dst: Format) -> np.ndarray:
    """Return elements, uint8 [elements, bytes of one], in another format."""
    if src == dst:
        return elements
    codes = np.ascontiguousarray(elements).view(f"<u{elements.shape[1]}")[:, 0]
    integer = not (src.is_float or dst.is_float)
    results = store(load(codes, src, integer), dst, integer)
    return np.ascontiguousarray(results).view(np.uint8).reshape(len(codes), -1)


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
            if rng.random() < 0.5:  # else they may be what they are
                memories[Storage.SBUF][
                    index.partition : index.partition + len(rows), index.address : index.address + 4
                ] = rows.view(np.uint8).reshape(-1, 4)
            else:
                continue
        if _apart(copy, memories, base):
            return copy


def random_copy(rng: np.random.Generator, config: Config, base: int, elements: int) -> DmaCopy:
    """Return a random copy of up to so many elements, most often a legal one."""
    rank = int(rng.integers(1, DMA_DIMENSIONS + 1))
    shape = [int(rng.choice((1, 2, 3, 4, 7, 16, elements))) for _ in range(rank)]
    while prod(shape) > elements:
        shape[rng.integers(rank)] = int(rng.integers(1, 5))
    src, dst = rng.choice(_FORMATS, 2)
    if rng.random() < 0.5:
        dst = src
    storages = rng.choice(list(Storage), 2, p=(0.4, 0.2, 0.4))
    places = []
    kind = rng.random()
    gather = kind < 0.1 and storages[0] == Storage.HBM
    scatter = not gather and kind < 0.2 and storages[1] == Storage.HBM
    rows = 5
    if gather or scatter:
        shape[0] = min(shape[0], config.partitions)
    for number, (fmt, storage) in enumerate(((src, storages[0]), (dst, storages[1]))):
        indexed = (gather, scatter)[number]
        places.append(_random_tensor(rng, config, fmt, Storage(storage), shape, base, rows if indexed else None))
    index = None
    if gather or scatter:
        partition = int(rng.integers(config.partitions - shape[0] + 1))
        address = 4 * int(rng.integers(SBUF_BYTES // 4))
        index = DmaIndex(address=address, partition=partition, limit=rows)
    return DmaCopy(
        shape=tuple(shape),
        src=places[0],
        dst=places[1],
        gather=index if gather else None,
        scatter=index if scatter else None,
    )


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
    steps, dense = [0] * rank, 1
    for d in reversed(range(rank)):
        if d == axis:
            steps[d] = int(rng.choice((1, 1, -1, 0, 2)))
            span = (shape[d] - 1) * steps[d]
            low, high = max(0, -span), limit - max(0, span)
            partition = int(rng.integers(low, high)) if low < high else partition
            continue
        steps[d] = int(rng.choice((dense, dense, dense, -dense, dense + int(rng.integers(1, 40)), 0, 2, -3)))
        dense = max(abs(steps[d]), 1) * (rows if rows and d == 0 else shape[d])
    low = high = 0
    for d in range(rank):
        if d != axis:
            span = ((rows if rows and d == 0 else shape[d]) - 1) * steps[d] * size
            low, high = low + min(span, 0), high + max(span, 0)
    first, end = (base, base + HBM_BYTES) if storage == Storage.HBM else (0, storage_bytes(storage))
    first, end = first - low, end - high - size
    if end < first:
        return _random_tensor(rng, config, fmt, storage, shape, base, rows)
    place = rng.random()
    address = first if place < 0.05 else end if place < 0.1 else int(rng.integers(first, end + 1))
    address = min(max(address // size * size, -(-first // size) * size), (1 << HBM_ADDRESS_BITS) - 1)
    return DmaTensor(format=fmt, address=address, storage=storage, steps=tuple(steps), partition=partition, axis=axis)


def _apart(copy: DmaCopy, memories: Memories, base: int) -> bool:
    """Return whether a copy writes nothing that it reads, row numbers included."""
    index = copy.gather or copy.scatter
    rows = np.arange(index.limit) if index else None
    shape = (index.limit, *copy.shape[1:]) if index else copy.shape

    def touched(tensor: DmaTensor, indexed) -> set:
        its = (shape, rows) if indexed else (copy.shape, None)
        partitions, addresses = np.broadcast_arrays(*_places(tensor, *its, base))
        return set(zip(partitions.flat, addresses.flat, strict=True))

    written = touched(copy.dst, copy.scatter)
    if index and copy.dst.storage == Storage.SBUF:
        numbers = {(index.partition + r, index.address + b) for r in range(copy.shape[0]) for b in range(4)}
        if written & numbers:
            return False
    return copy.src.storage != copy.dst.storage or not written & touched(copy.src, copy.gather)

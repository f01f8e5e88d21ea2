"""Random legal copies of the DMA engines, and a loop over their elements that says where each of their bytes is."""

from collections.abc import Iterator

import numpy as np

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FORMATS, INT32
from neuroncore_rtl.spec.isa import DmaCopy, DmaIndex, DmaTensor, Storage
from neuroncore_rtl.spec.isa.dma import dma_violation
from tests.oracles.touched import touched

__all__ = ["INDEX_ADDRESS", "INDEX_LIMIT", "SBUF_USED", "USED_BYTES", "places", "random_copy", "word_copy"]

USED_BYTES = 1024
"""Bytes of a partition that copies mostly use, so that they meet."""

SBUF_USED = 1 << 14
"""Bytes of a partition of SBUF beyond which no copy goes."""

INDEX_ADDRESS = SBUF_USED - 64
"""Where row numbers are."""

INDEX_LIMIT = 10
"""Row numbers are below this."""


def _tensor(rng, shape, fmt, storage, indexed, config, hbm_bytes):
    """Return a tensor in the middle of its storage; its steps may be anything."""
    size = fmt.bits // 8
    steps = [int(rng.integers(-9, 10)) for _ in shape]
    for d in rng.permutation(len(shape)):
        steps[d] = int(rng.choice([1, 0, -1, steps[d], int(np.prod(shape[d + 1 :]))], p=[0.1, 0.05, 0.1, 0.35, 0.4]))
    axis, partition = None, 0
    if storage != Storage.HBM:
        partition = int(rng.integers(config.columns))
        if rng.random() < 0.7:
            axis = int(rng.integers(len(shape)))
            steps[axis] = int(rng.choice([1, 1, 1, -1, 2, 0]))
    if indexed:
        steps[0] = int(rng.integers(1, 20))
    middle = USED_BYTES // 2 if storage != Storage.HBM else hbm_bytes // 2
    address = middle + size * int(rng.integers(-8, 8))
    return DmaTensor(format=fmt, address=address, storage=storage, steps=tuple(steps), partition=partition, axis=axis)


def random_copy(rng: np.random.Generator, config: Config, hbm_bytes: int) -> DmaCopy:
    """Return a legal copy of any kind, of at most 5 ** 5 elements, whose source and destination are apart.

    It stays within `SBUF_USED` and HBM; row numbers are at `INDEX_ADDRESS`.
    """
    while True:
        shape = tuple(int(rng.integers(1, 6)) for _ in range(rng.integers(1, 6)))
        formats = [list(FORMATS.values())[n] for n in rng.integers(len(FORMATS), size=2)]
        if rng.random() < 0.4:
            formats[1] = formats[0]
        storages = [Storage(int(n)) for n in rng.integers(3, size=2)]
        kind = rng.choice(["gather", "scatter", "plain", "plain", "plain"])
        if kind != "plain":
            storages[kind == "scatter"] = Storage.HBM
        sides = [
            _tensor(rng, shape, fmt, storage, kind == name, config, hbm_bytes)
            for fmt, storage, name in zip(formats, storages, ("gather", "scatter"), strict=True)
        ]
        index = DmaIndex(address=INDEX_ADDRESS, partition=int(rng.integers(4)), limit=INDEX_LIMIT)
        copy = DmaCopy(shape=shape, src=sides[0], dst=sides[1], **({} if kind == "plain" else {kind: index}))
        if dma_violation(copy.fields(), config) is None and _is_good(copy, config, hbm_bytes):
            return copy


def _is_good(copy: DmaCopy, config: Config, hbm_bytes: int) -> bool:
    """Return whether a copy stays within HBM, and does not write what it reads: nobody promises which comes first."""
    reads, writes = touched(copy, config)
    ends = all(address < hbm_bytes for storage, _, address in reads | writes if storage == Storage.HBM)
    return ends and reads.isdisjoint(writes)


def word_copy(source: int, target: int) -> DmaCopy:
    """Return a copy of one word within HBM."""
    sides = (DmaTensor(format=INT32, storage=Storage.HBM, address=at, steps=(1,)) for at in (source, target))
    return DmaCopy(shape=(1,), **dict(zip(("src", "dst"), sides, strict=True)))


def places(
    tensor: DmaTensor, shape: tuple[int, ...], rows: list[int] | None = None
) -> Iterator[list[tuple[Storage, int, int]]]:
    """Yield the bytes of every element, in row-major order: (storage, partition, address) of each.

    Arguments:
        tensor: side of a copy.
        shape: of the copy.
        rows: of a gather or scatter, the row numbers.
    """
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

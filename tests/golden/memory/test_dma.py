"""DMA model against a loop over elements."""

from functools import partial

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import storage_dtype
from neuroncore_rtl.golden.elementwise import load_words, store_words
from neuroncore_rtl.golden.memory.dma import DmaFault, dma_copy
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, UINT32
from neuroncore_rtl.spec.isa import Cause, DmaCopy, DmaIndex, DmaTensor, Storage, alu
from tests.oracles.copies import INDEX_ADDRESS, INDEX_LIMIT, SBUF_USED, USED_BYTES, beyond, places, random_copy
from tests.oracles.memories import changed_bytes

SEED = 1414
CONFIG = Config(rows=8, columns=6)
HBM_BYTES = 1 << 14
COPIES = 300


def memories(rng):
    sbuf = np.zeros((CONFIG.partitions, SBUF_USED), np.uint8)
    psum = np.zeros((CONFIG.columns, CONFIG.psum_bytes), np.uint8)
    for memory in (sbuf, psum):
        memory[:, :USED_BYTES] = rng.integers(256, size=(len(memory), USED_BYTES))
    return rng.integers(256, size=HBM_BYTES).astype(np.uint8), sbuf, psum


def oracle(copy, *memories):
    named = dict(zip((Storage.HBM, Storage.SBUF, Storage.PSUM), memories, strict=True))
    before = {storage: memory.copy() for storage, memory in named.items()}

    def byte(storage, partition, address):
        return address if storage == Storage.HBM else (partition, address)

    index = copy.gather or copy.scatter
    rows = None
    if index:
        words = before[Storage.SBUF][index.partition :, index.address : index.address + 4][: copy.shape[0]]
        rows = [int.from_bytes(word.tobytes(), "little") for word in words]
    sources = places(copy.src, copy.shape, rows if copy.gather else None)
    targets = places(copy.dst, copy.shape, rows if copy.scatter else None)
    for (row, *_), source, target in zip(np.ndindex(*copy.shape), sources, targets, strict=True):
        if index and rows[row] >= index.limit:
            continue
        data = bytes(int(before[place[0]][byte(*place)]) for place in source)
        if copy.src.format != copy.dst.format:
            codes = np.frombuffer(data, storage_dtype(copy.src.format))
            arithmetic = alu.Arithmetic.FP32
            if not (copy.src.format.is_float or copy.dst.format.is_float):
                arithmetic = alu.Arithmetic.UINT32 if copy.src.format is UINT32 else alu.Arithmetic.INT32
            data = store_words(load_words(codes, copy.src.format, arithmetic), copy.dst.format, arithmetic).tobytes()
        for place, value in zip(target, data, strict=True):
            named[place[0]][byte(*place)] = value


def test_copy_is_the_loop_over_elements(rng):
    changed = kinds = skipping = 0
    for _ in range(COPIES):
        copy = random_copy(rng, CONFIG, HBM_BYTES)
        before = memories(rng)
        rows = rng.integers(INDEX_LIMIT, size=CONFIG.partitions).astype("<u4")
        if any(index and index.skip for index in (copy.gather, copy.scatter)):
            rows, skipping = beyond(rng, INDEX_LIMIT, rows, 0.4), skipping + 1
        before[1][:, INDEX_ADDRESS : INDEX_ADDRESS + 4] = rows[:, np.newaxis].view(np.uint8)
        changed += changed_bytes(before, partial(dma_copy, copy), partial(oracle, copy), copy) > 0
        kinds |= 1 << (2 if copy.gather else 1 if copy.scatter else 0)
    assert changed > 0.9 * COPIES and kinds == 0b111 and skipping > 0.03 * COPIES


def tensor(fmt, storage, steps, **place):
    return DmaTensor(format=fmt, storage=storage, steps=steps, **{"address": 0, **place})


def indexed(kind):
    index = DmaIndex(address=64, partition=1, limit=5)
    sides = {"src": tensor(BF16, Storage.HBM, (8, 1)), "dst": tensor(BF16, Storage.SBUF, (1, 1), axis=0, address=128)}
    if kind == "scatter":
        sides = {"src": sides["dst"], "dst": sides["src"]}
    return DmaCopy(shape=(4, 8), **sides, **{kind: index})


@pytest.mark.parametrize("kind", ["gather", "scatter"])
def test_rows_before_a_wrong_row_number_are_done(kind, rng):
    hbm, sbuf, psum = memories(rng)
    sbuf[1:5, 64:68] = np.array([3, 0, 5, 1], "<u4")[:, np.newaxis].view(np.uint8)
    before = hbm.copy(), sbuf.copy()
    with pytest.raises(DmaFault) as fault:
        dma_copy(indexed(kind), hbm, sbuf, psum)
    assert (fault.value.cause, fault.value.detail) == (Cause.INDEX, 5)
    table, tile = hbm[: 5 * 16].reshape(5, 16), sbuf[:4, 128:144]
    assert np.array_equal(table[[3, 0]], tile[:2])
    if kind == "gather":
        assert np.array_equal(sbuf[2:4], before[1][2:4])
    else:
        assert np.array_equal(table[[1, 2, 4]], before[0][: 5 * 16].reshape(5, 16)[[1, 2, 4]])


@pytest.mark.parametrize("address, step", [(HBM_BYTES - 6, 1), (4, -1), (HBM_BYTES, 0)])
def test_hbm_has_an_end(address, step, rng):
    hbm, sbuf, psum = memories(rng)
    before = sbuf.copy()
    src, dst = tensor(BF16, Storage.HBM, (step,), address=address), tensor(BF16, Storage.SBUF, (1,))
    with pytest.raises(DmaFault) as fault:
        dma_copy(DmaCopy(shape=(4,), src=src, dst=dst), hbm, sbuf, psum)
    assert (fault.value.cause, fault.value.detail) == (Cause.AXI, 0)
    assert np.array_equal(sbuf, before)

"""Strided reads and writes against a loop over every byte."""

import numpy as np
import pytest

from neuroncore_rtl.golden.memory import footprint, gather, scatter
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FORMATS, FP32, INT8
from neuroncore_rtl.spec.isa import Access, Pointer, Storage
from neuroncore_rtl.tb.stimulus.operands import random_codes
from tests.oracles.instructions import random_access

SEED = 2236
CONFIG = Config(rows=8, columns=8)
SIZES = 512, 256


def cases(rng, n):
    found = []
    formats = list(FORMATS.values())
    while len(found) < n:
        shape = tuple(int(k) for k in rng.integers(1, 4, rng.integers(1, 5)))
        lanes = int(rng.integers(1, 9))
        access = random_access(rng, CONFIG, formats[rng.integers(len(formats))], lanes, shape, SIZES)
        if access is not None:
            found.append((access, lanes, shape))
    return found


def test_reads_and_writes_are_those_of_a_loop(rng):
    repeated = 0
    for access, lanes, shape in cases(rng, 300):
        memory = rng.integers(0, 256, (8, SIZES[access.storage]), np.uint8)
        size = access.format.bits // 8
        offsets = (np.dot(place, access.steps) for place in np.ndindex(shape))
        addresses = [int(access.address + size * offset) for offset in offsets]
        repeated += len(set(addresses)) < len(addresses)
        rows = memory[access.partition : access.partition + lanes]
        expected = [[int.from_bytes(row[at : at + size].tobytes(), "little") for at in addresses] for row in rows]
        assert gather(memory, access, lanes, shape).tolist() == np.reshape(expected, (lanes, *shape)).tolist()
        assert footprint(access, shape).tolist() == sorted({at + byte for at in addresses for byte in range(size)})

        codes = random_codes(rng, access.format, lanes * len(addresses)).reshape(lanes, *shape)
        for where in (None, rng.random(codes.shape) < 0.5):
            theirs = memory.copy()
            scatter(memory, access, codes, where)
            kept = np.ones(codes.shape, bool) if where is None else where
            for lane, row in enumerate(theirs[access.partition : access.partition + lanes]):
                for at, code, keep in zip(addresses, codes[lane].flat, kept[lane].flat, strict=True):
                    if keep:
                        row[at : at + size] = np.frombuffer(int(code).to_bytes(size, "little"), np.uint8)
            assert np.array_equal(memory, theirs), (access, lanes, shape)
    assert repeated > 30


def test_read_is_a_copy_and_pointer_is_one_element_a_partition():
    memory = np.arange(64, dtype=np.uint8).reshape(4, 16)
    words = gather(memory, Pointer(format=FP32, address=4, partition=2), 2, ())
    assert [hex(word) for word in words] == ["0x27262524", "0x37363534"]
    assert footprint(Pointer(format=BF16, address=6), ()).tolist() == [6, 7]
    codes = gather(memory, Access(format=INT8, address=0, steps=(1,)), 4, (16,))
    codes[:] = 0
    assert memory[3, 15] == 63


def test_memory_that_is_part_of_another():
    whole = np.zeros((4, 32), np.uint8)
    scatter(whole[1:3, 8:16], Access(format=BF16, address=2, steps=(1,)), np.full((2, 2), 0xABCD, np.uint16))
    assert whole[1].nonzero()[0].tolist() == [10, 11, 12, 13]
    assert whole[2].tolist() == whole[1].tolist() and not whole[[0, 3]].any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"address": 13}, r"bytes must lie from 0 to 16, not from 13 to 17"),
        ({"address": 1, "steps": (-1,)}, r"bytes must lie from 0 to 16, not from -1 to 3"),
        ({"partition": 1}, r"partitions must end at 4, not 5"),
        ({"steps": (1, 1)}, r"steps must be one for each of 1 dimensions, not \(1, 1\)"),
    ],
)
def test_refusals(change, message):
    fields = {"format": BF16, "address": 0, "steps": (1,), "storage": Storage.SBUF} | change
    with pytest.raises(ValueError, match=message):
        gather(np.zeros((4, 16), np.uint8), Access(**fields), 4, (2,))

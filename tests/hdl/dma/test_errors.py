"""A copy that fails is named, those before it are whole, and it leaves alone what it does not reach."""

import numpy as np
import pytest

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import INT8, INT32
from neuroncore_rtl.spec.isa import Cause, DmaCopy, DmaIndex, DmaTensor, Rule, Storage
from tests.hdl.dma.copies import execute, random_memories
from tests.hdl.dma.machine import HBM_BYTES, Error, run_copies

CONFIG = Config(rows=8, columns=4)

BAD = (0x8000, 0x8010)
"""Addresses in HBM that answer with an error: one beat."""


@pytest.fixture
def memories():
    """Random memories, the same in every test."""
    return random_memories(np.random.default_rng(7), CONFIG)


def copy(count, src, src_address, dst, dst_address):
    """Return a copy of adjacent bytes."""
    return DmaCopy(
        shape=(count,),
        src=DmaTensor(format=INT8, address=src_address, storage=src, steps=(1,)),
        dst=DmaTensor(format=INT8, address=dst_address, storage=dst, steps=(1,)),
    )


def words(copies):
    return [one.encode() for one in copies]


def as_given(outcome, memories, storage, but=()):
    """Return whether a memory is what it was, but for ranges of addresses in its first partition."""
    same = outcome.memories[storage] == memories[storage]
    for low, high in but:
        same[0, low:high] = True
    return same.all()


@pytest.mark.parametrize("stall", [0, 100])
def test_a_beat_that_hbm_does_not_deliver(memories, stall):
    """All of the bytes before it are written, but for the unfinished beat; none behind it."""
    copies = [
        copy(300, Storage.HBM, 0x100, Storage.SBUF, 0x10),
        copy(1000, Storage.HBM, BAD[0] - 403, Storage.SBUF, 0x1000),
        copy(300, Storage.HBM, 0x300, Storage.SBUF, 0x805),
    ]
    outcome = run_copies(CONFIG, words(copies), memories, bad=BAD, stall=stall)
    assert outcome.errors == [Error(1, Cause.AXI, 0)]
    assert len(outcome.retired) == 2
    for whole in (copies[0], copies[2]):
        execute(whole, memories)
    written, wanted = outcome.memories[Storage.SBUF][0], memories[Storage.HBM][0, BAD[0] - 403 :]
    assert np.array_equal(written[0x1000 : 0x1000 + 400], wanted[:400])
    assert as_given(outcome, memories, Storage.SBUF, [(0x1000, 0x1000 + 403)])


@pytest.mark.parametrize("stall", [0, 100])
def test_a_beat_that_hbm_does_not_take(memories, stall):
    """Copies before it are whole, those behind it begin after the engine's reset; its own end is not written."""
    copies = [
        copy(300, Storage.SBUF, 0x100, Storage.HBM, 0x1003),
        copy(6000, Storage.SBUF, 0x400, Storage.HBM, BAD[0] - 100),
        copy(40, Storage.SBUF, 0x2000, Storage.PSUM, 0x1),
        copy(200, Storage.SBUF, 0x2800, Storage.HBM, 0x2000),
    ]
    outcome = run_copies(CONFIG, words(copies), memories, bad=BAD, stall=stall)
    assert outcome.errors == [Error(1, Cause.AXI, 0)]
    assert len(outcome.retired) == 3
    for whole in (copies[0], *copies[2:]):
        execute(whole, memories)
    low = BAD[0] - 100
    assert as_given(outcome, memories, Storage.HBM, [(low, low + 4000)])
    assert as_given(outcome, memories, Storage.SBUF) and as_given(outcome, memories, Storage.PSUM)


def test_hbm_to_hbm_beyond_its_end(memories):
    outcome = run_copies(CONFIG, words([copy(100, Storage.HBM, HBM_BYTES - 50, Storage.HBM, 0x3001)]), memories)
    assert outcome.errors == [Error(0, Cause.AXI, 0)]
    assert as_given(outcome, memories, Storage.HBM, [(0x3001, 0x3001 + 50)])


def test_an_illegal_copy_is_refused_in_its_turn(memories):
    """It neither reads nor writes, and the copies before it finish, answers included."""
    copies = [
        copy(2000, Storage.SBUF, 0x100, Storage.HBM, 0x1003),
        copy(100, Storage.HBM, 0, Storage.SBUF, 192 * 1024 - 99),
        copy(100, Storage.HBM, 0x10, Storage.SBUF, 0),
    ]
    outcome = run_copies(CONFIG, words(copies), memories, stall=30)
    assert outcome.errors == [Error(1, Rule.RANGE, 0)]
    for whole in (copies[0], copies[2]):
        execute(whole, memories)
    assert all(as_given(outcome, memories, storage) for storage in Storage)


def test_a_row_number_beyond_its_limit(memories):
    """The rows before it are written, and the copies before it."""
    copies = []
    for place, bad_row in enumerate((0, 3, 7)):
        numbers = np.array([5, 2, 9, 0, 3, 1, 8, 4], "<u4")
        numbers[bad_row] = 10 + place
        address = 0x40 + 4 * place
        memories[Storage.SBUF][:, address : address + 4] = numbers.view(np.uint8).reshape(8, 4)
        index = DmaIndex(address=address, limit=10)
        row = dict(format=INT32, steps=(24, 1))
        in_hbm = DmaTensor(**row, address=0x1004 + 0x1000 * place, storage=Storage.HBM)
        on_chip = DmaTensor(**row, address=0x2010 + 0x1000 * place, storage=Storage.SBUF)
        copies += [
            copy(500, Storage.SBUF, 0x100, Storage.HBM, 0x6003 + 0x200 * place),
            DmaCopy(shape=(8, 23), src=in_hbm, dst=on_chip, gather=index),
            DmaCopy(shape=(8, 23), src=on_chip, dst=in_hbm, scatter=index),
        ]
    outcome = run_copies(CONFIG, words(copies), memories, stall=20)
    wanted = [Error(number, Cause.INDEX, 10 + number // 3) for number in range(9) if number % 3]
    assert outcome.errors == wanted
    for one in copies:
        execute(one, memories)
    assert all(as_given(outcome, memories, storage) for storage in Storage)

"""A copy that fails is named, those before it are whole, and it leaves alone what it does not reach."""

import numpy as np
import pytest

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import INT32
from neuroncore_rtl.spec.isa import Cause, DmaCopy, DmaIndex, Rule, Storage
from tests.hdl.dma.copies import differing, execute, random_memories, tensor
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
    return DmaCopy(shape=(count,), src=tensor(src, src_address), dst=tensor(dst, dst_address))


def run(memories, copies, fails, *, but=(), **options):
    """Run copies one of which fails; return what the memories are then.

    Arguments:
        memories: in the end, those that the copies which do not fail leave by themselves.
        fails: number of the one that fails, and its cause.
        but: the first address, and how many, in the first partition of its target, that may be anything.
    """
    number, cause = fails
    outcome = run_copies(CONFIG, copies, memories, **options)
    assert outcome.errors == [Error(number, cause, 0)]
    assert len(outcome.retired) == len(copies) - 1
    execute([*copies[:number], *copies[number + 1 :]], memories)
    same = {storage: outcome.memories[storage] == memories[storage] for storage in Storage}
    if but:
        same[copies[number].dst.storage][0, but[0] : but[0] + but[1]] = True
    assert all(equal.all() for equal in same.values())
    return outcome.memories


@pytest.mark.parametrize("stall", [0, 100])
def test_a_beat_that_hbm_does_not_deliver(memories, stall):
    """All of the bytes before it are written, but for the unfinished beat; none behind it."""
    copies = [
        copy(300, Storage.HBM, 0x100, Storage.SBUF, 0x10),
        copy(1000, Storage.HBM, BAD[0] - 403, Storage.SBUF, 0x1000),
        copy(300, Storage.HBM, 0x300, Storage.SBUF, 0x805),
    ]
    found = run(memories, copies, (1, Cause.AXI), but=(0x1000, 403), bad=BAD, stall=stall)
    written, wanted = found[Storage.SBUF][0, 0x1000:], memories[Storage.HBM][0, BAD[0] - 403 :]
    assert np.array_equal(written[:400], wanted[:400])


@pytest.mark.parametrize("stall", [0, 100])
def test_a_beat_that_hbm_does_not_take(memories, stall):
    """Copies before it are whole, those behind it begin after the engine's reset; its own end is not written."""
    copies = [
        copy(300, Storage.SBUF, 0x100, Storage.HBM, 0x1003),
        copy(6000, Storage.SBUF, 0x400, Storage.HBM, BAD[0] - 100),
        copy(40, Storage.SBUF, 0x2000, Storage.PSUM, 0x1),
        copy(200, Storage.SBUF, 0x2800, Storage.HBM, 0x2000),
    ]
    run(memories, copies, (1, Cause.AXI), but=(BAD[0] - 100, 4000), bad=BAD, stall=stall)


def test_hbm_to_hbm_beyond_its_end(memories):
    copies = [copy(100, Storage.HBM, HBM_BYTES - 50, Storage.HBM, 0x3001)]
    run(memories, copies, (0, Cause.AXI), but=(0x3001, 50))


def test_an_illegal_copy_is_refused_in_its_turn(memories):
    """It neither reads nor writes, and the copies before it finish, answers included."""
    copies = [
        copy(2000, Storage.SBUF, 0x100, Storage.HBM, 0x1003),
        copy(100, Storage.HBM, 0, Storage.SBUF, 192 * 1024 - 99),
        copy(100, Storage.HBM, 0x10, Storage.SBUF, 0),
    ]
    run(memories, copies, (1, Rule.RANGE), stall=30)


def test_a_row_number_beyond_its_limit(memories):
    """The rows before it are written, and the copies before it."""
    copies = []
    beyond = (10, 0x5555_5555, 0xAAAA_AAAA)
    for place, bad_row in enumerate((0, 3, 7)):
        numbers = np.array([5, 2, 9, 0, 3, 1, 8, 4], "<u4")
        numbers[bad_row] = beyond[place]
        address = 0x40 + 4 * place
        memories[Storage.SBUF][:, address : address + 4] = numbers.view(np.uint8).reshape(8, 4)
        index = DmaIndex(address=address, limit=10)
        in_hbm = tensor(Storage.HBM, 0x1004 + 0x1000 * place, (24, 1), INT32)
        on_chip = tensor(Storage.SBUF, 0x2010 + 0x1000 * place, (24, 1), INT32)
        copies += [
            copy(500, Storage.SBUF, 0x100, Storage.HBM, 0x6003 + 0x200 * place),
            DmaCopy(shape=(8, 23), src=in_hbm, dst=on_chip, gather=index),
            DmaCopy(shape=(8, 23), src=on_chip, dst=in_hbm, scatter=index),
        ]
    outcome = run_copies(CONFIG, copies, memories, stall=20)
    assert outcome.errors == execute(copies, memories)
    assert outcome.errors == [Error(number, Cause.INDEX, beyond[number // 3]) for number in range(9) if number % 3]
    assert differing(outcome.memories, memories) == 0

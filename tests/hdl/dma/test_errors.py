import numpy as np
import pytest

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32, INT32
from neuroncore_rtl.spec.isa import Cause, DmaCopy, DmaIndex, Rule, Storage
from tests.hdl.dma.copies import execute, random_memories, run_and_compare, tensor
from tests.hdl.dma.machine import HBM_BYTES, Error, run_copies

CONFIG = Config(rows=8, columns=4)
HBM, SBUF, PSUM = Storage.HBM, Storage.SBUF, Storage.PSUM

BAD = (0x8000, 0x8010)
"""Address range of HBM with an error response: one beat."""


@pytest.fixture
def memories():
    return random_memories(np.random.default_rng(7), CONFIG)


def copy(count, src, src_address, dst, dst_address):
    return DmaCopy(shape=(count,), src=tensor(src, src_address), dst=tensor(dst, dst_address))


def run_failing(memories, copies, fails, *, but=(), **options):
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
def test_an_error_response_to_a_read(memories, stall):
    """All bytes before the failing beat are written, except for the last incomplete word, and no bytes after it."""
    failing = copy(1000, HBM, BAD[0] - 403, SBUF, 0x1000)
    copies = [copy(300, HBM, 0x100, SBUF, 0x10), failing, copy(300, HBM, 0x300, SBUF, 0x805)]
    found = run_failing(memories, copies, (1, Cause.AXI), but=(0x1000, 403), bad=BAD, stall=stall)
    written, wanted = found[SBUF][0, 0x1000:], memories[HBM][0, BAD[0] - 403 :]
    assert np.array_equal(written[:400], wanted[:400])


@pytest.mark.parametrize("stall", [0, 100])
def test_an_error_response_to_a_write(memories, stall):
    """Earlier copies are complete, later copies run after the reset; the failing copy's end is not written."""
    copies = [copy(300, SBUF, 0x100, HBM, 0x1003), copy(6000, SBUF, 0x400, HBM, BAD[0] - 100)]
    copies += [copy(40, SBUF, 0x2000, PSUM, 0x1), copy(200, SBUF, 0x2800, HBM, 0x2000)]
    run_failing(memories, copies, (1, Cause.AXI), but=(BAD[0] - 100, 4000), bad=BAD, stall=stall)


def test_hbm_to_hbm_beyond_its_end(memories):
    run_failing(memories, [copy(100, HBM, HBM_BYTES - 50, HBM, 0x3001)], (0, Cause.AXI), but=(0x3001, 50))


def test_an_illegal_copy_is_refused_after_earlier_ones_have_retired(memories):
    illegal = copy(100, HBM, 0, SBUF, 192 * 1024 - 99)
    copies = [copy(2000, SBUF, 0x100, HBM, 0x1003), illegal, copy(100, HBM, 0x10, SBUF, 0)]
    run_failing(memories, copies, (1, Rule.RANGE), stall=30)


def test_a_row_number_beyond_its_limit(memories):
    copies = []
    beyond = (10, 0x5555_5555, 0xAAAA_AAAA)
    for place, bad_row in enumerate((0, 3, 7)):
        numbers = np.array([5, 2, 9, 0, 3, 1, 8, 4], "<u4")
        numbers[bad_row] = beyond[place]
        address = 0x40 + 4 * place
        memories[SBUF][:, address : address + 4] = numbers.view(np.uint8).reshape(8, 4)
        index = DmaIndex(address=address, limit=10)
        in_hbm = tensor(HBM, 0x1004 + 0x1000 * place, (24, 1), INT32)
        on_chip = tensor(SBUF, 0x2010 + 0x1000 * place, (24, 1), INT32)
        copies += [
            copy(500, SBUF, 0x100, HBM, 0x6003 + 0x200 * place),
            DmaCopy(shape=(8, 23), src=in_hbm, dst=on_chip, gather=index),
            DmaCopy(shape=(8, 23), src=on_chip, dst=in_hbm, scatter=index),
        ]
    errors = [Error(number, Cause.INDEX, beyond[number // 3]) for number in range(9) if number % 3]
    run_and_compare(CONFIG, copies, memories, errors=errors, stall=20)


INDEX = DmaIndex(address=0, limit=10)
"""Row numbers; the sixth of the eight is beyond the limit."""

IN_HBM, ON_CHIP = tensor(HBM, 0x1004, (24, 1), INT32), tensor(SBUF, 0x2010, (24, 1), INT32)
CAST = DmaCopy(shape=(90,), src=tensor(HBM, BAD[0] - 160, fmt=FP32), dst=tensor(SBUF, 0x1000, fmt=BF16))
STRIDE = DmaCopy(shape=(30,), src=tensor(HBM, BAD[0] - 400, (40,)), dst=tensor(PSUM, 5))

FAILING = {
    "first beat": (copy(100, HBM, BAD[0], SBUF, 0x1000), Cause.AXI, 35, 36),
    "later beat": (copy(1000, HBM, BAD[0] - 403, SBUF, 0x1000), Cause.AXI, 62, 74),
    "read to HBM": (copy(200, HBM, BAD[0] - 96, HBM, 0x2001), Cause.AXI, 42, 45),
    "cast": (CAST, Cause.AXI, 49, 52),
    "stride": (STRIDE, Cause.AXI, 45, 50),
    "written": (copy(300, SBUF, 0x400, HBM, BAD[0] - 100), Cause.AXI, 65, 91),
    "written, and more": (copy(3000, SBUF, 0x400, HBM, BAD[0] - 100), Cause.AXI, 76, 89),
    "gather": (DmaCopy(shape=(8, 23), src=IN_HBM, dst=ON_CHIP, gather=INDEX), Cause.INDEX, 74, 90),
    "scatter": (DmaCopy(shape=(8, 23), src=ON_CHIP, dst=IN_HBM, scatter=INDEX), Cause.INDEX, 38, 50),
    "illegal": (copy(100, HBM, 0, SBUF, 192 * 1024 - 99), Rule.RANGE, 1, 1),
    "early beat": (copy(400, HBM, BAD[0] - 40, SBUF, 0x1000), Cause.AXI, 39, 39),
}
"""Failing copies, causes, and cycles from the end of the previous copy to the error, without and with stalls."""

ACTIVE = (11569, 11743)
"""Cycles with a clock edge; after an error the engine is active until it has received all beats."""


def test_cycles_until_the_error(memories):
    memories[SBUF][:, :4] = np.array([5, 2, 9, 0, 3, 10, 8, 4], "<u4").view(np.uint8).reshape(8, 4)
    failing, causes, *cycles = zip(*FAILING.values(), strict=True)
    copies = [one for last in failing for one in (copy(200, SBUF, 0x100, HBM, 0x6003), last)]
    failed = list(zip(range(1, len(copies), 2), causes, strict=True))
    outcomes = [run_copies(CONFIG, copies, memories, latency=30, bad=BAD, stall=stall) for stall in (0, 60)]
    found = [np.subtract(outcome.failed, outcome.retired).tolist() for outcome in outcomes]
    assert [[(error.copy, error.cause) for error in outcome.errors] for outcome in outcomes] == [failed] * 2
    assert found == [list(wanted) for wanted in cycles]
    assert tuple(outcome.seen["active"] for outcome in outcomes) == ACTIVE

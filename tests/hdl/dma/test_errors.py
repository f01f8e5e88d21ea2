import numpy as np
import pytest

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32, INT32
from neuroncore_rtl.spec.isa import Cause, DmaCopy, DmaIndex, Rule, Storage
from tests.hdl.dma.copies import execute, random_memories, tensor
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


READ = copy(1000, HBM, BAD[0] - 403, SBUF, 0x1000)
WRITE = copy(6000, SBUF, 0x400, HBM, BAD[0] - 100)
BEYOND = copy(100, HBM, HBM_BYTES - 50, HBM, 0x3001)
ILLEGAL = copy(100, HBM, 0, SBUF, 192 * 1024 - 99)

AROUND = {
    "read": (copy(300, HBM, 0x100, SBUF, 0x10), READ, copy(300, HBM, 0x300, SBUF, 0x805), Cause.AXI, 403),
    "write": (copy(300, SBUF, 0x100, HBM, 0x1003), WRITE, copy(200, SBUF, 0x2800, HBM, 0x2000), Cause.AXI, 4000),
    "beyond": (copy(40, SBUF, 0x2000, PSUM, 1), BEYOND, copy(40, SBUF, 0x2000, PSUM, 0x81), Cause.AXI, 50),
    "illegal": (copy(2000, SBUF, 0x100, HBM, 0x1003), ILLEGAL, copy(100, HBM, 0x10, SBUF, 0), Rule.RANGE, 0),
}
"""Copies before, at and after an error, its cause, and how many bytes the failing copy may have written."""


@pytest.mark.parametrize("stall", [0, 100])
@pytest.mark.parametrize(("before", "failing", "after", "cause", "partial"), AROUND.values(), ids=AROUND)
def test_only_the_failing_copy_is_incomplete(memories, before, failing, after, cause, partial, stall):
    """Before a failing read beat, only the last incomplete word is missing."""
    outcome = run_copies(CONFIG, [before, failing, after], memories, bad=BAD, stall=stall)
    assert outcome.errors == [Error(1, cause, 0)] and len(outcome.retired) == 2
    execute([before, after], memories)
    found, address = outcome.memories, failing.dst.address
    if failing is READ:
        assert np.array_equal(found[SBUF][0, address : address + 400], memories[HBM][0, READ.src.address :][:400])
    memories[failing.dst.storage][0, address : address + partial] = found[failing.dst.storage][0, address:][:partial]
    assert all(np.array_equal(found[storage], memories[storage]) for storage in Storage)


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
    for stall, wanted, active in zip((0, 60), cycles, ACTIVE, strict=True):
        outcome = run_copies(CONFIG, copies, memories, latency=30, bad=BAD, stall=stall)
        assert [(error.copy, error.cause) for error in outcome.errors] == failed
        assert tuple(np.subtract(outcome.failed, outcome.retired)) == wanted and outcome.seen["active"] == active

import math

import numpy as np
import pytest

from neuroncore_rtl.spec.formats import BF16, FP32, INT32
from neuroncore_rtl.spec.isa import DmaCopy, DmaIndex, Storage
from tests.hdl.dma.copies import CONFIG, legal_copy, random_memories, tensor
from tests.hdl.dma.machine import run_copies

HBM, SBUF, PSUM = Storage.HBM, Storage.SBUF, Storage.PSUM

ROWS = DmaIndex(address=0, limit=6, skip=True)
"""Row numbers; the sixth and the seventh of the eight are beyond the limit."""

COPIES = {
    "in": ((1000,), tensor(HBM, 5), tensor(SBUF, 0x1003), (108, 65, 126, 83)),
    "out": ((1000,), tensor(SBUF, 7), tensor(HBM, 0x2001), (119, 65, 143, 84)),
    "over a page": ((9000,), tensor(HBM, 0xF00), tensor(HBM, 0x8F01), (646, 646, 819, 852)),
    "inside": ((500,), tensor(SBUF, 1), tensor(SBUF, 0x3002), (1, 40, 1, 52)),
    "one byte": ((1,), tensor(SBUF, 1), tensor(HBM, 0x3002), (42, 3, 42, 3)),
    "partitions": ((8, 64), tensor(HBM, 0, (80, 1)), tensor(SBUF, 0x200, (1, 1), axis=0), (68, 34, 85, 44)),
    "cast": ((301,), tensor(HBM, 0, fmt=FP32), tensor(SBUF, 0x800, fmt=BF16), (81, 76, 91, 106)),
    "stride": ((20, 7), tensor(SBUF, 0x100, (34, 4), BF16), tensor(HBM, 0x4000, (14, 2), BF16), (181, 142, 241, 194)),
    "backwards": ((60,), tensor(HBM, 0x4000, (-4,), INT32), tensor(HBM, 0x6000, fmt=INT32), (142, 142, 169, 177)),
    "out of PSUM": ((90,), tensor(PSUM, 0, fmt=FP32), tensor(HBM, 0x5004, fmt=FP32), (84, 92, 115, 115)),
    "into PSUM": ((90,), tensor(SBUF, 2, fmt=BF16), tensor(PSUM, 0x40, fmt=FP32), (57, 92, 80, 123)),
    "gather": ((8, 20), tensor(HBM, 0x100, (24, 1), INT32), tensor(SBUF, 0x2010, (24, 1), INT32), (73, 73, 78, 83)),
    "scatter": ((8, 20), tensor(SBUF, 0x2010, (24, 1), INT32), tensor(HBM, 0x100, (24, 1), INT32), (81, 45, 98, 58)),
}
"""Shape, source, destination, and cycles since the previous copy: of two such copies without, and two with stalls."""


def moved(copies):
    """Return the numbers of bytes that copies read and write; a gather or scatter skips rows from `ROWS.limit` on."""
    total = np.zeros(2, int)
    for copy in copies:
        rows = ROWS.limit if copy.gather or copy.scatter else copy.shape[0]
        total += rows * math.prod(copy.shape[1:]) * np.array([copy.src.format.bits // 8, copy.dst.format.bits // 8])
    return total.tolist()


def test_cycles():
    memories = random_memories(np.random.default_rng(1), CONFIG)
    memories[SBUF][:, :4] = np.arange(8, dtype="<u4")[:, np.newaxis].view(np.uint8)
    copies = []
    for name, (shape, src, dst, _) in COPIES.items():
        indexed = {name: ROWS} if name in ("gather", "scatter") else {}
        copies += [DmaCopy(shape=shape, src=src, dst=dst, **indexed)] * 2
    outcomes = [run_copies(CONFIG, copies, memories, latency=30, stall=stall) for stall in (0, 60)]
    assert not any(outcome.errors for outcome in outcomes)
    steps = [np.diff([outcome.taken[0], *outcome.retired]).reshape(-1, 2).tolist() for outcome in outcomes]
    found = {name: (*still, *pausing) for name, still, pausing in zip(COPIES, *steps, strict=True)}
    assert found == {name: cycles for name, (*_, cycles) in COPIES.items()}
    assert tuple(outcome.seen["active"] for outcome in outcomes) == (3199, 4063)
    for outcome in outcomes:
        assert [outcome.counters[name] for name in ("read_bytes", "write_bytes")] == moved(copies)


ROOM = (15, 22, 29, 44, 1582, 2678, 2696)
"""Cycles in which copies are accepted.

The fifth copy is accepted when all bursts of the first copy are issued and the second copy is written, the sixth when
HBM has responded to these two copies.
"""


def test_bursts_wait_for_room():
    # HBM responds in one of eight cycles: 128 of 300 bursts are outstanding, and none stalls at the port.
    memories = random_memories(np.random.default_rng(1), CONFIG)
    copies = [DmaCopy(shape=(300,), src=tensor(SBUF), dst=tensor(HBM, 0x2000, (32,)))]
    copies += [DmaCopy(shape=(64,), src=tensor(SBUF, 0x100 * n), dst=tensor(PSUM)) for n in range(6)]
    outcome = run_copies(CONFIG, copies, memories, unanswered=224)
    assert not outcome.errors
    assert tuple(outcome.taken) == ROOM and outcome.seen["wait_axi_write"] == 0


@pytest.mark.parametrize(("seed", "stall", "latency"), [(21, 0, 50), (22, 100, 2), (23, 200, 120)])
def test_counters_are_what_the_ports_show(seed, stall, latency):
    rng = np.random.default_rng(seed)
    memories = random_memories(rng, CONFIG)
    copies = []
    while len(copies) < 100:
        copy = legal_copy(rng, CONFIG, memories)
        if not (copy.gather or copy.scatter):
            copies.append(copy)
    outcome = run_copies(CONFIG, copies, memories, stall=stall, latency=latency, seed=seed)
    counted, seen = outcome.counters, outcome.seen
    assert [counted["read_bytes"], counted["write_bytes"]] == moved(copies)
    exact = ("busy", "wait_axi_write", "wait_line_read", "wait_line_write")
    assert {name: counted[name] for name in exact} == {name: seen[name] for name in exact}
    assert counted["busy"] > 0 and all((counted[name] > 0) == (stall > 0) for name in exact[1:])
    # The input register shifts the stall of a single beat by a cycle.
    assert counted["wait_axi_read"] == pytest.approx(seen["wait_axi_read"], abs=2 * seen["bursts"])
    assert counted["wait_axi_read"] > latency


def test_waiting_for_hbm_is_counted_to_the_cycle():
    memories = random_memories(np.random.default_rng(1), CONFIG)
    copy = DmaCopy(shape=(8,), src=tensor(HBM), dst=tensor(SBUF))
    near, far = (run_copies(CONFIG, [copy], memories, latency=latency).counters for latency in (10, 47))
    assert far["wait_axi_read"] - near["wait_axi_read"] == far["busy"] - near["busy"] == 37

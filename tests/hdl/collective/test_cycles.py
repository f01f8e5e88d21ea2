import numpy as np

from neuroncore_rtl.spec.isa.collective import CollectiveKind, CollectiveType, Group
from tests.hdl.collective.machine import CORES, HBM_BYTES, run_collectives
from tests.hdl.collective.test_engines import all_reduce, programs_of

K, T = CollectiveKind, CollectiveType

COLLECTIVES = {
    "all_reduce": all_reduce(Group(0, 1, CORES), count=3000, dst=1 << 16, chunk=5),
    "narrow": all_reduce(Group(3, -1, 3), count=1000, dst=1 << 16, dtype=T.BF16, narrow=True, stochastic=True),
    "wide": all_reduce(Group(3, -1, 3), count=1000, dst=1 << 16, dtype=T.BF16),
    "reduce_scatter": all_reduce(Group(1, 1, 4), kind=K.REDUCE_SCATTER, count=500, pitch=2048, dst=1 << 16),
    "all_gather": all_reduce(Group(4, -1, 5), kind=K.ALL_GATHER, count=500, pitch=2048, dst=1 << 16),
    "all_to_all": all_reduce(Group(0, 1, 5), kind=K.ALL_TO_ALL, count=500, pitch=2048, dst=1 << 16),
    "broadcast": all_reduce(Group(0, 1, 5), kind=K.BROADCAST, count=2500, root=2, dst=1 << 16),
    "send": all_reduce(Group(1, 3, 2), kind=K.SEND, count=700, root=1, dst=1 << 16),
    "barrier": all_reduce(Group(0, 1, 5), kind=K.BARRIER),
}

ENDS = [
    [
        [1437, 3862, 4819, 6127, 6518],
        [1404, 1907, 2405, 3030, 3911, 4811, 6148, 6376, 6539],
        [1396, 1894, 2397, 3022, 3903, 4805, 6199, 6560],
        [1433, 1804, 2298, 2968, 3877, 4798, 6117, 6581],
        [1452, 3007, 3888, 4791, 6106, 6449, 6601],
    ],
    [
        [1811, 4623, 5739, 7306, 7777],
        [1776, 2307, 2917, 3647, 4665, 5766, 7333, 7630, 7798],
        [1788, 2274, 2893, 3631, 4704, 5750, 7359, 7819],
        [1797, 2205, 2791, 3593, 4617, 5757, 7263, 7840],
        [1832, 3631, 4688, 5732, 7286, 7708, 7860],
    ],
]
"""Cycles in which each core retires the collectives, in order: without stalls, and with some."""

AWAKE = [[6504, 6525, 6546, 6567, 6587], [7763, 7784, 7805, 7826, 7846]]
"""Cycles with a clock edge of each core, without and with stalls."""

BUSY = [[6503, 6524, 6545, 6566, 6586], [7762, 7783, 7804, 7825, 7845]]

NAMED = [[190131, 88351, 61683, 118615, 132929], [250896, 128644, 82050, 177603, 187337]]
"""Checksum, per core, of the cores for which it waits: see `machine.Outcome.named`."""


def test_cycles():
    memories = np.random.default_rng(1).integers(0, 256, (CORES, HBM_BYTES), np.uint8)
    outcomes = [run_collectives(programs_of(*COLLECTIVES.values()), memories, stall=stall) for stall in (0, 60)]
    assert not any(outcome.errors for outcome in outcomes)
    assert [outcome.retired for outcome in outcomes] == ENDS
    assert [outcome.awake for outcome in outcomes] == AWAKE
    assert [outcome.named for outcome in outcomes] == NAMED
    assert [[counters["busy"] for counters in outcome.counters] for outcome in outcomes] == BUSY


NAMED_SLOW = [57811, 29890, 4282, 36722, 4707]
SLOW = all_reduce(Group(0, 1, CORES), count=9000, dst=1 << 16, chunk=32)
NAMES = ("sent", "received", "wait_ready", "wait_credit", "wait_link", "wait_net", "wait_load", "wait_store")

COUNTED = [
    [(16638, 16638, 4621, 0, 5089, 8700, 5837, 0), (16224, 16224, 3783, 0, 4920, 6852, 5759, 0)],
    [(18048, 18048, 105, 868, 65594, 329, 10408, 2441), (17952, 17952, 104, 821, 63951, 324, 10068, 2256)],
]
"""Sums over all cores of the counters of each channel: of all kinds with some stalls, and of a long one with many."""


def test_counters():
    memories = np.random.default_rng(1).integers(0, 256, (CORES, HBM_BYTES), np.uint8)
    for (collectives, stall), expected in zip(((COLLECTIVES.values(), 60), ([SLOW], 200)), COUNTED, strict=True):
        outcome = run_collectives(programs_of(*collectives), memories, stall=stall)
        counters = outcome.counters
        assert stall != 200 or outcome.named == NAMED_SLOW
        for channel, counted in enumerate(expected):
            own = [counter[f"channel{channel}"] for counter in counters]
            assert {name: sum(one[name] for one in own) for name in own[0]} == dict(zip(NAMES, counted, strict=True))

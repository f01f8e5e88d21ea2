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
        [1430, 3719, 4730, 5510, 5901],
        [1390, 1893, 2391, 3009, 3826, 4730, 5531, 5759, 5922],
        [1382, 1880, 2383, 3001, 3818, 4696, 5514, 5943],
        [1426, 1797, 2284, 2947, 3764, 4704, 5507, 5964],
        [1438, 2982, 3799, 4710, 5487, 5832, 5984],
    ],
    [
        [1805, 4469, 5634, 6697, 7150],
        [1769, 2296, 2906, 3632, 4581, 5665, 6716, 7007, 7171],
        [1777, 2268, 2884, 3606, 4612, 5651, 6668, 7192],
        [1789, 2189, 2785, 3576, 4530, 5679, 6673, 7214],
        [1811, 3615, 4598, 5633, 6670, 7081, 7234],
    ],
]
"""Cycles in which each core retires the collectives, in order: without stalls, and with some."""

AWAKE = [[5887, 5908, 5929, 5950, 5970], [7136, 7157, 7178, 7200, 7220]]
"""Cycles with a clock edge of each core, one more than its busy cycles, without and with stalls."""

NAMED = [[160559, 51063, 68725, 82662, 95703], [218821, 90651, 86876, 137723, 152803]]
"""Checksum, per core, of the cores for which it waits: see `machine.Outcome.named`."""

SLOW = all_reduce(Group(0, 1, CORES), count=9000, dst=1 << 16, chunk=32)
NAMES = ("sent", "received", "wait_ready", "wait_credit", "wait_link", "wait_net", "wait_load", "wait_store")

COUNTED = [
    [(16638, 16638, 4664, 0, 5099, 8338, 1656, 0), (16224, 16224, 3851, 0, 4948, 6474, 1766, 0)],
    [(18048, 18048, 105, 863, 65594, 329, 1687, 2445), (17952, 17952, 104, 821, 63964, 324, 1984, 2256)],
]
"""Sums over all cores of the counters of each channel: of all kinds with some stalls, and of a long one with many."""


def test_cycles_and_counters():
    memories = np.random.default_rng(1).integers(0, 256, (CORES, HBM_BYTES), np.uint8)
    outcomes = [run_collectives(programs_of(*COLLECTIVES.values()), memories, stall=stall) for stall in (0, 60)]
    assert not any(outcome.errors for outcome in outcomes)
    assert [outcome.retired for outcome in outcomes] == ENDS
    assert [outcome.awake for outcome in outcomes] == AWAKE
    assert [outcome.named for outcome in outcomes] == NAMED
    assert [[counters["busy"] + 1 for counters in outcome.counters] for outcome in outcomes] == AWAKE
    slow = run_collectives(programs_of(SLOW), memories, stall=200)
    assert slow.named == [57875, 29890, 4282, 36320, 4707]
    for outcome, channels in zip((outcomes[1], slow), COUNTED, strict=True):
        for channel, counts in enumerate(channels):
            own = [counters[f"channel{channel}"] for counters in outcome.counters]
            assert {name: sum(one[name] for one in own) for name in own[0]} == dict(zip(NAMES, counts, strict=True))

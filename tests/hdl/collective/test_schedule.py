from collections import defaultdict
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from neuroncore_rtl.hdl.collective import schedule
from neuroncore_rtl.hdl.collective.ops import LoadOp, ReceiveOp, SendOp
from neuroncore_rtl.spec.isa.collective import GRANULE
from neuroncore_rtl.spec.isa.collective import CollectiveKind as K
from tests.hdl.collective.jobs import job_bits, operations
from tests.hdl.simulation import WARM_UP, slow
from tests.hdl.streams import Played, play
from tests.oracles.collectives import large_collective, random_collective

SHAPES = {"loads": LoadOp, "receives": ReceiveOp, "send_loads": LoadOp, "sends": SendOp}


def assert_operation(name, payload, one, want):
    op = SHAPES[name].from_bits(payload)
    assert {part: op[part] for part in want} == want, f"one of the {name} of {one}"
    assert name != "receives" or op.first_element % GRANULE == 0


def check(channel, jobs, stall=0.0, hold=None) -> Played:
    wanted = [(one, operations(one, channel)) for one in jobs]
    expected = {name: [(one, op) for one, lists in wanted for op in lists[name]] for name in SHAPES}
    counts = {name: len(ops) for name, ops in expected.items()}
    dut, inputs = schedule.Schedule(channel), {"i": [job_bits(one) for one in jobs]}
    limit = 100 * len(jobs) + 10 * sum(counts.values())
    options = {"stall": stall, "hold": hold, "limit": limit, "seed": 1618, "warm_up": WARM_UP}
    played = play(dut, inputs, counts, watch=(dut.busy,), **options)
    for name in SHAPES:
        for payload, (one, want) in zip(played.payloads[name], expected[name], strict=True):
            assert_operation(name, payload, one, want)
        ends = np.cumsum([len(lists[name]) for _, lists in wanted])
        for taken, end in zip(played.cycles["i"], ends, strict=True):
            last = played.cycles[name][end - 1] if end else 0
            assert all(busy for (busy,) in played.watched[taken + 1 : last + 1])
    assert played.watched[-1] == (0,)
    return played


def jobs_of(rng, kinds, each):
    ranks = [2 + number % 4 if number % 3 else None for number in range(each)]
    return [random_collective(rng, kind=kind, ranks=count) for kind, count in product(kinds, ranks)]


@pytest.mark.parametrize("stall", [*slow(0.0), 0.5])
@pytest.mark.parametrize("channel", [0, *slow(1)])
def test_operations_are_those_of_the_description(channel, stall, rng):
    check(channel, jobs_of(rng, K, 14), stall)


@pytest.mark.parametrize("channel", [0, 1])
def test_longest_blocks(channel, rng):
    options = {"ranks": 64, "count": (1 << 30) - 1, "chunk": 32}
    jobs = [random_collective(rng, kind=kind, **options) for kind in (K.ALL_TO_ALL, K.SEND, K.RECEIVE)]
    check(channel, [replace(one, pitch=(1 << 32) - 64) for one in jobs])


@pytest.mark.parametrize("channel", [0, 1])
def test_lengths_ranks_and_roots_where_one_bit_decides(channel, rng):
    jobs = [random_collective(rng, kind=kind, count=count) for kind in K for count in (64, 65, 96, 97, 129)]
    jobs += [random_collective(rng, kind=K.ALL_TO_ALL, ranks=(2 << bit) + few) for bit in range(5) for few in (0, 1)]
    for root in [1 << bit for bit in range(6)] + rng.integers(64, size=20).tolist():
        one = random_collective(rng, kind=K.BROADCAST, ranks=64, count=65)
        jobs += [replace(one, root=root, rank=(root + distance) % 64) for distance in (-1, 0, 1)]
    check(channel, jobs)


def test_a_channel_without_a_part_takes_two_cycles(rng):
    played = check(1, [random_collective(rng, kind=K.ALL_REDUCE, count=count) for count in [1, *range(2, 32, 3), 32]])
    assert set(np.diff(played.cycles["i"])) == {2}


@pytest.mark.parametrize("channel", [*slow(0), 1])
def test_every_bit_of_an_address_in_the_first_rounds(channel, rng):
    for number in range(40):
        kind = [kind for kind in K if kind != K.BARRIER][number % 7]
        one = large_collective(rng, kind=kind, ranks=(2, 3, 5, 64)[number % 4])
        lists = operations(one, channel, rounds=60)
        played = play(schedule.Schedule(channel), {"i": [job_bits(one)]}, dict.fromkeys(SHAPES, 0), cycles=60)
        for name in SHAPES:
            for payload, want in zip(played.payloads[name], lists[name], strict=False):
                assert_operation(name, payload, one, want)
        assert played.payloads["receives"] or one.count < 1 << 10


@pytest.mark.parametrize("name", SHAPES)
def test_it_is_busy_while_any_operation_is_pending(name, rng):
    check(1, jobs_of(rng, (K.ALL_REDUCE, K.ALL_GATHER), 3), hold={name: lambda cycle: cycle < 200})


@pytest.mark.parametrize("channel", [0, 1])
def test_a_step_per_cycle(channel, rng):
    played = check(channel, [random_collective(rng, kind=K.ALL_REDUCE, ranks=8, count=8 * 32 * 20, chunk=1)])
    assert len(played.cycles["receives"]) == 14 * 10
    assert max(played.cycles[name][-1] for name in SHAPES) < 14 * 10 + 10 + 8


def test_neighbours_send_and_receive_the_same_segments(rng):
    for one in jobs_of(rng, [kind for kind in K if kind not in (K.SEND, K.RECEIVE)], 12):
        for channel in (0, 1):
            sent, received = defaultdict(list), defaultdict(list)
            for rank, core in enumerate(one.group.cores):
                lists = operations(replace(one, rank=rank), channel)
                for op in lists["sends"]:
                    sent[core, op["peer"]].append((op["elements"], op["wide"], op["new_peer"]))
                for op in filter(lambda op: op["net"], lists["receives"]):
                    received[op["peer"], core].append((op["elements"], op["wide_in"], op["new_peer"]))
            assert sent == received

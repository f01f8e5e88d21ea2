"""Two to five engines on an ideal network do what the golden model does: every kind, with and without pauses."""

import numpy as np
import pytest

from neuroncore_rtl.golden.collective.system import run
from neuroncore_rtl.spec.isa import Cause, Rule
from neuroncore_rtl.spec.isa.collective import SIGNATURE_FIELDS, Collective, CollectiveKind, Group
from tests.hdl.collective.machine import HBM_BYTES, Error, run_collectives
from tests.hdl.collective.programs import random_memories, random_programs

SEED = 8128

CORES, LINK_BYTES, HBM_BEAT = 5, 8, 16

K = CollectiveKind


def execute(programs, memories, **options):
    return run_collectives(programs, memories, link_bytes=LINK_BYTES, hbm_bytes=HBM_BEAT, **options)


def check(programs, memories, **options):
    """Run, and compare all of all memories, bit by bit."""
    outcome = execute(programs, memories, **options)
    assert not outcome.errors
    assert [len(retired) for retired in outcome.retired] == [len(programs[core]) for core in range(CORES)]
    wanted = {core: memory.copy() for core, memory in enumerate(memories)}
    run(programs, wanted, CORES)
    for core in range(CORES):
        differs = np.flatnonzero(outcome.memories[core] != wanted[core])
        assert not len(differs), f"core {core}: {len(differs)} bytes differ, the first at {differs[0]:#x}"
    return outcome


@pytest.mark.parametrize("kind", [k for k in K if k != K.RECEIVE])
def test_each_kind(kind, rng):
    check(random_programs(rng, CORES, 10, kind), random_memories(rng, CORES), stall=20)


@pytest.mark.parametrize(("stall", "latency", "delay"), [(0, 40, 10), (0, 1, 0), (100, 80, 3), (200, 20, 60)])
def test_all_kinds(stall, latency, delay, rng):
    programs, memories = random_programs(rng, CORES, 40), random_memories(rng, CORES)
    check(programs, memories, stall=stall, latency=latency, delay=delay)


def test_full_segments(rng):
    """Rings in which every segment is as long as can be, so that the buffers are full: nobody waits for ever."""
    programs, count, half = {core: [] for core in range(CORES)}, 2 * CORES * 1024 + 100, HBM_BYTES // 2
    for kind in (K.ALL_REDUCE, K.REDUCE_SCATTER, K.ALL_GATHER, K.ALL_TO_ALL, K.BROADCAST):
        elements = count if kind in (K.ALL_REDUCE, K.BROADCAST) else 3000
        for group in (Group(0, 1, CORES), Group(CORES - 1, -1, CORES)):
            for rank, core in enumerate(group.cores):
                instruction = Collective(
                    kind=kind, group=group, rank=rank, count=elements, dst=half, pitch=-(-elements * 4 // 64) * 64
                )
                programs[core].append(instruction)
    check(programs, random_memories(rng, CORES), stall=100)


def test_bandwidth(rng):
    """A long all-reduce of two ranks keeps both channels' flits close to one a cycle."""
    group, count = Group(0, 1, 2), 8192
    programs = {
        core: [Collective(kind=K.ALL_REDUCE, group=group, rank=core, count=count, dst=HBM_BYTES // 2)]
        for core in (0, 1)
    }
    programs |= {core: [] for core in range(2, CORES)}
    outcome = check(programs, random_memories(rng, CORES), latency=20)
    sent = outcome.counters[0]["channel0"]["sent"]
    assert sent == count // 2 * 4 // LINK_BYTES
    assert outcome.counters[0]["busy"] < sent + 32 * 32 * 4 // LINK_BYTES + 200  # and the first segment


def disagreement(core, field):
    return core | 1 + [name for name, _ in SIGNATURE_FIELDS].index(field) << 8


def test_two_that_disagree_both_say_so(rng):
    common = {"kind": K.ALL_REDUCE, "group": Group(0, 1, 2), "chunk": 2}
    for name, values in {"count": (100, 101), "op": (0, 1), "chunk": (2, 3), "dtype": (0, 2)}.items():
        programs = {
            core: [Collective(**common | {"rank": core, "count": 100, "dst": 4096} | {name: values[core]})]
            for core in (0, 1)
        }
        memories = random_memories(rng, CORES)
        outcome = execute(programs, memories)
        assert sorted(outcome.errors, key=lambda e: e.core) == [
            Error(core, 0, Cause.DISAGREE, disagreement(1 - core, name)) for core in (0, 1)
        ], name
        assert (outcome.memories == memories).all()
        assert outcome.peers == [None] * CORES


@pytest.mark.parametrize("kind", [K.SEND, K.BROADCAST])
def test_a_receiver_hears_of_it_from_its_sender(kind, rng):
    """Where data goes one way only the receiver cannot compare; what it gets is a refusal."""
    group = Group(3, -2, 2)
    sender = Collective(kind=kind, group=group, rank=0, root=1 if kind == K.SEND else 0, count=100)
    receiver = Collective(
        kind=K.RECEIVE if kind == K.SEND else kind, group=group, rank=1, root=0, count=132, dtype=2, dst=4096
    )
    outcome = execute({3: [sender], 1: [receiver]}, random_memories(rng, CORES))
    assert sorted(outcome.errors, key=lambda e: e.core) == [
        Error(1, 0, Cause.DISAGREE, disagreement(3, "dtype")),
        Error(3, 0, Cause.DISAGREE, disagreement(1, "dtype")),
    ]


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_broadcasts_of_different_roots(ranks, rng):
    """Whoever is the odd one out: its neighbours and it say so, or at least two that are next to each other."""
    group = Group(0, 1, ranks)
    for odd in range(ranks):
        beside = (odd + 1) % ranks
        for root, other, count in ((0, ranks - 1, 40), (odd, beside, 1), (beside, odd, 1)):  # of one on channel 0 alone
            common = {"kind": K.BROADCAST, "group": group, "count": count, "dst": 4096}
            roots = {rank: other if rank == odd else root for rank in range(ranks)}
            programs = {rank: [Collective(**common, rank=rank, root=roots[rank])] for rank in roots}
            outcome = execute(programs, random_memories(rng, CORES))
            assert odd in {error.core for error in outcome.errors} and len(outcome.errors) > 1
            for error in outcome.errors:
                neighbours = [disagreement((error.core + step) % ranks, "root") for step in (1, -1)]
                assert (error.number, error.cause) == (0, Cause.DISAGREE) and error.detail in neighbours
                assert odd in (error.core, error.detail & 0xFF)


@pytest.mark.parametrize("kind", [K.SEND, K.RECEIVE])
@pytest.mark.parametrize("count", [1, 100])
def test_both_send_or_both_receive(kind, count, rng):
    group = Group(3, -2, 2)
    programs = {
        core: [Collective(kind=kind, group=group, rank=rank, root=1 - rank, count=count, dst=4096)]
        for rank, core in enumerate(group.cores)
    }
    outcome = execute(programs, random_memories(rng, CORES))
    assert sorted(outcome.errors, key=lambda e: e.core) == [
        Error(core, 0, Cause.DISAGREE, disagreement(4 - core, "kind")) for core in (1, 3)
    ]


@pytest.mark.parametrize("stride", [1, -1])
def test_each_rank_of_a_broadcast_may_cut_it_otherwise(stride, rng):
    group = Group(0 if stride > 0 else CORES - 1, stride, CORES)
    programs = {
        core: [
            Collective(kind=K.BROADCAST, group=group, rank=rank, count=3001, dtype=1, dst=1 << 16, root=2, chunk=chunk)
        ]
        for rank, (core, chunk) in enumerate(zip(group.cores, (5, 32, 1, 2, 31), strict=True))
    }
    check(programs, random_memories(rng, CORES), stall=20)


def test_a_broken_rule_is_reported_in_its_turn(rng):
    group = Group(0, 1, 2)
    good = [Collective(kind=K.ALL_GATHER, group=group, rank=core, count=64, dst=4096, pitch=256) for core in (0, 1)]
    bad = Collective(kind=K.ALL_GATHER, group=group, rank=0, count=64, dst=4100, pitch=256)
    outcome = execute({0: [good[0], bad], 1: [good[1]]}, random_memories(rng, CORES))
    assert outcome.errors == [Error(0, 1, Rule.ALIGNMENT, 0)]
    assert [len(retired) for retired in outcome.retired[:2]] == [1, 1]


@pytest.mark.parametrize("side", ["src", "dst"])
def test_memory_that_answers_with_an_error(side, rng):
    places = {"src": 0, "dst": 4096} | {side: HBM_BYTES - 512}
    programs = {
        core: [Collective(kind=K.BROADCAST, group=Group(0, 1, 2), rank=core, count=1000, **places)] for core in (0, 1)
    }
    outcome = execute(programs, random_memories(rng, CORES))
    who = {error.core for error in outcome.errors}
    assert who == ({0} if side == "src" else {0, 1})
    assert all((error.number, error.cause, error.detail) == (0, Cause.AXI, 0) for error in outcome.errors)
    assert not outcome.retired[0]


def hang(programs, rng):
    """Return whom each core waits for when nothing moves any more."""
    outcome = execute(programs, random_memories(rng, CORES), limit=3000, hangs=True)
    assert not outcome.errors
    return outcome.peers


@pytest.mark.parametrize("stride", [1, -1])
@pytest.mark.parametrize("absent", range(CORES))
def test_a_rank_that_does_not_come_is_named(absent, stride, rng):
    """By whom it sends to, or receives from; and whoever waits, waits for one that waits, or for the absent one."""
    group = Group(0 if stride > 0 else CORES - 1, stride, CORES)
    common = {"kind": K.ALL_REDUCE, "group": group, "count": 3000, "dst": 1 << 16, "chunk": 5}
    programs = {core: [Collective(**common, rank=rank)] for rank, core in enumerate(group.cores) if core != absent}
    peers = hang(programs, rng)
    assert peers[absent] is None
    assert all(peers[core] in group.cores and peers[core] != core for core in programs)
    assert {(absent + 1) % CORES, (absent - 1) % CORES} <= {core for core in programs if peers[core] == absent}


def test_nobody_is_waited_for_by_one_that_is_done(rng):
    send = Collective(kind=K.SEND, group=Group(1, 2, 2), rank=0, root=1, count=100)
    receive = Collective(kind=K.RECEIVE, group=Group(1, 2, 2), rank=1, root=0, count=100, dst=4096)
    assert hang({1: [send], 3: [receive] * 2}, rng) == [None, None, None, 1, None]
    assert hang({1: [send] * 2, 3: [receive]}, rng) == [None, 3, None, None, None]
    assert execute({1: [send], 3: [receive]}, random_memories(rng, CORES)).peers == [None] * CORES


@pytest.mark.parametrize(("dead", "direction"), [(0b1, 0), (0b1000, 3), (0b0110, 1)])
def test_a_link_that_dies_while_a_collective_is_under_way(dead, direction, rng):
    group = Group(0, 1, 2)
    programs = {
        core: [Collective(kind=K.ALL_GATHER, group=group, rank=core, count=640, dst=4096, pitch=2560)] * 3
        for core in (0, 1)
    }
    memories = random_memories(rng, CORES)
    _, second, _ = execute(programs, memories).retired[0]
    outcome = execute(programs, memories, dead=(dead, second - 50))
    assert outcome.errors == [Error(0, 1, Cause.LINK, direction)]
    assert len(outcome.retired[0]) == 1
    assert outcome.peers[0] is None and outcome.peers[1] == 0


def test_a_dead_link_is_no_error_of_who_has_nothing_to_do(rng):
    """But of what begins afterwards."""
    group = Group(0, 1, 2)
    one = [Collective(kind=K.BARRIER, group=group, rank=core) for core in (0, 1)]
    bad = Collective(kind=K.BARRIER, group=group, rank=1)
    memories = random_memories(rng, CORES)
    (end,) = execute({0: one[:1], 1: one[1:]}, memories).retired[0]
    outcome = execute({0: one[:1], 1: one[1:]}, memories, dead=(15, end + 1))
    assert not outcome.errors and [len(retired) for retired in outcome.retired[:2]] == [1, 1]
    outcome = execute({0: one[:1], 1: one[1:]}, memories, dead=(15, 0))
    assert outcome.errors == [Error(0, 0, Cause.LINK, 0)]
    assert execute({0: [bad]}, memories, dead=(15, 0)).errors == [Error(0, 0, Rule.STATE, 0)]

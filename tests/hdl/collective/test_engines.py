from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from neuroncore_rtl.golden.collective.system import execute_lists
from neuroncore_rtl.run.harness.collective_faults import CollectiveFault
from neuroncore_rtl.spec.isa import Cause, Rule, collective
from tests.hdl.collective.machine import CORES, FIRST, HBM_BYTES, LINK_BYTES, run_collectives
from tests.hdl.simulation import slow
from tests.oracles.collectives import on_every_rank, random_collective

SEED = 8128
K, T = collective.CollectiveKind, collective.CollectiveType
Group = collective.Group
PAIR, APART, UP, DOWN = Group(0, 1, 2), Group(3, -2, 2), Group(0, 1, CORES), Group(CORES - 1, -1, CORES)


@pytest.fixture
def memories(rng):
    memories = rng.integers(0, 256, (CORES, HBM_BYTES), np.uint8)
    words = memories.view("<u2")
    exponents = rng.integers(118, 134, words.shape, np.uint16) << 7
    words[:] = np.where(rng.random(words.shape) < 0.97, words & 0x807F | exponents, words)
    return memories


def programs_of(*collectives):
    programs = {core: [] for core in range(CORES)}
    for one in collectives:
        for part in on_every_rank(one):
            programs[part.core].append(part)
    return programs


def random_programs(rng, operations):
    programs, kinds = programs_of(), [kind for kind in K if kind != K.RECEIVE]
    for _ in range(operations):
        ranks = int(rng.integers(2, CORES + 1))
        one = random_collective(rng, cores=CORES, kind=K(int(rng.choice(kinds))), ranks=ranks, most=2000)
        in_place = one.kind == K.ALL_REDUCE and rng.random() < 0.3
        for part in on_every_rank(one):
            src, dst = (int(half) + 64 * int(rng.integers(100)) for half in rng.permutation((0, HBM_BYTES // 2)))
            programs[part.core].append(replace(part, src=src, dst=src if in_place else dst))
    return programs


def all_reduce(group=PAIR, **options):
    fields = {"kind": K.ALL_REDUCE, "group": group, "rank": 0, "count": 100, "dst": 4096}
    return collective.Collective(**fields | options)


def check(programs, memories, base=0, **options):
    placed = {
        core: [replace(one, src=base + one.src, dst=base + one.dst) for one in program]
        for core, program in programs.items()
    }
    outcome = run_collectives(placed, memories, base=base, **options)
    assert not outcome.errors
    assert [len(retired) for retired in outcome.retired] == [len(programs[core]) for core in range(CORES)]
    wanted = dict(enumerate(memories.copy()))
    execute_lists(programs, wanted, CORES)
    for core, memory in wanted.items():
        np.testing.assert_array_equal(outcome.memories[core], memory, f"core {core}")
    return outcome


@pytest.mark.parametrize(
    ("stall", "latency", "delay", "base"),
    [(0, 40, 10, (1 << 40) - HBM_BYTES), (0, 1, 0, 0x55_5554_0000), (100, 80, 3, 0xAA_AAA8_0000), (200, 20, 60, 0)],
)
def test_all_kinds(stall, latency, delay, base, rng, memories):
    check(random_programs(rng, 40), memories, base, stall=stall, latency=latency, delay=delay)


def test_rings_of_the_longest_segments_do_not_deadlock(memories):
    counts = dict.fromkeys((K.ALL_REDUCE, K.BROADCAST), 2 * CORES * 1024 + 100)
    counts |= dict.fromkeys((K.REDUCE_SCATTER, K.ALL_GATHER, K.ALL_TO_ALL), 3000)
    collectives = [
        all_reduce(group, kind=kind, count=count, dst=HBM_BYTES // 2, pitch=-(-count * 4 // 64) * 64)
        for kind, count in counts.items()
        for group in (UP, DOWN)
    ]
    check(programs_of(*collectives), memories, stall=100)


def test_a_long_all_reduce_uses_the_links_at_a_flit_per_cycle(memories):
    count = 8192
    outcome = check(programs_of(all_reduce(count=count, dst=HBM_BYTES // 2)), memories, latency=20)
    sent = outcome.counters[0]["channel0"]["sent"]
    assert sent == count // 2 * 4 // LINK_BYTES
    assert outcome.counters[0]["busy"] < sent + 32 * 32 * 4 // LINK_BYTES + 200  # the second term is the first segment


def disagreement(core, other, field):
    place = 1 + [name for name, _ in collective.SIGNATURE_FIELDS].index(field)
    return CollectiveFault(core, Cause.DISAGREE, 0, FIRST + other | place << 8)


@pytest.mark.parametrize(("field", "other"), [("count", 101), ("op", 1), ("chunk", 3), ("dtype", T.INT32)])
def test_both_of_two_cores_report_a_disagreement(field, other, memories):
    one = all_reduce(chunk=2)
    programs = {0: [one], 1: [replace(one, rank=1, **{field: other})]}
    outcome, slow = (run_collectives(programs, memories, stall=stall) for stall in (0, 224))
    assert outcome.errors == [disagreement(0, 1, field), disagreement(1, 0, field)]
    assert (outcome.memories == memories).all()
    assert outcome.peers == [None] * CORES
    assert (slow.errors, slow.sent) == (outcome.errors, outcome.sent)


@pytest.mark.parametrize("kind", [K.SEND, K.BROADCAST])
def test_a_receiver_is_refused_by_its_sender(kind, memories):
    """Data are sent only from the sender to the receiver, so only the sender compares; it sends a refusal."""
    sender, receiver = on_every_rank(all_reduce(APART, kind=kind, root=int(kind == K.SEND)))
    receiver = replace(receiver, count=132, dtype=T.INT32)
    outcome = run_collectives({3: [sender], 1: [receiver]}, memories)
    assert outcome.errors == [disagreement(1, 3, "dtype"), disagreement(3, 1, "dtype")]


@pytest.mark.parametrize("ranks", [*slow(2, 3), 5])
def test_broadcasts_of_different_roots(ranks, memories):
    """The rank with another root and its neighbours report the disagreement, or at least two adjacent ranks do."""
    for odd in range(ranks):
        neighbour = (odd + 1) % ranks
        # One element uses only channel 0.
        for root, other, count in ((0, ranks - 1, 40), (odd, neighbour, 1), (neighbour, odd, 1)):
            programs = programs_of(all_reduce(Group(0, 1, ranks), kind=K.BROADCAST, count=count, root=root))
            programs[odd] = [replace(programs[odd][0], root=other)]
            errors = run_collectives(programs, memories).errors
            cores = {error.core for error in errors}
            # With one element, both neighbours report it.
            assert cores == {odd, neighbour, (odd - 1) % ranks} if count == 1 else odd in cores and len(cores) > 1
            for error in errors:
                neighbours = [(error.core + step) % ranks for step in (1, -1)]
                assert error in [disagreement(error.core, neighbour, "root") for neighbour in neighbours]
                assert odd in (error.core, (error.detail & 0xFF) - FIRST)


@pytest.mark.parametrize("kind", [K.SEND, K.RECEIVE])
@pytest.mark.parametrize("count", [1, 100])
def test_both_send_or_both_receive(kind, count, memories):
    one = all_reduce(APART, kind=kind, root=1, count=count)
    outcome = run_collectives({3: [one], 1: [replace(one, rank=1, root=0)]}, memories)
    assert outcome.errors == [disagreement(1, 3, "kind"), disagreement(3, 1, "kind")]


@pytest.mark.parametrize("group", [UP, DOWN])
def test_ranks_of_a_broadcast_may_differ_in_their_chunks(group, memories):
    one = all_reduce(group, kind=K.BROADCAST, count=3001, dtype=T.BF16, dst=1 << 16, root=2)
    ranks = [replace(rank, chunk=chunk) for rank, chunk in zip(on_every_rank(one), (5, 32, 1, 2, 31), strict=True)]
    check({rank.core: [rank] for rank in ranks}, memories, stall=20)


def test_a_broken_rule_is_reported_after_earlier_instructions_have_retired(memories):
    programs = programs_of(all_reduce(kind=K.ALL_GATHER, count=64, pitch=256))
    programs[0].append(replace(programs[0][0], dst=4100))
    outcome = run_collectives(programs, memories)
    assert outcome.errors == [CollectiveFault(0, Rule.ALIGNMENT, 1, 0)]
    assert [len(retired) for retired in outcome.retired[:2]] == [1, 1]


@pytest.mark.parametrize(("side", "who"), [("src", [0]), ("dst", [0, 1])])
@pytest.mark.parametrize(("count", "within"), [(1000, 512), (1000, 2048), (1, 0)], ids=["both", "channel1", "channel0"])
def test_error_responses_of_hbm(side, who, count, within, memories):
    broadcast = all_reduce(kind=K.BROADCAST, count=count, **{side: HBM_BYTES - within})
    outcome = run_collectives(programs_of(broadcast), memories)
    assert outcome.errors == [CollectiveFault(core, Cause.AXI, 0, 0) for core in who]
    assert not outcome.retired[0]


@pytest.mark.parametrize("late", range(1, 7))
def test_flits_for_a_core_without_an_instruction_are_kept(late, memories):
    check(programs_of(all_reduce(Group(0, 1, 3)), all_reduce(Group(2, -1, 3), src=8192)), memories, late=(late, 300))


@pytest.mark.parametrize("slow", [{"stall": 224}, {"rate": 256}])
def test_a_transfer_retires_when_all_flits_are_sent_and_received(slow, memories):
    # The network stalls, or HBM delivers one byte per cycle; each channel sends a flit besides its data.
    counts = np.array([40, 64, 96, 64, *(1 + 7 * n for n in range(25))])
    sends = [all_reduce(kind=K.SEND, root=1, count=c, src=64 * c, dst=1 << 16) for c in counts.tolist()]
    outcome = check(programs_of(*sends), memories, **slow)
    sent, announced = np.cumsum(-(-counts * 4 // LINK_BYTES)), np.cumsum(1 + (counts > collective.GRANULE))
    assert outcome.flits[0] == (sent + announced).tolist()
    # The sender has announced the next transfer by then.
    assert outcome.taken[1] == (sent + np.append(announced[1:], announced[-1])).tolist()


def test_a_transfer_of_many_thousand_elements(memories):
    check(programs_of(all_reduce(kind=K.SEND, root=1, count=60_000, dtype=T.BF16, src=0, dst=64)), memories)


def hang(programs, memories):
    outcome = run_collectives(programs, memories, limit=3000)
    assert not outcome.errors
    return outcome.peers


@pytest.mark.parametrize("group", [UP, DOWN])
@pytest.mark.parametrize("absent", range(CORES))
def test_an_absent_rank_is_named(absent, group, memories):
    programs = programs_of(all_reduce(group, count=3000, dst=1 << 16, chunk=5))
    del programs[absent]
    peers = hang(programs, memories)
    assert peers[absent] is None
    assert all(peers[core] in group.cores and peers[core] != core for core in programs)
    assert {(absent + 1) % CORES, (absent - 1) % CORES} <= {core for core in programs if peers[core] == absent}


@pytest.mark.parametrize(("sends", "receives", "peers"), [(1, 2, {3: 1}), (2, 1, {1: 3}), (1, 1, {})])
def test_a_core_without_an_instruction_waits_for_no_core(sends, receives, peers, memories):
    send, receive = on_every_rank(all_reduce(Group(1, 2, 2), kind=K.SEND, root=1))
    assert hang({1: [send] * sends, 3: [receive] * receives}, memories) == [peers.get(core) for core in range(CORES)]


@pytest.mark.parametrize(("dead", "direction"), [(0b1, 0), (0b1000, 3), (0b0110, 1)])
def test_a_link_that_fails_during_a_collective(dead, direction, memories):
    programs = programs_of(*[all_reduce(kind=K.ALL_GATHER, count=640, pitch=2560)] * 3)
    _, second, _ = run_collectives(programs, memories).retired[0]
    outcome = run_collectives(programs, memories, dead=(dead, second - 50))
    assert outcome.errors == [CollectiveFault(0, Cause.LINK, 1, direction)]
    assert len(outcome.retired[0]) == 1
    assert outcome.peers[0] is None and outcome.peers[1] == 0


def test_the_first_error_stays(memories):
    for cause, options in ((Cause.LINK, {"latency": 200, "dead": (1, 100)}), (Cause.AXI, {})):
        outcome = run_collectives({0: [all_reduce(src=HBM_BYTES - 64)]}, memories, limit=3000, **options)
        assert outcome.errors == [CollectiveFault(0, cause, 0, 0)]


def test_a_dead_link_is_an_error_only_of_later_collectives(memories):
    programs = programs_of(all_reduce(kind=K.BARRIER))
    (end,) = run_collectives(programs, memories).retired[0]
    check(programs, memories, dead=(15, end + 1))
    assert run_collectives(programs, memories, dead=(15, 0)).errors == [CollectiveFault(0, Cause.LINK, 0, 0)]
    assert run_collectives({0: programs[1]}, memories, dead=(15, 0)).errors == [CollectiveFault(0, Rule.STATE, 0, 0)]


@pytest.mark.parametrize("network", [{}, {"stall": 200}])
def test_a_sender_retires_after_the_token(network, memories):
    """With a long latency, all data are sent before the token arrives on either channel.

    Barriers with a third core make the receiver ready before the sender.
    """
    counts = [*(2 * collective.GRANULE,) * 40, *(1, 2, collective.GRANULE + 1) * 2]
    barrier = all_reduce(Group(0, 2, 2), kind=K.BARRIER)
    pairs = [(barrier, all_reduce(kind=K.SEND, root=1, count=count, dst=1 << 16)) for count in counts]
    outcome = check(programs_of(*chain(*pairs)), memories, latency=1, delay=100, **network)
    # Flits received: READY and the token on each channel with data, READY and a beat of each barrier, and the READY of
    # the next collective.
    taken = np.cumsum([2 * (1 + (count > collective.GRANULE)) + 2 for count in counts]) + 1
    taken[-1] -= 1
    assert outcome.taken[0][1::2] == taken.tolist()

"""Cores of an instance on golden: collectives, deadlocks, errors."""

from dataclasses import replace

import numpy as np
import pytest

from neuroncore_rtl.golden.collective import execute_lists as run_lists
from neuroncore_rtl.golden.core import Core, CoreError, engines, network, run_instance
from neuroncore_rtl.kernels.library.collectives import collectives_program
from neuroncore_rtl.kernels.program import Program, build_image
from neuroncore_rtl.spec import instance, isa
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.isa import Cause, Engine, Record, Rule, Update
from neuroncore_rtl.spec.isa.collective import COLLECTIVE_BITS, SIGNATURE_FIELDS, Collective, CollectiveType, Group
from neuroncore_rtl.spec.isa.collective import CollectiveKind as K
from neuroncore_rtl.tb.stimulus.collective_programs import random_workload
from tests.oracles.copies import word_copy
from tests.run.harness.core_images import ASLEEP, LATE, NUMBER, hand_image, watched

SEED = 5040
INSTANCE = instance.Instance(chips=2, core=PRESETS["tiny"])
CONFIG = INSTANCE.core
QUEUE = isa.collective_queue(CONFIG)
BASE = 1 << 15
ALL = Group(0, 1, 4)


def run(programs, contents=None, changed=None, order=None):
    programs = [p if isinstance(p, Program) else collectives_program(CONFIG, p, BASE) for p in programs]
    images = [watched(program, limit=3000) for program in programs]
    memories = np.zeros((len(images), max(image.base + len(image.data) for image in images)), np.uint8)
    if contents is not None:
        memories[:, : contents.shape[1]] = contents
    for core, (image, memory) in enumerate(zip(images, memories, strict=True)):
        image.store(memory)
        if core in (changed or {}):
            record = Record(instruction=changed[core]).encode(CONFIG)
            memory[first_of(image) : first_of(image) + isa.RECORD_BYTES] = np.frombuffer(record, np.uint8)
    return run_instance(CONFIG, memories, bases=[BASE] * CONFIG.cores, order=order), images


def first_of(image):
    return image.blocks[0].address


def all_reduce(rank, group=ALL, **more):
    return Collective(**{"kind": K.ALL_REDUCE, "group": group, "rank": rank, "count": 100, "dst": 4096, **more})


def together():
    return [[all_reduce(core)] for core in range(4)]


def errors(outcomes):
    return [outcome.error and (outcome.error.cause, outcome.error.detail) for outcome in outcomes]


def stuck(core):
    return Cause.STUCK, 1 << 8 | core


def test_lists_of_collectives_do_what_they_do_without_cores(rng):
    for _ in range(3):
        workload = random_workload(rng, INSTANCE, 12, 1 << 12)
        expected = workload.memories.copy()
        run_lists(workload.lists, dict(enumerate(expected)), CONFIG.cores)
        lists = [workload.lists.get(core, []) for core in range(CONFIG.cores)]
        for order in (None, rng):
            outcomes, _ = run(lists, workload.memories, order=order)
            assert [(outcome.exit_code, outcome.error) for outcome in outcomes] == [(0, None)] * CONFIG.cores
            found = np.stack([outcome.hbm[: expected.shape[1]] for outcome in outcomes])
            assert np.array_equal(found, expected) and (expected != workload.memories).any()
            assert [len(outcome.records) for outcome in outcomes] == [len(some) for some in lists]


def cases(arguments, records):
    images = [
        hand_image(CONFIG, 0, [(QUEUE, block)], case=number, limit=10_000, more=[cycles])
        for (number, cycles), block in zip(arguments, records, strict=True)
    ]
    return run_instance(CONFIG, [image.memory() for image in images])


def barriers():
    collectives = (Collective(kind=K.BARRIER, group=ALL, rank=core) for core in range(CONFIG.cores))
    return [[Record(instruction=collective, updates=(Update(7),))] for collective in collectives]


def test_who_polls_and_who_sleeps_waits_for_who_is_late():
    outcomes = cases([(ASLEEP, 0), (LATE, 10), (LATE, 6_000), (ASLEEP, 0)], barriers())
    assert [outcome.error for outcome in outcomes] == [None] * 4
    assert outcomes[1].exit_code == outcomes[2].exit_code == 0
    assert all(6_000 < outcomes[core].exit_code < 6_500 for core in (0, 3))


def test_who_waits_too_long_reports_it_and_still_takes_part():
    outcomes = cases([(ASLEEP, 0), (LATE, 9_000), (LATE, 15_000), (ASLEEP, 0)], barriers())
    assert errors(outcomes) == [stuck(2), None, None, stuck(2)]
    assert all(10_000 < outcomes[core].exit_code < 10_500 for core in (0, 3))
    assert [len(outcome.records) for outcome in outcomes] == [0, 1, 1, 0]


def test_cores_know_their_numbers():
    assert [outcome.exit_code for outcome in cases([(NUMBER, 0)] * 4, [[]] * 4)] == [4 << 8 | core for core in range(4)]
    alone = PRESETS["tiny"]
    assert Core(alone, hand_image(alone, 0, [], case=NUMBER).memory()).run().exit_code == 1 << 8


def test_a_rule_stops_one_and_the_others_wait():
    outcomes, images = run(together(), changed={1: all_reduce(2)})  # the rank of another core
    assert outcomes[1].error == CoreError(Rule.STATE, QUEUE, first_of(images[1]), 0)
    assert errors(outcomes) == [stuck(1), (Rule.STATE, 0), stuck(1), stuck(1)]
    assert outcomes[0].exit_code == 0x4000_0000 | Cause.STUCK


@pytest.mark.parametrize(
    "field, change",
    [
        ("count", {"count": 99}),
        ("dtype", {"dtype": CollectiveType.INT32}),
        ("kind", {"kind": K.BROADCAST}),
        ("ranks", {"group": Group(0, 1, 3)}),
    ],
)
def test_neighbours_that_disagree_name_each_other(field, change):
    outcomes, _ = run([*together()[:2], [replace(all_reduce(2), **change)], *together()[3:]])
    place = [name for name, _ in SIGNATURE_FIELDS].index(field) + 1 << 8
    found = errors(outcomes)
    assert found[1] == (Cause.DISAGREE, place | 2)
    assert found[2][0] == Cause.DISAGREE and found[2][1] in (place | 1, place | 3)
    # In a group of three, core 2 is not the neighbour from which core 3 receives.
    assert found[3] == (stuck(2) if field == "ranks" else (Cause.DISAGREE, place | 2))
    assert found[0] == stuck(1)
    assert all(len(outcome.records) == 0 for outcome in outcomes)


def test_ranks_in_the_opposite_order_never_hear_of_each_other():
    outcomes, _ = run([*together()[:2], [all_reduce(1, Group(3, -1, 4))], *together()[3:]])
    assert {cause for cause, _ in errors(outcomes)} == {Cause.STUCK}


@pytest.mark.parametrize("kind", [K.SEND, K.RECEIVE])
def test_two_who_both_send_or_both_receive(kind):
    outcomes, _ = run([[all_reduce(core, kind=kind, root=1 - core)] for core in (0, 1)] + [[], []])
    assert errors(outcomes) == [(Cause.DISAGREE, 1 << 8 | 1), (Cause.DISAGREE, 1 << 8), None, None]


def test_who_waits_for_one_that_waits_for_another():
    """Core 0 would send to core 1, which would send to core 2, which has no collective."""
    outcomes, _ = run([[all_reduce(core, kind=K.SEND, root=core + 1)] for core in (0, 1)] + [[], []])
    assert errors(outcomes) == [stuck(1), stuck(2), None, None]


def test_memory_ends():
    end = len(run(together())[0][0].hbm)
    places = {1: end - 384, 2: end - 448}  # for 400 bytes
    outcomes, _ = run(together(), changed={core: all_reduce(core, src=src) for core, src in places.items()})
    assert errors(outcomes) == [stuck(1), (Cause.AXI, 0), stuck(1), stuck(1)]


def test_a_stuck_collective_is_named_before_who_waits_for_it():
    """Core 3's first copy exceeds HBM, so core 3 never joins; the others' copies wait for their collectives."""
    programs = []
    for core in range(4):
        program = Program(CONFIG, BASE, core=core)
        program.append(word_copy(1 << 30 if core == 3 else 8192, 0), queue=3)
        program.append(all_reduce(core))
        program.append(word_copy(4096, 8192), queue=3)
        assert [len(entry.waits) for entry in program.entries] == [0, 1, 1]
        programs.append(program)
    outcomes, images = run(programs)
    assert errors(outcomes) == [stuck(3)] * 3 + [(Cause.AXI, 0)]
    assert [(outcome.error.queue, outcome.error.address) for outcome in outcomes[:3]] == [
        (QUEUE, images[core].blocks[1].address) for core in range(3)
    ]


def test_a_core_that_never_comes_is_named():
    outcomes, _ = run([*together()[:3], []])
    assert errors(outcomes) == [stuck(3)] * 3 + [None]
    assert [outcome.exit_code for outcome in outcomes] == [0x4000_0000 | Cause.STUCK] * 3 + [0]


def test_a_core_of_an_instance_that_runs_alone_waits_for_ever():
    image = build_image(collectives_program(CONFIG, [all_reduce(0)], BASE))
    assert Core(CONFIG, image.memory()).run(BASE).error.detail == 1 << 8 | 1


def test_memories_are_those_of_all_cores():
    with pytest.raises(ValueError, match="memories must have one entry for each of 4 cores, not 3"):
        run_instance(CONFIG, np.zeros((3, 64), np.uint8))


def test_whatever_a_record_says_is_executed_or_refused(rng):
    outcomes = []
    for _ in range(600):
        body = replace(all_reduce(0), kind=K(int(rng.integers(len(K)))), root=1, pitch=512).encode()
        body ^= int(rng.integers(16)) << 9  # any code of op and dtype, undefined ones included
        for bit in rng.integers(COLLECTIVE_BITS, size=rng.integers(4)):
            body ^= 1 << int(bit)
        try:
            outcomes.append(engines.Engines(CONFIG, np.zeros(BASE, np.uint8)).execute(Engine.COLLECTIVE, body))
        except network.WaitingCores:
            outcomes.append(None)
    assert 60 < outcomes.count(None) < 500 and (Cause.AXI, 0) in outcomes and (Rule.STATE, 0) in outcomes

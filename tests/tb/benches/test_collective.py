# amaranth: UnusedElaboratable=no

"""Collectives on the RTL: random ones are golden's on both simulators, whatever befalls the wires; ranks that disagree,
links that die, memory that is not there and engines that are broken are named."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from neuroncore_rtl.golden.collective import run as golden_run
from neuroncore_rtl.golden.link.timing import Case, cycles_of
from neuroncore_rtl.hdl.link.end import window
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.instance import Instance
from neuroncore_rtl.spec.isa import Cause, Rule
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind, CollectiveType, Group
from neuroncore_rtl.tb.benches.collective_options import groups_of
from neuroncore_rtl.tb.benches.workloads import collective_events, span_of, workload_failures
from neuroncore_rtl.tb.harness.collective import CollectiveDevice, CollectiveWork
from neuroncore_rtl.tb.harness.disturbance import Cut
from neuroncore_rtl.tb.harness.link_view import FIRST_WINDOW, SAMPLES
from neuroncore_rtl.tb.harness.outcome import Ending
from neuroncore_rtl.tb.harness.run import run as run_device
from neuroncore_rtl.tb.sim import simulation
from neuroncore_rtl.tb.sim.settings import UsageError
from neuroncore_rtl.tb.stimulus.collective_programs import Workload, random_workload, side_by_side
from tests.hdl.tensor.engines import faulty
from tests.tb.harness.faulty_hbm import FaultyHbm

INSTANCE = Instance(chips=2, width=2, link_bytes=8, link_latency=1, core=PRESETS["tiny"].with_overrides(hbm_bytes=8))
ROOM = 1 << 20
ALL = Group(0, 1, 4)
PATIENCE = 5000

NONE = 0
WRONG, HASTY, SILENT, STRAY, LOST = range(1, 6)

SHELL = {
    "o__0__payload": "flit",
    "retired": "ends",
    "axi__1__wstrb": "strobes",
    "instructions__valid": f"instructions__valid & (fault != {SILENT} || core != 1)",
    "instructions__ready": "accepts",
    "o__0__valid": "offers",
    "o__0__ready": "o__0__ready | lost",
}

BODY = f"""
    reg [3:0] fault;
    reg [15:0] seen;
    reg [7:0] since;
    initial if (!$value$plusargs("fault=%d", fault)) fault = 0;
    wire ends, accepts, offers;
    wire [7:0] strobes;
    wire [80:0] flit;
    wire first = core == 1 && o__0__valid && o__0__ready && flit[16:15] == 2'd0;
    wire lost = fault == {LOST} && core == 1 && offers && flit[16:15] == 2'd0 && seen == 5;
    assign o__0__valid = offers & ~lost;
    assign o__0__payload = flit ^ {{63'd0, fault == {WRONG} && core == 1 && flit[16:15] == 2'd0 && seen == 3, 17'd0}};
    assign retired = fault == {HASTY} ? since == 8'd40 : ends;
    assign instructions__ready = accepts & (fault != {SILENT} || core != 1);
    assign axi__1__wstrb = fault == {STRAY} ? 8'hff : strobes;
    always @(posedge clk) if (rst) seen <= 0; else if (first || lost) seen <= seen + 16'd1;
    always @(posedge clk) if (rst || since == 8'd40) since <= 0;
        else if (instructions__valid && accepts || since != 0) since <= since + 8'd1;
"""


BROKEN = faulty(CollectiveDevice(instance=INSTANCE, room=ROOM), "collective_engine", ports=SHELL, body=BODY)
"""Engines with all faults in them, of which a plusarg chooses one, or none."""


def run(lists, memories, *, sim="verilator", fault=NONE, **options):
    behaviour = replace(options.pop("behaviour", FaultyHbm(latency=8)), fault=fault)
    given = {"behaviour": behaviour, "patience": PATIENCE, "limit": 400_000} | options
    return run_device(BROKEN, CollectiveWork(lists=lists, memories=memories, **given), sim=sim)


def failures_of(workload, outcome):
    return list(workload_failures(INSTANCE, workload, outcome))


def retired(outcome):
    """Return how many collectives each core has retired."""
    return [sum(event.retired is not None for event in own) for own in collective_events(INSTANCE, outcome)]


def compare(workload, outcome) -> tuple[int, list[str]]:
    """Return how many bytes differ from golden's, and what else is wrong."""
    expected = workload.memories.copy()
    golden_run(workload.lists, {core: expected[core] for core in workload.lists}, INSTANCE.cores)
    return int((expected != outcome.memories["hbm"]).sum()), failures_of(workload, outcome)


def check(workload, **options):
    """Run a workload and compare it with golden; return the outcome."""
    outcome = run(workload.lists, workload.memories, delays=workload.delays, **options)
    assert compare(workload, outcome) == (0, [])
    return outcome


@pytest.mark.parametrize("kind", [kind for kind in CollectiveKind if kind != CollectiveKind.RECEIVE])
def test_each_kind_is_golden(kind):
    for count, dtype in ((1, CollectiveType.FP32), (199, CollectiveType.BF16)):
        workload = side_by_side(np.random.default_rng(kind), INSTANCE, kind, [ALL], count, dtype)
        outcome = check(workload)
        assert retired(outcome) == [len(workload.lists[core]) for core in range(4)]
        changed = (outcome.memories["hbm"] != workload.memories).any(axis=1)
        assert changed.all() == (kind != CollectiveKind.BARRIER)


def test_groups_side_by_side_are_golden():
    rng = np.random.default_rng(7)
    for groups in (groups_of(INSTANCE, 2, 2, 1), groups_of(INSTANCE, 2, 2, 2), groups_of(INSTANCE, 1, 1, 1)):
        workload = side_by_side(rng, INSTANCE, CollectiveKind.ALL_REDUCE, groups, 500, CollectiveType.FP32)
        check(workload)


@pytest.mark.parametrize("count", [1, 1000, 20_000])
def test_the_timing_model_foretells_an_all_reduce(count):
    """On links that it was not fitted to, between both cores of each chip."""
    rng = np.random.default_rng(8)
    workload = side_by_side(rng, INSTANCE, CollectiveKind.ALL_REDUCE, [ALL], count, CollectiveType.FP32)
    outcome = check(workload, behaviour=FaultyHbm(latency=64))
    begin, end = span_of(INSTANCE, outcome)
    expected = cycles_of(Case(instance=INSTANCE, ranks=ALL.ranks, count=count))
    print(f"{end - begin} cycles, foretold {expected}")
    assert end - begin == pytest.approx(expected, rel=0.03)


def test_random_collectives_are_golden():
    rng = np.random.default_rng(1)
    check(random_workload(rng, INSTANCE, 60, 4096), behaviour=FaultyHbm(latency=20, stall=60, seed=3))


def test_an_all_reduce_is_golden_on_each_simulator(sim):
    rng = np.random.default_rng(2)
    workload = side_by_side(rng, INSTANCE, CollectiveKind.ALL_REDUCE, [ALL], 70, CollectiveType.BF16, stochastic=True)
    check(workload, sim=sim, errors=0.005)


def test_disturbed_frames_harm_nothing():
    outcome = check(random_workload(np.random.default_rng(3), INSTANCE, 40, 4096), errors=0.01, seed=5)
    assert sum(outcome.links.disturbed) > 100
    assert sum(link["replays"] for link in outcome.links.counters) > 20


def test_samples_of_the_links_end_with_what_is_counted_at_the_end():
    workload = side_by_side(
        np.random.default_rng(6), INSTANCE, CollectiveKind.ALL_REDUCE, [ALL], 8000, CollectiveType.FP32
    )
    outcome = check(workload, errors=0.01, seed=6, sampled=True)
    cycles = [sample.cycle for sample in outcome.links.samples]
    assert SAMPLES * FIRST_WINDOW < outcome.cycles < cycles[-1]
    assert cycles[:-1] == list(range(2 * FIRST_WINDOW, cycles[-1], 2 * FIRST_WINDOW)) and len(cycles) <= SAMPLES
    assert list(outcome.links.samples[-1].counters) == list(outcome.links.counters)
    for earlier, later in pairwise(outcome.links.samples):
        for before, after in zip(earlier.counters, later.counters, strict=True):
            assert all(0 <= after[name] - before[name] <= later.cycle - earlier.cycle for name in before)
    most = 2 * window(INSTANCE.link_latency)
    used = [credits for sample in outcome.links.samples for credits in sample.credits_used]
    assert 0 < max(used) <= most and used[-1] == 0
    assert run(workload.lists, workload.memories, errors=0.01, seed=6).links.samples == []


def misled(change, group=ALL):
    """Return what becomes of an all-reduce of a group where core 2 is at another one."""
    one = Collective(kind=CollectiveKind.ALL_REDUCE, group=group, rank=0, count=100, dst=4096)
    lists = {core: [replace(one, rank=rank)] for rank, core in enumerate(group.cores)}
    lists[2] = [replace(lists[2][0], **change)]
    outcome = run(lists, np.zeros((4, 8192), np.uint8))
    assert retired(outcome) == [0] * 4
    return outcome, lists


@pytest.mark.parametrize(
    ("field", "change", "group"),
    [
        ("count", {"count": 99}, ALL),
        ("dtype", {"dtype": CollectiveType.INT32}, ALL),
        ("op", {"op": 1}, ALL),
        ("kind", {"kind": CollectiveKind.BROADCAST}, ALL),
        ("chunk", {"chunk": 1}, ALL),
        ("ranks", {"group": Group(0, 1, 3)}, ALL),
        ("base", {"group": Group(1, 1, 3), "rank": 1}, Group(0, 1, 3)),
    ],
)
def test_ranks_that_disagree_name_each_other(field, change, group):
    outcome, _ = misled(change, group)
    assert outcome.ending == Ending.ERROR
    assert {fault.cause for fault in outcome.faults.values()} == {Cause.DISAGREE}
    said = [str(fault) for fault in outcome.faults.values()]
    (other,) = (core for core in range(4) if f"core 2: instruction 0: DISAGREE with core {core} in {field}" in said)
    assert f"core {other}: instruction 0: DISAGREE with core 2 in {field}" in said


def test_ranks_that_never_meet_are_named():
    """Ranks in the opposite order have other neighbours, which are not told: everybody waits."""
    outcome, lists = misled({"group": Group(3, -1, 4), "rank": 1})
    assert outcome.ending == Ending.STUCK
    workload = Workload(lists, {}, outcome.memories["hbm"], [])
    assert [f"core {core} hangs in instruction 0, ALL_REDUCE" for core in range(4)] == [
        failure for failure in failures_of(workload, outcome) if "hangs" in failure
    ]


def test_an_illegal_instruction_is_refused():
    lists = {0: [Collective(kind=CollectiveKind.BROADCAST, group=ALL, rank=0, count=4, src=32, dst=4096)]}
    outcome = run(lists, np.zeros((4, 8192), np.uint8))
    assert outcome.ending == Ending.ERROR
    assert outcome.faults[0].cause == Rule.ALIGNMENT
    assert retired(outcome)[0] == 0


def test_memory_that_does_not_exist_is_an_error():
    lists = {
        core: [
            Collective(kind=CollectiveKind.ALL_GATHER, group=ALL, rank=core, count=64, dst=8000 // 64 * 64, pitch=256)
        ]
        for core in range(4)
    }
    outcome = run(lists, np.zeros((4, 8192), np.uint8))
    assert {fault.cause for fault in outcome.faults.values()} == {Cause.AXI}


def test_a_dead_link_is_named():
    workload = side_by_side(
        np.random.default_rng(4), INSTANCE, CollectiveKind.ALL_REDUCE, [ALL], 4096, CollectiveType.FP32
    )
    outcome = run(workload.lists, workload.memories, cut=Cut(wire=1, cycle=300))
    assert outcome.ending in (Ending.DEAD, Ending.ERROR)
    failures = failures_of(workload, outcome)
    assert "link chip 0 down -> chip 1 is dead" in failures
    assert any("hangs in instruction 0, ALL_REDUCE" in failure for failure in failures)


@pytest.mark.parametrize("fault", [WRONG, HASTY, SILENT, STRAY, LOST])
def test_a_broken_engine_is_noticed(fault):
    rng = np.random.default_rng(5)
    workload = side_by_side(rng, INSTANCE, CollectiveKind.ALL_REDUCE, [ALL], 401, CollectiveType.FP32)
    if fault == HASTY:
        with pytest.raises(simulation.SimulationFailed, match="retires an instruction before HBM has answered"):
            run(workload.lists, workload.memories, fault=fault)
        barriers = side_by_side(rng, INSTANCE, CollectiveKind.BARRIER, [ALL], 0, CollectiveType.FP32)
        delays = {core: [100 * core] for core in range(4)}
        outcome = run(barriers.lists, barriers.memories, fault=fault, delays=delays)
        assert any("must wait in barrier 0" in failure for failure in failures_of(barriers, outcome))
        return
    outcome = run(workload.lists, workload.memories, fault=fault)
    mismatches, failures = compare(workload, outcome)
    if fault in (SILENT, LOST):
        assert outcome.ending == Ending.STUCK
        assert any("hangs in instruction 0" in failure for failure in failures)
    else:
        assert failures == [] and 0 < mismatches <= 64


def test_groups_that_cannot_be_are_refused():
    with pytest.raises(UsageError, match="GROUPS must divide 4 cores and be a multiple of STRIDE=1, not 3"):
        groups_of(INSTANCE, 2, 3, 1)
    with pytest.raises(UsageError, match="GROUPS must leave 2 to 64 cores to a group, not 1"):
        groups_of(INSTANCE, 2, 4, 1)

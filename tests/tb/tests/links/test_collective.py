"""Collectives on the RTL: golden's bits despite link errors."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from neuroncore_rtl.golden.collective import execute_lists as golden_run
from neuroncore_rtl.golden.link.timing import LinkCase, cycles_of
from neuroncore_rtl.hdl.link.end import sequence_window
from neuroncore_rtl.kernels.library.collectives import stepwise_all_reduce
from neuroncore_rtl.run.harness.link_view import FIRST_WINDOW, SAMPLES, Cut
from neuroncore_rtl.run.harness.links.collective import CollectiveWork
from neuroncore_rtl.run.harness.outcome import Ending
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.sim import simulation
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.spec.isa import Cause
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind, CollectiveType, Group
from neuroncore_rtl.spec.link import CORES_PER_CHIP
from neuroncore_rtl.tb.stimulus.collective_programs import Workload, lists_side_by_side, random_workload
from neuroncore_rtl.tb.tests.links.collective import ALLREDUCE
from neuroncore_rtl.tb.tests.links.options import groups_of, instance_of
from neuroncore_rtl.tb.tests.links.workloads import collective_events, span_of, workload_failures
from tests.run.harness.faulty_hbm import FaultyHbm
from tests.tb.tests.broken_engines import DISAGREEMENTS, Fault, broken_engines
from tests.tb.tests.broken_engines import ENGINES as INSTANCE

ALL = Group(0, 1, 4)
PATIENCE = 5000


def run(workload, *, sim="verilator", fault=Fault.NONE, **options):
    behaviour = replace(options.pop("behaviour", FaultyHbm(latency=8)), fault=fault)
    given = {"delays": workload.delays, "patience": PATIENCE, "limit": 400_000} | options
    work = CollectiveWork(lists=workload.lists, memories=workload.memories, behaviour=behaviour, **given)
    return run_device(broken_engines(), work, sim=sim)


def of_all(kind, count, dtype=CollectiveType.FP32, *, seed, **options):
    return lists_side_by_side(np.random.default_rng(seed), INSTANCE, kind, [ALL], count, dtype, **options)


def failures_of(workload, outcome):
    return list(workload_failures(INSTANCE, workload, outcome))


def retired(outcome):
    return [sum(event.retired is not None for event in own) for own in collective_events(INSTANCE, outcome)]


def compare(workload, outcome) -> tuple[int, list[str]]:
    expected = workload.memories.copy()
    golden_run(workload.lists, {core: expected[core] for core in workload.lists}, INSTANCE.cores)
    return int((expected != outcome.memories["hbm"]).sum()), failures_of(workload, outcome)


def check(workload, **options):
    outcome = run(workload, **options)
    assert compare(workload, outcome) == (0, [])
    return outcome


def test_groups_side_by_side_are_golden():
    rng = np.random.default_rng(7)
    for groups in (groups_of(INSTANCE, 2, 2, 1), groups_of(INSTANCE, 2, 2, 2), groups_of(INSTANCE, 1, 1, 1)):
        check(lists_side_by_side(rng, INSTANCE, CollectiveKind.ALL_REDUCE, groups, 500, CollectiveType.FP32))


@pytest.mark.parametrize("count", [1, 1000, 20_000])
def test_the_timing_model_foretells_an_all_reduce(count):
    """The links' parameters differ from those of the model's calibration, and links connect the cores of each chip."""
    outcome = check(of_all(CollectiveKind.ALL_REDUCE, count, seed=8), behaviour=FaultyHbm(latency=64))
    begin, end = span_of(INSTANCE, outcome)
    expected = cycles_of(LinkCase(instance=INSTANCE, ranks=ALL.ranks, count=count))
    assert end - begin == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("kind", [CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_GATHER])
def test_the_timing_model_foretells_what_scatters_and_gathers(kind, in_place):
    def placed(one):
        own = {"src": one.dst + one.rank * one.pitch} if kind == CollectiveKind.ALL_GATHER else {"dst": own_block(one)}
        return [replace(one, **own)] if in_place else [one]

    def own_block(one):
        return one.src + one.rank * one.pitch

    workload = of_all(kind, 5000, seed=9, steps=placed)
    outcome = check(workload, behaviour=FaultyHbm(latency=64))
    begin, end = span_of(INSTANCE, outcome)
    expected = cycles_of(LinkCase.of(INSTANCE, workload.lists[0][0]))
    assert end - begin == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("dtype", [CollectiveType.FP32, CollectiveType.BF16])
def test_an_all_reduce_in_steps_is_golden(dtype):
    def steps(one):
        core = one.core
        return stepwise_all_reduce(one, (Group(core & 2, 1, 2), Group(core & 1, 2, 2)))

    workload = of_all(CollectiveKind.ALL_REDUCE, 1234, dtype, seed=10, steps=steps)
    assert len(workload.lists[0]) == 5
    check(workload)


@pytest.mark.slow
def test_an_all_reduce_over_a_torus_uses_all_links():
    words = "CHIPS=16 TOPOLOGY=torus ALGORITHM=torus BYTES=131072".split()
    report = ALLREDUCE.run(ALLREDUCE.settings(words))
    assert not report.problems and report.utilisation > 0.85


@pytest.mark.parametrize("given", ["ALGORITHM=torus", "ALGORITHM=torus TOPOLOGY=torus GROUPS=2"])
def test_an_algorithm_that_does_not_fit_is_refused(given):
    with pytest.raises(UsageError, match="ALGORITHM=torus must be given with TOPOLOGY=torus, without GROUPS"):
        ALLREDUCE.run(ALLREDUCE.settings(["CHIPS=4", *given.split()]))


@pytest.mark.slow
def test_the_timing_model_foretells_an_all_reduce_at_the_rate_of_a_ring(monkeypatch):
    monkeypatch.setitem(PRESETS, "small", PRESETS["small"].with_overrides(ring_rate=3))
    settings = ALLREDUCE.settings("CHIPS=2 CORES=1 BYTES=32768".split())
    report = ALLREDUCE.run(settings)
    case = LinkCase(instance=instance_of(settings), ranks=2, stride=CORES_PER_CHIP, count=8192)
    assert not report.problems and report.cycles > 32768 / 2 / 3
    assert report.cycles == pytest.approx(cycles_of(case), rel=0.05)


def test_an_all_reduce_is_golden_on_each_simulator(sim):
    workload = of_all(CollectiveKind.ALL_REDUCE, 70, CollectiveType.BF16, seed=2, stochastic=True)
    check(workload, sim=sim, errors=0.005)


def test_random_collectives_are_golden_despite_disturbed_frames_and_stalls():
    behaviour = FaultyHbm(latency=20, stall=60, seed=3)
    outcome = check(
        random_workload(np.random.default_rng(3), INSTANCE, 60, 4096), behaviour=behaviour, errors=0.01, seed=5
    )
    assert sum(outcome.links.disturbed) > 100
    assert sum(link["replays"] for link in outcome.links.counters) > 20


def test_samples_of_the_links_end_with_what_is_counted_at_the_end():
    workload = of_all(CollectiveKind.ALL_REDUCE, 8000, seed=6)
    outcome = check(workload, errors=0.01, seed=6, sampled=True)
    cycles = [sample.cycle for sample in outcome.links.samples]
    assert SAMPLES * FIRST_WINDOW < outcome.cycles < cycles[-1]
    assert cycles[:-1] == list(range(2 * FIRST_WINDOW, cycles[-1], 2 * FIRST_WINDOW)) and len(cycles) <= SAMPLES
    assert list(outcome.links.samples[-1].counters) == list(outcome.links.counters)
    for earlier, later in pairwise(outcome.links.samples):
        for before, after in zip(earlier.counters, later.counters, strict=True):
            assert all(0 <= after[name] - before[name] <= later.cycle - earlier.cycle for name in before)
    most = 2 * sequence_window(INSTANCE.link_latency)
    used = [credits for sample in outcome.links.samples for credits in sample.credits_used]
    assert 0 < max(used) <= most and used[-1] == 0
    assert run(workload, errors=0.01, seed=6).links.samples == []


def apart(change, group=ALL):
    one = Collective(kind=CollectiveKind.ALL_REDUCE, group=group, rank=0, count=100, dst=4096)
    lists = {core: [replace(one, rank=rank)] for rank, core in enumerate(group.cores)}
    lists[2] = [replace(lists[2][0], **change)]
    workload = Workload(lists, {}, np.zeros((4, 8192), np.uint8), [])
    outcome = run(workload)
    assert retired(outcome) == [0] * 4
    return workload, outcome


@pytest.mark.parametrize(
    ("field", "change", "group"),
    [
        *((field, change, ALL) for field, change in DISAGREEMENTS.items()),
        ("chunk", {"chunk": 1}, ALL),
        ("ranks", {"group": Group(0, 1, 3)}, ALL),
        ("base", {"group": Group(1, 1, 3), "rank": 1}, Group(0, 1, 3)),
    ],
)
def test_ranks_that_disagree_name_each_other(field, change, group):
    _, outcome = apart(change, group)
    assert outcome.ending == Ending.ERROR
    assert {fault.cause for fault in outcome.faults.values()} == {Cause.DISAGREE}
    said = [str(fault) for fault in outcome.faults.values()]
    (other,) = (core for core in range(4) if f"core 2: instruction 0: DISAGREE with core {core} in {field}" in said)
    assert f"core {other}: instruction 0: DISAGREE with core 2 in {field}" in said


def test_ranks_that_never_meet_are_named():
    """Ranks in the opposite order have other neighbours, which receive no message, so all cores wait."""
    workload, outcome = apart({"group": Group(3, -1, 4), "rank": 1})
    assert outcome.ending == Ending.STUCK
    hanging = [failure for failure in failures_of(workload, outcome) if "hangs" in failure]
    assert hanging == [f"core {core} hangs in instruction 0, ALL_REDUCE" for core in range(4)]


def test_a_dead_link_is_named():
    workload = of_all(CollectiveKind.ALL_REDUCE, 4096, seed=4)
    outcome = run(workload, cut=Cut(wire=1, cycle=300))
    assert outcome.ending in (Ending.DEAD, Ending.ERROR)
    failures = failures_of(workload, outcome)
    assert "link chip 0 down -> chip 1 is dead" in failures
    assert any("hangs in instruction 0, ALL_REDUCE" in failure for failure in failures)


@pytest.mark.parametrize("fault", [Fault.WRONG, Fault.STRAY, Fault.SILENT, Fault.LOST])
def test_a_broken_engine_is_noticed(fault):
    workload = of_all(CollectiveKind.ALL_REDUCE, 401, seed=5)
    outcome = run(workload, fault=fault)
    mismatches, failures = compare(workload, outcome)
    if fault in (Fault.SILENT, Fault.LOST):
        assert outcome.ending == Ending.STUCK
        assert any("hangs in instruction 0" in failure for failure in failures)
    else:
        assert failures == [] and 0 < mismatches <= 64


def test_an_engine_that_retires_too_early_is_noticed():
    workload = of_all(CollectiveKind.ALL_REDUCE, 401, seed=5)
    with pytest.raises(simulation.SimulationFailed, match="retires an instruction before HBM has answered"):
        run(workload, fault=Fault.HASTY)
    barriers = of_all(CollectiveKind.BARRIER, 0, seed=5)
    outcome = run(barriers, fault=Fault.HASTY, delays={core: [100 * core] for core in range(4)})
    assert any("must wait in barrier 0" in failure for failure in failures_of(barriers, outcome))

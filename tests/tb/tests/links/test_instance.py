"""Images on all cores of an instance: golden's bits despite link errors and late starts."""

from dataclasses import replace

import numpy as np
import pytest

from neuroncore_rtl import ROOT
from neuroncore_rtl.kernels.library.collectives import collectives_program
from neuroncore_rtl.run.check.image_failures import explain_fault
from neuroncore_rtl.run.harness import collective_faults, cores, link_view
from neuroncore_rtl.run.harness.cores import CoreDevice, CoreWork
from neuroncore_rtl.run.harness.outcome import Ending
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.job import ImageJob
from neuroncore_rtl.run.sim.vectors import threads_choice
from neuroncore_rtl.spec.isa import Cause, collective_queue
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind, CollectiveType, Group
from neuroncore_rtl.tb.stimulus.collective_programs import lists_side_by_side, random_workload
from neuroncore_rtl.tb.tests.links import collective, workloads
from tests.run.harness.core_images import watched
from tests.run.harness.faulty_hbm import FaultyHbm
from tests.run.view.recordings import Timeline
from tests.tb.reports import passed, report_of
from tests.tb.tests.broken_engines import CORES as INSTANCE
from tests.tb.tests.broken_engines import DISAGREEMENTS, SETTINGS, WORDS, Fault, broken_cores

CONFIG = INSTANCE.core
BASE = 1 << 14
ALL = Group(0, 1, 4)
WATCHDOG = 3000  # cycles, more than the detection of a dead link takes


def run_job(job, **options):
    expected = job.golden()
    outcome = run_device(broken_cores(), replace(job.work(1), limit=100_000, **options))
    mismatches = int((outcome.memories["hbm"] != expected.memories["hbm"]).sum())
    return outcome, expected.outcomes, list(job.failures(outcome, expected)), mismatches


def run(images, *, data=None, fault=Fault.NONE, **options):
    behaviour = FaultyHbm(latency=8, fault=fault)
    return run_job(ImageJob(machine=INSTANCE, images=images, data=data, behaviour=behaviour), **options)


def check(workload, *, behaviour=None, **options):
    job = workloads.workload_job(INSTANCE, workload, SETTINGS, behaviour=behaviour or FaultyHbm(latency=8))
    outcome, _, failures, mismatches = run_job(job, **options)
    assert (failures, mismatches, outcome.ending) == ([], 0, Ending.FINISHED)
    assert any(one.events for one in outcome.parts.values())
    return outcome


@pytest.mark.parametrize("kind", [kind for kind in CollectiveKind if kind != CollectiveKind.RECEIVE])
def test_each_kind_is_golden(kind):
    workload = lists_side_by_side(np.random.default_rng(kind), INSTANCE, kind, [ALL], 199, CollectiveType.BF16)
    outcome = check(workload)
    retired = [[event.retired for event in own] for own in workloads.collective_events(INSTANCE, outcome)]
    assert [len(own) - own.count(None) for own in retired] == [len(workload.lists[core]) for core in range(4)]
    size = workload.memories.shape[1]
    changed = (outcome.memories["hbm"][:, :size] != workload.memories).any(axis=1)
    assert changed.all() == (kind != CollectiveKind.BARRIER)


@pytest.mark.parametrize("seed, errors", [pytest.param(1, 0.0, marks=pytest.mark.slow), (2, 0.005)])
def test_random_collectives_are_golden(seed, errors):
    workload = random_workload(np.random.default_rng(seed), INSTANCE, 150, 2048)
    outcome = check(workload, errors=errors, behaviour=FaultyHbm(latency=20, stall=60 * (seed == 2), seed=seed))
    disturbed, replays = sum(outcome.links.disturbed), sum(link["replays"] for link in outcome.links.counters)
    assert (disturbed > 100) == (replays > 20) == (errors > 0)


def test_a_barrier_waits_for_the_core_that_starts_last():
    workload = lists_side_by_side(
        np.random.default_rng(4), INSTANCE, CollectiveKind.BARRIER, [ALL], 0, CollectiveType.FP32
    )
    outcome = check(replace(workload, delays={0: [0], 1: [900], 2: [20], 3: [0]}))
    events = [event for (event,) in workloads.collective_events(INSTANCE, outcome)]
    assert max(event.issued for event in events) == events[1].issued > 900
    assert min(event.retired for event in events) > events[1].issued > 500 + events[0].issued


@pytest.mark.parametrize("name, words", [("allreduce", "BYTES=2048"), ("collectives", "COUNT=10 BYTES=4096")])
def test_a_test_runs_on_whole_cores(name, words, shared_cores):
    timeline = Timeline(ROOT / passed(name, f"{WORDS} {words}").rows["timeline"])
    cores = [f"core {core}" for core in range(4)]
    assert timeline.groups[:4] == cores and len(timeline.groups) == 8
    assert {group for group, _ in timeline.slices} == set(cores)


def test_chips_side_by_side_are_the_same_as_cores(monkeypatch):
    """With many chips each is one block of the simulation; two have the same memories, events and links either way."""
    kind, dtype = CollectiveKind.ALL_REDUCE, CollectiveType.BF16
    workload = lists_side_by_side(np.random.default_rng(1), INSTANCE, kind, [ALL], 199, dtype)
    job = workloads.workload_job(INSTANCE, workload, SETTINGS, behaviour=FaultyHbm(latency=8))
    work = replace(job.work(1, sampled=True), limit=100_000)
    apart = run_device(broken_cores(), work)
    monkeypatch.setattr(cores, "MANY", INSTANCE.chips)
    device = CoreDevice(machine=INSTANCE)
    assert device.design().side_by_side.block == "linked_chip"
    with threads_choice(2):
        whole = run_device(device, work)
    assert list(job.failures(whole, job.golden())) == []
    assert (whole.memories["hbm"] == apart.memories["hbm"]).all()
    assert (whole.cycles, whole.parts, whole.links) == (apart.cycles, apart.parts, apart.links)
    assert whole.parts[0].counters["queues"][0]["idle"] > whole.cycles  # counters are read after the last end
    assert any(max(sample.credits_used) for sample in whole.links.samples)


def test_a_test_notices_a_broken_engine(shared_cores, monkeypatch):
    monkeypatch.setattr(collective, "hbm_of", lambda settings: FaultyHbm(latency=8, fault=Fault.WRONG))
    report = report_of("allreduce", f"{WORDS} BYTES=2048 DTYPE=int32")
    assert 0 < report.mismatches <= 64 and report.exit_status == 1


def all_reduce(core, group=ALL, count=100, **more):
    rank = group.cores.index(core)
    return Collective(kind=CollectiveKind.ALL_REDUCE, group=group, rank=rank, count=count, dst=8192, **more)


def images_of(lists):
    return [watched(collectives_program(CONFIG, lists.get(core, []), BASE), limit=WATCHDOG) for core in range(4)]


def faults(runs):
    return [one.error and (one.error.queue, one.error.cause, one.error.detail) for one in runs]


def stuck(other):
    return collective_queue(CONFIG), Cause.STUCK, 1 << 8 | other


@pytest.mark.parametrize("field", DISAGREEMENTS)
def test_cores_that_disagree_name_each_other(field):
    """Two cores of different chips disagree; the other core of each chip does not participate."""
    group = Group(1, 1, 2)
    lists = {core: [all_reduce(core, group)] for core in group.cores}
    lists[2] = [replace(lists[2][0], **DISAGREEMENTS[field])]
    images = images_of(lists)
    outcome, expected, *_ = run(images)
    runs = list(outcome.parts.values())
    assert faults(runs) == faults(expected)
    for core, other in ((1, 2), (2, 1)):
        said = explain_fault(runs[core].error, images[core].memory(), CONFIG)
        assert f"DISAGREE (with core {other} in {field})" in said
    assert [one.exit_code for one in runs] == [0, *[0x40000000 | Cause.DISAGREE] * 2, 0]


def test_a_core_that_never_comes_is_named():
    images = images_of({0: [all_reduce(0, Group(0, 3, 2))]})
    outcome, expected, *_ = run(images)
    runs = list(outcome.parts.values())
    assert faults(runs) == faults(expected) == [stuck(3), None, None, None]
    assert "STUCK (it waits for core 3)" in explain_fault(runs[0].error, images[0].memory(), CONFIG)
    # The error is the same if the core is not started.
    outcome, _, failures, _ = run(images, boots=[BASE, BASE, BASE, None])
    assert faults(outcome.parts.values()) == faults(runs) and outcome.ending != Ending.LIMIT
    assert "core 3: the program must exit with 0, not None" in failures


def test_a_core_that_waits_for_those_that_wait_is_stuck():
    outcome, expected, *_ = run(images_of({core: [all_reduce(core)] for core in (0, 1, 3)}))
    found, golden = ([fault and fault[:2] for fault in faults(runs)] for runs in (outcome.parts.values(), expected))
    assert found == golden and faults(outcome.parts.values())[1] == stuck(2)


def test_a_dead_link_is_an_error_of_the_cores_at_it():
    wire = 1
    images = images_of({core: [all_reduce(core, count=2000, src=64)] * 3 for core in range(4)})
    outcome, _, failures, _ = run(images, cut=link_view.Cut(wire=wire, cycle=1500))
    assert wire in outcome.links.dead and collective_faults.link_name(INSTANCE, wire) == "link chip 0 down -> chip 1"
    errors = [one.error for one in outcome.parts.values()]
    assert {error.cause for error in errors} <= {Cause.LINK, Cause.STUCK}
    details = {error.detail for error in errors if error.cause == Cause.LINK}
    assert details and details <= {0, 1}
    assert any("the core's error must be none, not" in failure for failure in failures)


def test_cores_that_do_nothing_fail():
    images = images_of({core: [all_reduce(core)] for core in range(4)})
    data = np.random.default_rng(2).integers(0, 256, (4, BASE), np.uint8)
    outcome, _, failures, mismatches = run(images, data=data, boots=[None] * 4)
    assert mismatches > 0 and not any(one.events for one in outcome.parts.values())
    assert {f"core {core}: the program must exit with 0, not None" for core in range(4)} < set(failures)
    assert "core 0: as many records must be executed as on golden, 1, not 0" in failures


@pytest.mark.parametrize(
    "size, boots, message",
    [
        (100, [0] * 4, r"memories must be \[4, a multiple of 4096\], not \[4, 100\]"),
        (4096, [0] * 3, "boots must be an address for each of 4 cores, not 3"),
    ],
)
def test_images_must_be_as_many_as_cores(size, boots, message, tmp_path):
    work = CoreWork(memories=np.zeros((4, size), np.uint8), boots=boots)
    with pytest.raises(ValueError, match=message):
        CoreDevice(machine=INSTANCE).load(work, tmp_path)

# amaranth: UnusedElaboratable=no

"""Images on all cores of an instance: collectives by their records are golden's, whatever befalls the wires and
whenever a core starts; cores that disagree or never come and dead links are named, and broken machines noticed."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from neuroncore_rtl import ROOT
from neuroncore_rtl.kernels.control import run_arguments
from neuroncore_rtl.kernels.library.collectives import collectives_program
from neuroncore_rtl.kernels.program.image import build_image
from neuroncore_rtl.spec.isa import Cause, collective_queue
from neuroncore_rtl.spec.isa.collective import Collective, CollectiveKind, CollectiveType, Group
from neuroncore_rtl.tb.benches import collective, images
from neuroncore_rtl.tb.benches.collective_options import instance_of
from neuroncore_rtl.tb.benches.images import ImageTask
from neuroncore_rtl.tb.benches.workloads import collective_events, workload_task
from neuroncore_rtl.tb.check.core_fault import explained
from neuroncore_rtl.tb.cli.registry import bench_named
from neuroncore_rtl.tb.harness.collective_faults import link_name
from neuroncore_rtl.tb.harness.cores import CoreDevice, CoreWork
from neuroncore_rtl.tb.harness.disturbance import Cut
from neuroncore_rtl.tb.harness.outcome import Ending
from neuroncore_rtl.tb.harness.run import run as run_device
from neuroncore_rtl.tb.stimulus.collective_programs import random_workload, side_by_side
from tests.hdl.tensor.engines import faulty
from tests.tb.harness.core_images import RUN, cases
from tests.tb.harness.faulty_hbm import FaultyHbm

CHIPS = ["CHIPS=2", "TARGET=core"]
SETTINGS = bench_named("allreduce").settings(CHIPS)
INSTANCE = instance_of(SETTINGS)
CONFIG = INSTANCE.core
BASE = 1 << 14
ALL = Group(0, 1, 4)
WATCHDOG = 3000
"""Cycles, more than a link takes to be found dead."""

NONE, WRONG, SILENT = range(3)

SHELL = {
    "o__0__payload": "flit",
    "instructions__valid": f"instructions__valid & (fault != {SILENT} || core != 1)",
    "instructions__ready": "accepts",
}

BODY = f"""
    reg [3:0] fault;
    reg [15:0] seen;
    initial if (!$value$plusargs("fault=%d", fault)) fault = 0;
    wire accepts;
    wire [80:0] flit;
    wire data = o__0__valid && o__0__ready && flit[16:15] == 2'd0;
    assign o__0__payload = flit ^ {{63'd0, fault == {WRONG} && core == 1 && flit[16:15] == 2'd0 && seen == 3, 17'd0}};
    assign instructions__ready = accepts & (fault != {SILENT} || core != 1);
    always @(posedge clk) if (rst) seen <= 0; else if (data) seen <= seen + 16'd1;
"""


@cache
def broken_cores():
    """Return cores whose collective engines have all faults, of which a plusarg chooses one, or none; what they do on
    their AXI ports is watched."""
    return faulty(CoreDevice(machine=INSTANCE), "collective_engine", ports=SHELL, body=BODY)


def run_task(task, **options):
    """Run a task; return what became of it, golden's outcomes, what is wrong, and how many bytes are not golden's."""
    memories, expected = task.golden()
    outcome = run_device(broken_cores(), replace(task.work(1), limit=100_000, **options))
    mismatches = int((outcome.memories["hbm"] != memories).sum())
    return outcome, expected, list(task.failures(outcome, expected)), mismatches


def run(images, *, data=None, fault=NONE, **options):
    """Run an image on every core; return as `run_task`."""
    behaviour = FaultyHbm(latency=8, fault=fault)
    return run_task(ImageTask(machine=INSTANCE, images=images, data=data, behaviour=behaviour), **options)


def check(workload, *, behaviour=None, **options):
    """Run a workload, whose cores start after the delay before its first collective; return what became of it."""
    task = workload_task(INSTANCE, workload, SETTINGS, behaviour=behaviour or FaultyHbm(latency=8))
    outcome, _, failures, mismatches = run_task(task, **options)
    assert (failures, mismatches, outcome.ending) == ([], 0, Ending.FINISHED)
    assert any(one.events for one in outcome.parts.values())
    return outcome


@pytest.mark.parametrize("kind", [kind for kind in CollectiveKind if kind != CollectiveKind.RECEIVE])
def test_each_kind_is_golden(kind):
    workload = side_by_side(np.random.default_rng(kind), INSTANCE, kind, [ALL], 199, CollectiveType.BF16)
    outcome = check(workload)
    retired = [[event.retired for event in own] for own in collective_events(INSTANCE, outcome)]
    assert [len(own) - own.count(None) for own in retired] == [len(workload.lists[core]) for core in range(4)]
    size = workload.memories.shape[1]
    changed = (outcome.memories["hbm"][:, :size] != workload.memories).any(axis=1)
    assert changed.all() == (kind != CollectiveKind.BARRIER)


@pytest.mark.parametrize("seed, errors", [(1, 0.0), (2, 0.005)])
def test_random_collectives_are_golden(seed, errors):
    workload = random_workload(np.random.default_rng(seed), INSTANCE, 150, 2048)
    outcome = check(workload, errors=errors, behaviour=FaultyHbm(latency=20, stall=60 * (seed == 2), seed=seed))
    assert (
        (sum(outcome.links.disturbed) > 100)
        == (sum(link["replays"] for link in outcome.links.counters) > 20)
        == (errors > 0)
    )


def test_a_barrier_waits_for_the_core_that_starts_last():
    workload = side_by_side(np.random.default_rng(4), INSTANCE, CollectiveKind.BARRIER, [ALL], 0, CollectiveType.FP32)
    outcome = check(replace(workload, delays={0: [0], 1: [900], 2: [20], 3: [0]}))
    events = [event for (event,) in collective_events(INSTANCE, outcome)]
    assert max(event.issued for event in events) == events[1].issued > 900
    assert min(event.retired for event in events) > events[1].issued > 500 + events[0].issued


@pytest.mark.parametrize("name, more", [("allreduce", ["BYTES=2048"]), ("collectives", ["COUNT=10", "BYTES=4096"])])
def test_a_test_runs_on_whole_cores(name, more, monkeypatch):
    """The same TEST as on engines alone; its timeline has the records of every core and the links."""
    monkeypatch.setattr(images, "CoreDevice", lambda **options: broken_cores())
    report = bench_named(name).run(bench_named(name).settings([*CHIPS, *more]))
    assert report.problems == [] and report.compared > 0
    events = json.loads((ROOT / report.extra["timeline"]).read_text())["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert list(names.values())[:4] == [f"core {core}" for core in range(4)] and len(names) == 8
    busy = {event["pid"] for event in events if event["ph"] == "X"}
    assert len(busy) == 4


def test_a_test_notices_a_broken_engine(monkeypatch):
    wrong = FaultyHbm(latency=8, fault=WRONG)
    monkeypatch.setattr(images, "CoreDevice", lambda **options: broken_cores())
    monkeypatch.setattr(collective, "Hbm", lambda **options: wrong)
    report = bench_named("allreduce").run(bench_named("allreduce").settings([*CHIPS, "BYTES=2048", "DTYPE=int32"]))
    assert 0 < report.mismatches <= 64 and report.exit_status == 1


# What goes wrong


def all_reduce(core, group=ALL, count=100, **more):
    rank = group.cores.index(core)
    return Collective(kind=CollectiveKind.ALL_REDUCE, group=group, rank=rank, count=count, dst=8192, **more)


def watched(lists):
    """Return images whose watchdog does not wait long."""
    return [
        build_image(
            collectives_program(CONFIG, lists.get(core, []), BASE),
            control=cases(),
            arguments=lambda blocks: [RUN, WATCHDOG, *run_arguments(blocks)],
        )
        for core in range(4)
    ]


def faults(outcome):
    return [one.error and (one.error.queue, one.error.cause, one.error.detail) for one in outcome.parts.values()]


def golden_faults(expected):
    return [one.error and (one.error.queue, one.error.cause, one.error.detail) for one in expected]


def stuck(other):
    return collective_queue(CONFIG), Cause.STUCK, 1 << 8 | other


@pytest.mark.parametrize(
    "field, change",
    [
        ("count", {"count": 99}),
        ("dtype", {"dtype": CollectiveType.INT32}),
        ("op", {"op": 1}),
        ("kind", {"kind": CollectiveKind.BROADCAST}),
    ],
)
def test_cores_that_disagree_name_each_other(field, change):
    """Cores of two chips; another core of each has nothing to do with it."""
    group = Group(1, 1, 2)
    lists = {core: [all_reduce(core, group)] for core in group.cores}
    lists[2] = [replace(lists[2][0], **change)]
    images = watched(lists)
    outcome, expected, *_ = run(images)
    assert faults(outcome) == golden_faults(expected)
    said = [explained(outcome.parts[core].error, images[core].memory(), CONFIG) for core in (1, 2)]
    assert all(f"DISAGREE (with core {other} in {field})" in text for other, text in zip((2, 1), said, strict=True))
    assert [one.exit_code for one in outcome.parts.values()] == [
        0,
        0x40000000 | Cause.DISAGREE,
        0x40000000 | Cause.DISAGREE,
        0,
    ]


def test_a_core_that_never_comes_is_named():
    group = Group(0, 3, 2)
    images = watched({0: [all_reduce(0, group)]})
    outcome, expected, *_ = run(images)
    assert faults(outcome) == golden_faults(expected) == [stuck(3), None, None, None]
    assert "STUCK (it waits for core 3)" in explained(outcome.parts[0].error, images[0].memory(), CONFIG)
    # No better if it is not even started.
    outcome, _, failures, _ = run(images, boots=[BASE, BASE, BASE, None])
    assert faults(outcome) == [stuck(3), None, None, None] and outcome.ending != Ending.LIMIT
    assert "core 3: the program must exit with 0, not None" in failures


def test_a_core_that_waits_for_those_that_wait_is_stuck():
    images = watched({core: [all_reduce(core)] for core in (0, 1, 3)})
    outcome, expected, *_ = run(images)
    assert [fault and fault[:2] for fault in faults(outcome)] == [
        fault and fault[:2] for fault in golden_faults(expected)
    ]
    assert outcome.parts[1].error.detail == 1 << 8 | 2


def test_a_dead_link_is_an_error_of_the_cores_at_it():
    wire = 1
    images = watched({core: [all_reduce(core, count=2000, src=64)] * 3 for core in range(4)})
    outcome, _, failures, _ = run(images, cut=Cut(wire=wire, cycle=1500))
    assert wire in outcome.links.dead and link_name(INSTANCE, wire) == "link chip 0 down -> chip 1"
    errors = [one.error for one in outcome.parts.values()]
    assert {error.cause for error in errors} <= {Cause.LINK, Cause.STUCK}
    assert {error.detail for error in errors if error.cause == Cause.LINK} <= {0, 1}
    assert any(error.cause == Cause.LINK for error in errors)
    assert any("the core's error must be none, not" in failure for failure in failures)


@pytest.mark.parametrize("fault", [WRONG, SILENT])
def test_a_broken_engine_is_noticed(fault):
    """A bit that is wrong on the way may be rounded away from FP32, but not from a sum of integers."""
    images = watched({core: [all_reduce(core, dtype=CollectiveType.INT32)] for core in range(4)})
    data = np.random.default_rng(1).integers(0, 256, (4, BASE), np.uint8)
    _, _, failures, mismatches = run(images, data=data, fault=fault)
    assert mismatches > 0
    assert (failures == []) == (fault == WRONG)


def test_cores_that_do_nothing_fail():
    images = watched({core: [all_reduce(core)] for core in range(4)})
    data = np.random.default_rng(2).integers(0, 256, (4, BASE), np.uint8)
    outcome, _, failures, mismatches = run(images, data=data, boots=[None] * 4)
    assert mismatches > 0 and not any(one.events for one in outcome.parts.values())
    assert [f"core {core}: the program must exit with 0, not None" in failures for core in range(4)] == [True] * 4
    assert "core 0: as many records must be executed as on golden, 1, not 0" in failures


def test_images_must_be_as_many_as_cores(tmp_path):
    device = CoreDevice(machine=INSTANCE)
    with pytest.raises(ValueError, match=r"memories must be \[4, a multiple of 4096\], not \[4, 100\]"):
        device.load(CoreWork(memories=np.zeros((4, 100), np.uint8), boots=[0] * 4), tmp_path)
    with pytest.raises(ValueError, match="boots must be an address for each of 4 cores, not 3"):
        device.load(CoreWork(memories=np.zeros((4, 4096), np.uint8), boots=[0] * 3), tmp_path)

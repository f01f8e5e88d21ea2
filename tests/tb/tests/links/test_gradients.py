"""Sums of gradients of shards on the RTL."""

import re
from dataclasses import replace

import numpy as np
import pytest

from neuroncore_rtl.golden.arith import decode, round_fp32
from neuroncore_rtl.golden.collective import orders, reduction
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.spec.instance import Topology
from neuroncore_rtl.tb.tests.links import gradient_sums, gradients, workloads
from neuroncore_rtl.tb.tests.links.gradient_sums import GIVEN, conditions_of, errors_of
from neuroncore_rtl.tb.tests.links.gradients import TEST, disagreements
from tests.run.harness.faulty_hbm import FaultyHbm
from tests.tb.reports import passed, report_of
from tests.tb.tests.broken_engines import ENGINES, Fault, broken_engines


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(workloads, "CollectiveDevice", lambda **options: broken_engines())
    monkeypatch.setattr(gradient_sums, "instance_of", lambda settings: ENGINES)


def only(monkeypatch, **others):
    given = conditions_of(TEST.settings(["CHIPS=2"]))[GIVEN]
    chosen = {GIVEN: given, **{name: replace(given, **change) for name, change in others.items()}}
    monkeypatch.setattr(gradients, "conditions_of", lambda settings: chosen)


@pytest.mark.parametrize("cores", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_gradients_are_golden_s_under_all_conditions(small, cores):
    report = passed("gradients", f"CHIPS=2 CORES={cores}")
    conditions = {GIVEN, "stalled", "late and disturbed", "reversed", *["on half of the chips"] * (cores == 1)}
    for name in ("fp32", "bf16"):
        assert report.rows[f"{name}_same_bits"] == {"on_every_rank": True, "under_all_conditions": True}
        cycles = report.rows[f"{name}_cycles"]
        assert set(cycles) == {name.replace(" ", "_") for name in conditions}
        assert len(set(cycles.values())) > 2
    assert report.compared == len(conditions) * ENGINES.cores * (32_768 + 16_384)
    assert report.rows["disturbed_frames"] > 10
    assert 0.5 < report.utilisation < 1


def test_a_wrong_engine_is_noticed(small, monkeypatch):
    """The fault inverts the last bit of one sum, which BF16 drops."""
    only(monkeypatch, broken={"behaviour": FaultyHbm(latency=8, fault=Fault.WRONG)})
    report = report_of("gradients", "CHIPS=2")
    assert report.exit_status == 1
    said = f"FP32, broken: the sums must be the same as {GIVEN}, but 1 are not"
    assert report.problems[:2] == ["FP32, broken: 4 bytes of HBM are not golden's", said]
    assert report.rows["fp32_same_bits"] == {"on_every_rank": True, "under_all_conditions": False}


def test_a_wrong_golden_is_noticed(small, monkeypatch):
    only(monkeypatch)
    monkeypatch.setattr(reduction, "orders", lambda last, ranks: orders(last, ranks)[::-1])
    report = report_of("gradients", "CHIPS=2")
    assert report.mismatches > 100
    assert re.fullmatch(rf"FP32, {GIVEN}: \d+ bytes of HBM are not golden's", report.problems[0])
    assert report.rows["fp32_same_bits"] == {"on_every_rank": True, "under_all_conditions": True}


def test_a_wrong_gradient_is_noticed(small, monkeypatch):
    """Rank 1 has the gradient of rank 0's shard, in golden as well."""
    only(monkeypatch)
    sound = gradient_sums.encode
    monkeypatch.setattr(gradient_sums, "encode", lambda values, fmt: sound(values[[0, 0, 2, 3]], fmt))
    report = report_of("gradients", "CHIPS=2")
    assert report.mismatches == 0 and report.exit_status == 1
    assert len(report.problems) == 3
    assert all("times as far from float64's as rounding allows" in problem for problem in report.problems)


def test_ranks_and_conditions_that_disagree_are_named():
    sound = np.tile(np.arange(5), (3, 1))
    other, moved = sound.copy(), sound + (np.arange(5) > 2)
    other[2, 1] = 7
    assert list(disagreements({"first": sound, "again": sound})) == []
    assert list(disagreements({"first": sound, "other": other, "moved": moved})) == [
        "other: every rank must have the same sums, but 1 of rank 2 are not those of rank 0",
        "moved: the sums must be the same as first, but 2 are not",
    ]


def test_errors_are_relative_to_the_average():
    values = np.array([[1, 3, 0, 1], [1, 5, 0, -1]], np.float32)
    exact = values.sum(axis=0)
    assert errors_of(exact, values, FP32).of_bound == 0
    errors = errors_of(exact + [0.5, 0, 0, 0], values, FP32)
    assert errors.largest == 0.25
    assert errors.rms == pytest.approx(0.25 / np.sqrt(2))
    assert errors.of_norm == pytest.approx(0.25 / np.sqrt(1 + 16))
    assert errors.of_bound > 1e6
    assert errors_of(exact + [0, 0, 1e-30, 0], values, FP32).of_bound == np.inf
    assert errors_of(exact * np.nan, values, FP32).of_bound == np.inf


def test_what_rounding_allows_is_enough_and_no_more_than_twice_of_what_is_needed():
    rng = np.random.default_rng(6)
    values = np.abs(rng.normal(0, 1, (2, 20_000))).astype(np.float32)
    codes = round_fp32(values.view(np.uint32), BF16)
    sums = decode(codes, BF16).astype(np.float32).sum(axis=0)
    nearest = errors_of(decode(round_fp32(sums.view(np.uint32), BF16), BF16), values, BF16)
    assert 0.5 < nearest.of_bound <= 1
    words = rng.integers(0, 1 << 32, sums.size, np.uint32)
    away = errors_of(decode(round_fp32(sums.view(np.uint32), BF16, "sr", words), BF16), values, BF16, stochastic=True)
    assert 0.5 < away.of_bound <= 1
    assert 0.5 < errors_of(sums * 0 + values.sum(axis=0), values, FP32).of_bound <= 1


def test_conditions():
    found = conditions_of(TEST.settings(["CHIPS=4", "CORES=1", "BOTH=1"]))
    assert found[GIVEN].group.cores == (0, 2, 4, 6)
    assert found["reversed"].group.cores == (7, 5, 3, 1)
    assert found["on half of the chips"].group.cores == (2, 3, 4, 5)
    assert found["on a torus"].instance.topology == Topology.TORUS
    assert found["stalled"].behaviour.stall > 0 and found["stalled"].behaviour.latency != 64
    assert conditions_of(TEST.settings(["CHIPS=3"]))["reversed"].group.cores == (5, 4, 3, 2, 1, 0)

import re

import numpy as np
import pytest

from neuroncore_rtl.hdl.arith import round as rounding
from neuroncore_rtl.run.harness import player
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.run.report import Report
from neuroncore_rtl.spec.formats import BF16, FORMATS, INT8
from neuroncore_rtl.tb.tests.engines import mac
from neuroncore_rtl.tb.tests.engines import round as round_bench
from tests.hdl.tensor.engines import in_shell

SEED = 5
FEW = 2_000
MANY = {"verilator": 200_000, "icarus": 4_000}


def mac_comparison(count=FEW):
    return mac.compare(mac.random_cases(SEED, mac.FORMATS_PLAYED, count), mac_latency=2)


def round_comparison(count=FEW):
    return round_bench.compare(round_bench.random_cases(SEED, tuple(FORMATS.values()), round_bench.MODES, count), 2)


def report_of(comparison, mutate=None, sim="icarus"):
    job = comparison.job(mutate)
    found = comparison.verdict(run_device(job.device(), job.work(1), sim=sim))
    counted = {"compared": found.compared, "mismatches": found.mismatches, "failures": found.failures}
    return Report(test="test", label="test", settings={}, rows=found.rows, **counted)


@pytest.mark.parametrize("comparison", (mac_comparison, round_comparison))
def test_rtl_is_golden(comparison, sim):
    print(f"seed {SEED}")
    report = report_of(comparison(MANY[sim]), sim=sim)
    assert report.problems == []
    assert report.compared == MANY[sim]


def broken(result="r", result_valid="v"):
    body = f"wire [31:0] r; wire v; assign result = {result}; assign result_valid = {result_valid};"
    return lambda text: in_shell(text, r"\w+Unit", {"result": "r", "result_valid": "v"}, body)


FAULTS = {
    "none": (broken(), ""),
    "valid never": (broken(result_valid="1'b0"), "the unit returned 0 results for 2,000 cases"),
    "last place wrong once in 128": (broken("r ^ (r[15:9] == 0)"), "differ from the golden model"),
    "one result too many": (broken(result_valid="v | valid"), "results for 2,000 cases"),
    "unknown bits": (broken("{r[31:1], r[0] ? 1'bx : 1'b0}"), "results have unknown bits"),
}
"""Faults of the unit's outputs and the reported problem."""


@pytest.mark.parametrize(("mutate", "problem"), FAULTS.values(), ids=FAULTS)
def test_broken_unit_fails(mutate, problem):
    report = report_of(round_comparison(), mutate)
    assert report.exit_status == bool(problem)
    assert problem in " ".join(report.problems)


def test_ties_away_from_zero_fail(monkeypatch, capsys):
    monkeypatch.setattr(rounding, "_ABOVE_HALF", 1 << 31)
    report = report_of(round_comparison())
    assert 0 < report.mismatches < report.compared
    assert re.search(r"^bf16 rne [0-9a-f]{8}: RTL [0-9a-f]{4}, golden [0-9a-f]{4}$", capsys.readouterr().out, re.M)


def test_random_cases_are_reproducible_and_of_the_chosen_formats():
    cases, again = (round_bench.random_cases(SEED, (BF16, INT8), ("sr",), 101) for _ in range(2))
    assert len(cases) == 101
    assert set(cases.formats) == {BF16.code, INT8.code}
    assert cases.operands["stochastic"].all()
    for name, column in cases.operands.items():
        np.testing.assert_array_equal(column, again.operands[name])


def test_pack_wrong():
    with pytest.raises(ValueError, match="format must fit 4 bits, not 0x10"):
        player.pack_inputs(mac.WORD, format=[16], x=[0], w=[0], acc=[0], x_half=[0], w_half=[0])
    with pytest.raises(ValueError, match="fields must be format, x, w, acc, x_half, w_half, not x"):
        player.pack_inputs(mac.WORD, x=[0])

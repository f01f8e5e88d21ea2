"""`make oracle`, SUITE=stablehlo and SUITE=jax, on small handwritten files."""

import importlib
import os
from pathlib import Path

import pytest

from neuroncore_rtl.tb.cli import registry
from neuroncore_rtl.tb.tests.oracle import command, platform
from tests.house.tree import ROOT

pytest.importorskip("jax")

[TEST] = [one for one in registry.COMMANDS if one.name == "oracle"]
RIGHT, DATA, LEFT_OUT = (
    Path(__file__).with_name("stablehlo").joinpath(f"{name}.mlir").read_text() for name in ("right", "data", "left_out")
)


def _report(folder, **files: str):
    for name, text in files.items():
        (folder / f"{name}.mlir").write_text(text)
    return command.run_suite(TEST.settings(SUITE="stablehlo", FROM=str(folder)))


def test_functions_that_return_what_they_expect_pass(tmp_path):
    report = _report(tmp_path, right=RIGHT)
    assert report.problems == []
    row = {"operation": "right", "functions": 2, "passed": 2, "refused": 0, "wrong": 0, "crashed": 0, "elements": 12}
    assert report.rows["functions"] == [row]


def test_other_results_fail(tmp_path):
    text = RIGHT.replace("-4", "-5").replace("tolerance = 0.1 ", "tolerance = 0.01 ")
    report = _report(tmp_path, wrong=text)
    assert report.rows["functions"][0]["wrong"] == 2
    shown = ["wrong.mlir:3: element [1] is -4, not -5", "wrong.mlir:18: element [0] is 2.0, not 2.0999999046325684"]
    # Once with the constants as arguments, once as constants.
    assert report.problems == [shown[0]] * 2 + [shown[1]] * 2


def test_files_of_the_test_data_count_last_places(tmp_path):
    """Three of a number; of a sum, those of the largest one, since its order is free."""
    far = DATA.replace("2.0000007", "2.000001")
    total = far.replace("add %0, %0 : (tensor<2xf32>, tensor<2xf32>)", "dot %0, %m : (tensor<2xf32>, tensor<2x2xf32>)")
    rows = _report(tmp_path, add_float32_2=DATA, add_far=far, sum_bfloat16_2=total).rows["functions"]
    found = [(row["operation"], row["passed"], row["wrong"]) for row in rows]
    assert found == [("add_far", 0, 1), ("add", 1, 0), ("sum", 1, 0)]


def test_what_the_machine_lacks_is_counted_apart(tmp_path):
    report = _report(tmp_path, right=RIGHT, other=LEFT_OUT)
    assert {row["why"].split(",")[0]: row["functions"] for row in report.rows["left_out"]} == {
        "nothing is compared with constants": 1,
        "constants that need 64 bits": 1,
        "operations on the bits of 64-bit numbers": 1,
        "complex numbers": 1,
        "operations must be StableHLO's own": 1,
    }
    assert report.problems == []


def test_a_crash_fails(tmp_path, monkeypatch):
    monkeypatch.setattr("neuroncore_rtl.tb.tests.oracle.models.compile_graph", lambda *_: 1 / 0)
    report = _report(tmp_path, right=RIGHT)
    assert report.rows["functions"][0]["crashed"] == 2 and "ZeroDivisionError" in report.problems[0]


CASES = """
import os, unittest
import jax.numpy as jnp

class Cases(unittest.TestCase):
    def test_right(self): self.assertEqual(float(jnp.ones(3).sum()), 3)
    def test_wrong(self): self.assertEqual(float(jnp.ones(3).sum()), 4)
    def test_refused(self): jnp.linalg.qr(jnp.eye(2))
    def test_skipped(self): self.skipTest("elsewhere")
    def test_that_ends_the_process(self): os._exit(3)
"""


def test_each_case_has_an_outcome_and_an_aborted_process_is_one(tmp_path, monkeypatch):
    (tmp_path / "absl").mkdir()
    (tmp_path / "absl" / "flags.py").write_text("FLAGS = len\n")
    (tmp_path / "nn_test.py").write_text(CASES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), str(tmp_path))))
    importlib.invalidate_caches()
    files = platform.platform_tests(tmp_path)
    found = {name.removeprefix("Cases.test_"): rest for name, *rest in platform.outcomes(files[0], 0, 1)}
    outcomes = {name: outcome for name, (outcome, _) in found.items()}
    assert outcomes == {
        "right": "passed", "wrong": "failed", "refused": "refused", "skipped": "skipped",
        "that_ends_the_process": "aborted",
    }  # fmt: skip
    assert "not a call of Qr" in found["refused"][1]
    assert found["that_ends_the_process"][1] == "exit status 3"

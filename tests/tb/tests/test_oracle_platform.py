"""`make oracle SUITE=jax` on a small handwritten file."""

import importlib
import os

import pytest

from neuroncore_rtl.tb.tests.oracle import platform
from tests.house.tree import ROOT

pytest.importorskip("jax")

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

"""Waveforms: a test that fails after a simulation runs again on the same stimulus; if it fails, a waveform is kept."""

import re
import subprocess
import sys

import pytest
from vcdvcd import VCDVCD

from neuroncore_rtl import ROOT, SIM_BUILD


@pytest.fixture(scope="module")
def reports() -> dict[str, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/hdl/failing.py"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    _, *parts = re.split(r"^_+ (test_\w+) _+$", ended.stdout, flags=re.MULTILINE)
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED and len(parts) == 6, ended.stdout + ended.stderr
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_the_waveform_shows_the_wrong_value(reports):
    (name,) = re.findall(r"^waveform: (sim_build/.+)$", reports["test_wrong"], re.MULTILINE)
    assert name == "sim_build/failed/failing-test_wrong.vcd"
    waveform = VCDVCD(str(SIM_BUILD.parent / name))
    (SIM_BUILD.parent / name).unlink()
    values = {
        signal.split(".")[-1].partition("[")[0]: [int(value, 2) for _, value in waveform[signal].tv]
        for signal in waveform.signals
    }
    (b,) = map(int, re.findall(r"^E +AssertionError: b is (\d+)$", reports["test_wrong"], re.MULTILINE))
    assert (values["a"], values["b"], values["sum"]) == ([40, 41], [b], [0, 40 + b, 42 + b])


def test_a_test_that_does_not_fail_again_leaves_none(reports):
    assert "waveform: none, the test did not fail again\n" in reports["test_once"]
    assert not (SIM_BUILD / "failed" / "failing-test_once.vcd").exists()


def test_without_a_simulation_there_is_no_second_run(reports):
    assert "waveform:" not in reports["test_without_a_simulation"]

"""Rerun a test that fails after a simulation, in a separate process with Amaranth's engine, to get its waveform."""

import os
import re
import subprocess
import sys

import pytest

from neuroncore_rtl import SIM_BUILD
from tests.hdl import simulation


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore::amaranth.hdl.UnusedElaboratable:.*/tests/hdl/.*")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    item.stash[_SIMULATIONS] = simulation.simulations
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = yield
    has_simulated = simulation.simulations > item.stash.get(_SIMULATIONS, simulation.simulations)
    if call.when == "call" and report.failed and has_simulated and simulation.WAVEFORM not in os.environ:
        report.sections.append(("waveform", _waveform_of(item)))
    return report


_SIMULATIONS = pytest.StashKey[int]()


def _waveform_of(item: pytest.Item) -> str:
    """Run a test again, which repeats its random stimulus; return a report of the outcome."""
    test = re.sub(r"[^-+=\w\[\]]+", ".", item.nodeid.removeprefix("tests/hdl/").replace(".py::", "-"))
    path = SIM_BUILD / "failed" / f"{test}.vcd"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", item.nodeid]
    again = subprocess.run(
        command, cwd=item.config.rootpath, env=os.environ | {simulation.WAVEFORM: str(path)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    if again.returncode == pytest.ExitCode.TESTS_FAILED and path.exists():
        return f"waveform: {path.relative_to(SIM_BUILD.parent)}"
    path.unlink(missing_ok=True)
    if again.returncode == pytest.ExitCode.OK:
        return "waveform: none, the test did not fail again"
    return f"waveform: none, the test did not run again:\n{again.stdout}"

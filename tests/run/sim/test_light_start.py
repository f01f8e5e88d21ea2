"""Python start of a simulation without pytest, although cocotb imports it."""

import re
import subprocess
import sys
from pathlib import Path

from cocotb import regression
from cocotb_tools import _env
from pygpi import entry

from neuroncore_rtl.run.sim import light_start

PROGRAM = """
import sys
from neuroncore_rtl.run.sim.light_start import stand_in_for_pytest
stand_in_for_pytest()
from cocotb.regression import RegressionManager
RegressionManager.setup_pytest_assertion_rewriting()
print(*sorted(name for name in sys.modules if "pytest" in name))
"""


def test_cocotb_starts_and_no_module_of_pytest_is_loaded():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(light_start.USED)


def test_what_cocotb_asks_of_an_exception_is_there():
    asked = set(re.findall(r"pytest\.([a-z]\w*)\.Exception", Path(regression.__file__).read_text()))
    assert asked and asked <= light_start.USED["pytest"].keys()


def test_entries_are_those_of_cocotb_but_for_its_coverage(monkeypatch):
    asked = {}
    monkeypatch.setattr(_env, "get_list", lambda name, default: asked.update({name: default}) or [])
    entry.load_entry()
    coverage, *others = asked["PYGPI_USERS"]
    assert "coverage" in coverage
    assert light_start.ENTRIES.split(",")[1:] == others

"""Python start of a simulation without modules that cocotb imports."""

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
from neuroncore_rtl.run.sim.light_start import use_stubs
use_stubs()
from cocotb.regression import RegressionManager
RegressionManager.setup_pytest_assertion_rewriting()
print(*(name for name in sys.modules if any(word in name for word in ("pytest", "asyncio", "metadata", "b._version"))))
"""


def test_cocotb_starts_and_loads_only_stubs():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == set(light_start.USED)


def test_what_cocotb_asks_of_an_exception_is_there():
    asked = set(re.findall(r"pytest\.([a-z]\w*)\.Exception", Path(regression.__file__).read_text()))
    assert asked and asked <= light_start.USED["pytest"].keys()


def test_what_cocotb_asks_of_asyncio_is_there():
    texts = "".join(path.read_text() for path in Path(regression.__file__).parent.glob("*.py"))
    asked = set(", ".join(re.findall("^from asyncio import (.+)", texts, re.MULTILINE)).split(", "))
    assert asked and asked <= light_start.USED["asyncio"].keys()


def test_entries_are_those_of_cocotb_but_for_its_coverage(monkeypatch):
    asked = {}
    monkeypatch.setattr(_env, "get_list", lambda name, default: asked.update({name: default}) or [])
    entry.load_entry()
    coverage, *others = asked["PYGPI_USERS"]
    assert "coverage" in coverage
    assert light_start.ENTRIES.split(",")[1:] == others

"""What all tests share: the two simulators, of which Icarus is optional, random draws, and names of parameters."""

import os

import numpy as np
import pytest

from neuroncore_rtl.tb.sim.doctor import TOOLS, MissingTool, require
from neuroncore_rtl.tb.sim.simulation import SIMULATORS


@pytest.fixture(params=SIMULATORS)
def sim(request) -> str:
    """Each simulator in turn."""
    if request.param == "icarus":
        require("iverilog")
    return request.param


@pytest.fixture
def rng(request) -> np.random.Generator:
    """Draws from the seed SEED of the test's module, which is printed beside a failure."""
    print(f"seed {request.module.SEED}")
    return np.random.default_rng(request.module.SEED)


def pytest_make_parametrize_id(val) -> str | None:
    """Call a parameter that has a name, such as a format or an enumeration's member, by it."""
    name = getattr(val, "name", None)
    return name if isinstance(name, str) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    return (yield from _skipping_without_icarus())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    return (yield from _skipping_without_icarus())


def _skipping_without_icarus():
    """Skip any test, or fixture, that comes upon a missing Icarus, however deep inside; REQUIRE_ICARUS lets it fail."""
    try:
        return (yield)
    except MissingTool as error:
        if "iverilog" not in str(error) or os.environ.get("REQUIRE_ICARUS"):
            raise
        pytest.skip(str(error))


def pytest_report_header() -> str | None:
    icarus = TOOLS["iverilog"]
    return None if icarus.locate() else f"Icarus is missing: its tests are skipped (optional; {icarus.install})"

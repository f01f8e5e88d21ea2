"""What all tests share: the two simulators, of which Icarus is optional, random draws, and names of parameters."""

import gc
import os
import random

import numpy as np
import pytest

from neuroncore_rtl.run.sim.doctor import TOOLS, MissingTool, require
from neuroncore_rtl.run.sim.simulation import SIMULATORS

_SEED = 20260401
"""Of a module without a `SEED` of its own; the same in each run."""


def _seed_of(request) -> int:
    seed = getattr(request.module, "SEED", _SEED)
    print(f"seed {seed}")
    return seed


@pytest.fixture
def rng(request) -> np.random.Generator:
    """Random numbers, the same for every test of a module: its `SEED` is printed."""
    return np.random.default_rng(_seed_of(request))


@pytest.fixture
def py_rng(request) -> random.Random:
    """As `rng`, for choices among Python's objects and for words of more than 64 bits."""
    return random.Random(_seed_of(request))


@pytest.fixture(params=SIMULATORS)
def sim(request) -> str:
    """Each simulator in turn."""
    if request.param == "icarus":
        require("iverilog")
    return request.param


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


def pytest_collection_finish() -> None:
    """Let searches for garbage, of which each elaboration causes some, pass over what stays to the end: with all tests
    collected they were an eighth of the time."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Leave nothing frozen: libraries report what is not gone when the process ends."""
    gc.unfreeze()


def pytest_report_header() -> str | None:
    icarus = TOOLS["iverilog"]
    return None if icarus.locate() else f"Icarus is missing: its tests are skipped (optional; {icarus.install})"

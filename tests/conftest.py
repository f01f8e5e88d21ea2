"""Fixtures and hooks for all tests: simulators (Icarus is optional), random numbers, and parameter ids."""

import gc
import os
import random
import signal

import numpy as np
import pytest

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.sim import doctor, simulation
from neuroncore_rtl.run.sim.vectors import THREADS_VARIABLE

_SEED = 20260401
"""Seed of modules without `SEED`."""


def pytest_configure():
    """Let processes that tests start heed Ctrl-C, which a shell's background jobs ignore, and use one thread each.

    JAX keeps the code of its CPU functions, with which tests compare: XLA takes as long as all else in their tests.
    """
    gc.set_threshold(50_000, 20, 20)  # the default takes a tenth of the time
    os.environ[THREADS_VARIABLE] = "1"
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(SIM_BUILD / "jax")
    os.environ |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _seed_of(request) -> int:
    seed = getattr(request.module, "SEED", _SEED)
    print(f"seed {seed}")
    return seed


@pytest.fixture
def rng(request) -> np.random.Generator:
    """Return a random generator seeded with the module's `SEED`, which is printed."""
    return np.random.default_rng(_seed_of(request))


@pytest.fixture
def py_rng(request) -> random.Random:
    """Return a generator like `rng`, for choices of Python objects and for words of more than 64 bits."""
    return random.Random(_seed_of(request))


@pytest.fixture(params=simulation.SIMULATORS)
def sim(request) -> str:
    """Return each simulator."""
    if request.param == "icarus":
        doctor.require("iverilog")
    return request.param


def pytest_make_parametrize_id(val) -> str | None:
    """Use a parameter's `name`, for example of a format or an enumeration member, as its id."""
    name = getattr(val, "name", None)
    return name if isinstance(name, str) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """Skip a test or fixture that raises MissingTool for Icarus; with REQUIRE_ICARUS it fails."""
    try:
        return (yield)
    except doctor.MissingTool as error:
        if "iverilog" not in str(error) or os.environ.get("REQUIRE_ICARUS"):
            raise
        pytest.skip(str(error))


pytest_runtest_call = pytest_runtest_setup


def pytest_collection_finish() -> None:
    """Exclude objects that live to the end from garbage collection, which otherwise took an eighth of the time."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Unfreeze, because libraries report objects that remain when the process ends."""
    gc.unfreeze()


def pytest_report_header() -> str | None:
    icarus = doctor.TOOLS["iverilog"]
    return None if icarus.locate() else f"Icarus is missing: its tests are skipped (optional; {icarus.install})"

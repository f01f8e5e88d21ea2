"""Tests compile every model anew, without flags of the environment; without JAX they are skipped."""

from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if find_spec("jax") else ["*"]


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", "")
    monkeypatch.delenv("NEURON_CC_FLAGS", raising=False)

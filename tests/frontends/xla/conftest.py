"""Tests compile every model anew, without flags of the environment."""

import pytest


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", "")
    monkeypatch.delenv("NEURON_CC_FLAGS", raising=False)

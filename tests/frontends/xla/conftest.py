"""Tests compile every model anew."""

import pytest


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch):
    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", "")

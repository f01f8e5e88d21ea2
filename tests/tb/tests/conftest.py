"""Shared devices for TESTs, so that one build serves many tests."""

import pytest

from neuroncore_rtl.run import elementwise, job
from tests.tb.tests import broken_engines, instructions


@pytest.fixture
def shared_cores(monkeypatch):
    monkeypatch.setattr(job, "CoreDevice", lambda **options: broken_engines.broken_cores())


@pytest.fixture
def shared_engines(monkeypatch):
    monkeypatch.setattr(elementwise, "ElementwiseDevice", lambda config, engines: instructions.BOTH)

"""Shared devices for TESTs, so that one build serves many tests."""

import pytest

from neuroncore_rtl.run import elementwise, job
from tests.tb.tests.broken_engines import broken_cores
from tests.tb.tests.instructions import BOTH


@pytest.fixture
def shared_cores(monkeypatch):
    monkeypatch.setattr(job, "CoreDevice", lambda **options: broken_cores())


@pytest.fixture
def shared_engines(monkeypatch):
    monkeypatch.setattr(elementwise, "ElementwiseDevice", lambda config, engines: BOTH)

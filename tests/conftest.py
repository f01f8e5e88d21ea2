"""What all tests share."""

import os

import pytest

from neuroncore_rtl.tb.sim.doctor import MissingTool, require
from neuroncore_rtl.tb.sim.simulation import SIMULATORS


@pytest.fixture(params=SIMULATORS)
def sim(request) -> str:
    """Each simulator in turn; Icarus may be missing on a laptop, but not where REQUIRE_ICARUS or CI is set."""
    if request.param == "icarus":
        require_icarus()
    return request.param


def require_icarus() -> None:
    """Skip the test if Icarus is missing, or fail it under CI; the reason names the command that installs it."""
    try:
        require("iverilog")
    except MissingTool as error:
        if os.environ.get("REQUIRE_ICARUS") or os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))

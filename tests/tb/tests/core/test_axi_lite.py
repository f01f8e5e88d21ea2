"""The core's control port against cocotbext-axi's AXI4-Lite manager."""

from functools import cache

import pytest

from neuroncore_rtl.hdl.core_ports import core_counters
from neuroncore_rtl.hdl.host.registers import layout_places
from neuroncore_rtl.run.sim import simulation
from neuroncore_rtl.spec import host_map as at
from neuroncore_rtl.spec.config import PRESETS
from neuroncore_rtl.tb.tests.core import axi, axi_lite

CONFIG = PRESETS["tiny"]


@cache
def bench(sim: str) -> simulation.Build:
    return simulation.build(axi_lite.control_design(CONFIG), sim)


def there() -> dict[int, int]:
    values = {register.offset: 0 for register in at.HOST_REGISTERS}
    parameters = at.parameter_values(CONFIG)
    values |= {at.IDENTITY.offset: at.HOST_MAGIC, at.VERSION.offset: at.HOST_VERSION}
    values[at.PARAMETER_COUNT.offset] = len(parameters)
    values |= {at.PARAMETER_WORDS + 4 * n: value for n, value in enumerate(parameters.values())}
    counters = range(len(layout_places(core_counters(CONFIG))))
    return values | {at.counter_offset(number) + half: 0 for number in counters for half in (0, 4)}


@pytest.mark.parametrize(("sim", "pause"), [("verilator", 0.3), ("icarus", 0)])
def test_control_port(sim, pause):
    axi.run_axi(bench(sim), None, module="axi_lite_tests", there=[*there().items()], pause=pause, seed=3)

"""Fast start of Python in a simulation, without pytest.

cocotb imports pytest only for assertions and expected exceptions, which takes most of its start time; tests without
either find stubs instead.
"""

import sys
from types import ModuleType, SimpleNamespace

__all__ = ["ENTRIES", "stand_in_for_pytest"]

ENTRIES = ",".join(
    (
        "neuroncore_rtl.run.sim.light_start:stand_in_for_pytest",
        "cocotb.logging:_configure",
        "cocotb._init:init_package_from_simulation",
        "cocotb.regression:_run_regression",
    )
)
"""Value of cocotb's PYGPI_USERS: functions that it calls in order, this module's first."""


class _Never(Exception):
    """Stand-in for the exception classes of pytest; nothing raises it."""


USED = {
    "pytest": {
        "raises": SimpleNamespace(Exception=AssertionError),
        "skip": SimpleNamespace(Exception=_Never),
        "xfail": SimpleNamespace(Exception=_Never),
    },
    "_pytest": {},
    "_pytest.assertion": {"install_importhook": lambda config: None},
    "_pytest.config": {"Config": SimpleNamespace(fromdictargs=lambda *arguments: None)},
}
"""Parts of pytest that cocotb uses, by module: `raises` matches no exception, assertions are not rewritten."""


def stand_in_for_pytest() -> None:
    """Install the modules of `USED` instead of pytest; must be called before cocotb is imported."""
    for name, names in USED.items():
        module = ModuleType(name)
        vars(module).update(names)
        sys.modules[name] = module

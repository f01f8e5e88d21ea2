"""Fast start of Python in a simulation, without pytest, asyncio and the version of cocotb's package.

cocotb imports pytest only for assertions and expected exceptions, asyncio for two exceptions, and the reader of
packages to know its version, which together take most of its start time. It finds stubs instead.
"""

import sys
from types import ModuleType, SimpleNamespace

__all__ = ["ENTRIES", "use_stubs"]

ENTRIES = ",".join(
    (
        "neuroncore_rtl.run.sim.light_start:use_stubs",
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
    "asyncio": {
        "CancelledError": type("CancelledError", (BaseException,), {}),
        "InvalidStateError": type("InvalidStateError", (Exception,), {}),
    },
    "cocotb._version": {"__version__": "not read"},
}
"""Parts that cocotb uses, by module: `raises` of pytest matches no exception, assertions are not rewritten."""


def use_stubs() -> None:
    """Install the modules of `USED`; must be called before cocotb is imported."""
    for name, names in USED.items():
        module = ModuleType(name)
        vars(module).update(names)
        sys.modules[name] = module

"""How Python starts in a simulation whose test neither asserts nor expects exceptions: without pytest.

cocotb imports pytest for these two alone, which is most of its start; here it finds names in its place.
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
"""What cocotb calls in turn, as its environment variable PYGPI_USERS has it: the first, and those of its own."""


class _Never(Exception):
    """What nothing raises."""


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
"""What cocotb uses of pytest, by module: no exception is one of `pytest.raises`, and no assertion is rewritten."""


def stand_in_for_pytest() -> None:
    """Let cocotb, which must not be imported yet, find `USED` where it looks for pytest."""
    for name, names in USED.items():
        module = ModuleType(name)
        vars(module).update(names)
        sys.modules[name] = module

"""The timing model: in which cycle every record of an image is fetched, issued and retired, without simulating a cycle.

It is event-driven over instructions. Values play no part: what a program computes is golden's affair.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from neuroncore_rtl.golden.timing.prediction import Prediction, Timed

if TYPE_CHECKING:
    from neuroncore_rtl.golden.timing.controller import ControlPath, flow_path
    from neuroncore_rtl.golden.timing.memory import MemoryTiming
    from neuroncore_rtl.golden.timing.model import predict

__all__ = ["ControlPath", "MemoryTiming", "Prediction", "Timed", "flow_path", "predict"]

_MODULES = {"ControlPath": "controller", "MemoryTiming": "memory", "flow_path": "controller", "predict": "model"}
"""Where names are that need compiled functions, which are slow to import: few who import this package use them."""


def __getattr__(name: str):
    """Return one of these names when it is first asked for."""
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

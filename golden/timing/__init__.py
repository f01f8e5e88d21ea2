"""Timing model: the cycle in which every record of an image is fetched, issued and retired.

The model is event-driven, one or a few events per instruction. It computes no values.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from neuroncore_rtl.golden.arith import numba_cache
from neuroncore_rtl.golden.timing.control_path import ControlPath
from neuroncore_rtl.golden.timing.prediction import Prediction, Timed

if TYPE_CHECKING:
    from neuroncore_rtl.golden.timing.controller import flow_path
    from neuroncore_rtl.golden.timing.memory import MemoryTiming
    from neuroncore_rtl.golden.timing.model import predict

__all__ = ["ControlPath", "MemoryTiming", "Prediction", "Timed", "flow_path", "predict"]

_MODULES = {"MemoryTiming": "memory", "flow_path": "controller", "predict": "model"}
"""Modules of names that need compiled functions. They are slow to import, so they are imported on first use."""


def __getattr__(name: str):
    """Return a public name of this package, and import its module on the first use."""
    if name in _MODULES:
        numba_cache.provide()
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

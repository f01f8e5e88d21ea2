"""Host calls: Python code calls a kernel with numpy arrays, outside a recording."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from neuroncore_rtl.frontends.nki.indices.dtypes import dtype_of

__all__ = ["call", "running", "static_cast"]

Runner = Callable[[Callable, tuple[int, ...], tuple, dict], object]
"""Runs a kernel: (function, grid, arguments, options)."""

_RUNNER: ContextVar[Runner | None] = ContextVar("runner", default=None)


@contextmanager
def running(runner: Runner) -> Iterator[None]:
    """Install the runner of host calls in this context."""
    before = _RUNNER.set(runner)
    try:
        yield
    finally:
        _RUNNER.reset(before)


def call(function: Callable, grid: tuple[int, ...], args: tuple, options: dict) -> object:
    """Run a kernel called by the host; RuntimeError if no machine is installed."""
    runner = _RUNNER.get()
    if runner is None:
        rule = "a kernel must be run by run_nki, make sim TEST=nki, or within nki_machine"
        raise RuntimeError(f"{function.__name__}: {rule}, not called directly")
    return runner(function, grid, args, options)


def static_cast(x: np.ndarray, dtype: object) -> np.ndarray:
    """Cast a numpy array."""
    return np.asarray(x).astype(dtype_of(dtype).dtype)

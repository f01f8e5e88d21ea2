"""What hosts of kernels do: call them with arrays of numpy, and cast those.

A kernel that is called while none is recorded runs on the machine that :func:`running` has plugged in.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from neuroncore_rtl.frontends.nki.indices.dtypes import dtype_of

__all__ = ["call", "running", "static_cast"]

Runner = Callable[[Callable, tuple[int, ...], tuple, dict], object]
"""Runs a function of a kernel: (function, grid, arguments, options)."""

_RUNNER: ContextVar[Runner | None] = ContextVar("runner", default=None)


@contextmanager
def running(runner: Runner) -> Iterator[None]:
    """Let kernels that hosts call run by this within."""
    before = _RUNNER.set(runner)
    try:
        yield
    finally:
        _RUNNER.reset(before)


def call(function: Callable, grid: tuple[int, ...], args: tuple, options: dict) -> object:
    """Run a kernel that a host has called; RuntimeError if no machine is plugged in."""
    runner = _RUNNER.get()
    if runner is None:
        rule = "a kernel must be run by run_nki, make sim TEST=nki, or within nki_machine"
        raise RuntimeError(f"{function.__name__}: {rule}, not called by itself")
    return runner(function, grid, args, options)


def static_cast(x: np.ndarray, dtype: object) -> np.ndarray:
    """Return an array of numpy in another type."""
    return np.asarray(x).astype(dtype_of(dtype).dtype)

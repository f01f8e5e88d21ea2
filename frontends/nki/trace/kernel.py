"""`nki.jit` and other kernel wrappers: calling `kernel(...)` or `kernel[grid](...)` appends to the recording."""

import inspect
from collections.abc import Callable
from functools import partial
from numbers import Integral

from neuroncore_rtl.frontends.nki.indices.lines import from_kernel
from neuroncore_rtl.frontends.nki.trace import host
from neuroncore_rtl.frontends.nki.trace.recording import is_recording, recording

__all__ = ["Kernel", "is_simulation", "jit", "simulate_kernel"]

MODE = "nki_mode"
"""Attribute of a kernel's function: the `mode` of its decorator."""


class Kernel:
    """A kernel function with a launch grid: the number of programs along each axis; an empty grid is one program."""

    def __init__(self, function: Callable, grid: tuple[int, ...] = ()):
        self.function, self.grid = function, grid
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__signature__ = inspect.signature(function)

    def __getitem__(self, grid) -> "Kernel":
        return Kernel(self.function, grid if isinstance(grid, tuple) else (grid,))

    def __call__(self, *args, **options):
        if not is_recording():
            return host.call(self.function, self.grid, args, options)
        return recording().launch(self.function, _checked(self.grid), args, options)


@from_kernel
def _checked(grid: tuple) -> tuple[int, ...]:
    if not all(isinstance(n, Integral) and int(n) >= 1 for n in grid):
        raise ValueError(f"a grid must have integers of at least 1, not {grid!r}")
    return tuple(int(n) for n in grid)


def jit(function: Callable | None = None, **options) -> Callable:
    """Return a function as a kernel; of the options only `mode="simulation"` has an effect, see `is_simulation`."""
    if function is None:
        return partial(jit, **options)
    kernel = function if isinstance(function, Kernel) else Kernel(function)
    if "mode" in options:
        vars(kernel.function)[MODE] = options["mode"]
    return kernel


def is_simulation(function: Callable) -> bool:
    """Return whether a function is a kernel for AWS's simulator, which may return tiles on chip."""
    return getattr(function, MODE, None) == "simulation"


def simulate_kernel(kernel: Callable, *args, **options):
    """Call a kernel."""
    return jit(kernel)(*args, **options)

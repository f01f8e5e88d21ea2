"""`nki.jit` and other kernel wrappers: calling `kernel(...)` or `kernel[grid](...)` appends to the recording."""

import inspect
from collections.abc import Callable
from numbers import Integral

from neuroncore_rtl.frontends.nki.indices.lines import from_kernel
from neuroncore_rtl.frontends.nki.trace import host
from neuroncore_rtl.frontends.nki.trace.recording import is_recording, recording

__all__ = ["Kernel", "jit", "simulate_kernel"]


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
    """Return a function as a kernel; options are ignored."""
    if function is None:
        return jit
    return function if isinstance(function, Kernel) else Kernel(function)


def simulate_kernel(kernel: Callable, *args, **options):
    """Call a kernel."""
    return jit(kernel)(*args, **options)

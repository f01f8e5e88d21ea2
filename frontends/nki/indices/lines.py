"""The kernel's own line: where what is recorded, and what is refused, comes from."""

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TypeVar, cast

from neuroncore_rtl.kernels.program.source import Line, SourceLine, located, override_source, source_override

__all__ = ["from_kernel", "kernel_line"]

_Function = TypeVar("_Function", bound=Callable)

_OWN = tuple(str(Path(__file__).parents[1] / room) for room in ("dialects", "indices", "lowering", "runtime", "trace"))


def kernel_line() -> SourceLine:
    """Return the line of the call that is under way: the innermost one that is not in this folder. Kernels in folders
    below are kernels.
    """
    source = source_override()
    if source is not None:
        return source
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((*_OWN, "<")):
        frame = frame.f_back
    line = Line(frame.f_code.co_filename, frame.f_lineno)
    return SourceLine(line, line)


def from_kernel(function: _Function) -> _Function:
    """Let what a function that kernels call appends, and what it refuses, name the kernel's line."""
    checked = located(function)

    @wraps(function)
    def called(*args, **options):
        with override_source(kernel_line()):
            return checked(*args, **options)

    return cast(_Function, called)

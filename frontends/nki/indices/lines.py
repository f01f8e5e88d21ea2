"""Source lines of kernels, for recorded instructions and error messages."""

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
    """Return the line of the current call: the innermost frame outside the front end's own modules."""
    source = source_override()
    if source is not None:
        return source
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((*_OWN, "<")):
        frame = frame.f_back
    line = Line(frame.f_code.co_filename, frame.f_lineno)
    return SourceLine(line, line)


def from_kernel(function: _Function) -> _Function:
    """Attribute the instructions and errors of a function called by kernels to the kernel's line."""
    checked = located(function)

    @wraps(function)
    def called(*args, **options):
        with override_source(kernel_line()):
            return checked(*args, **options)

    return cast(_Function, called)

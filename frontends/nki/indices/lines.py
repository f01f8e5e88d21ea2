"""Source lines of kernels, for recorded instructions and error messages."""

import reprlib
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TypeVar, cast

import numpy as np

from neuroncore_rtl.kernels.source import Line, SourceLine, located, override_source, source_override

__all__ = ["explained", "from_kernel", "kernel_line"]

_Function = TypeVar("_Function", bound=Callable)

_MISTAKES = TypeError, AttributeError, LookupError, ArithmeticError, OSError
"""Exceptions that an argument of a wrong type causes within the project."""

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


_PROJECT = *_OWN, *(str(Path(__file__).parents[3] / room) for room in ("kernels", "spec")), np.__path__[0]


def explained(function: _Function, name: str = "") -> _Function:
    """Let a function raise ValueError for arguments of wrong types; exceptions of the kernel's functions remain."""

    @wraps(function)
    def called(*args, **options):
        try:
            return function(*args, **options)
        except _MISTAKES as error:
            frames = traceback.extract_tb(error.__traceback__)
            if hasattr(error, "source") or not all(frame.filename.startswith((*_PROJECT, "<")) for frame in frames):
                raise
            given = [*map(reprlib.repr, args), *(f"{key}={reprlib.repr(value)}" for key, value in options.items())]
            rule = f"{name or function.__name__}: arguments must be of the types that it takes"
            raise ValueError(f"{rule}, not ({', '.join(given)}): {error}") from error

    return cast(_Function, called)


def from_kernel(function: _Function) -> _Function:
    """Attribute the instructions and errors of a function called by kernels to the kernel's line."""
    checked = located(explained(function))

    @wraps(function)
    def called(*args, **options):
        with override_source(kernel_line()):
            return checked(*args, **options)

    return cast(_Function, called)

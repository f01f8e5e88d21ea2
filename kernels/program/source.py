"""Where in a kernel an instruction comes from: the lines that timelines and refusals name."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

__all__ = ["Line", "SourceLine", "caller", "line_stand_in", "located", "standing_in"]

_Function = TypeVar("_Function", bound=Callable)

_KERNELS = Path(__file__).parents[1]
_PROGRAM = str(_KERNELS / "program") + os.sep
_LIBRARY = tuple(str(_KERNELS / room) + os.sep for room in ("library", "tiling", "training"))
_BOTH = _PROGRAM, *_LIBRARY


class Line(NamedTuple):
    """A line of a file; as text the file's name and the number."""

    file: str
    number: int

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.number}"


class SourceLine(NamedTuple):
    """What called.

    Arguments:
        kernel: the innermost line outside this folder.
        user: the innermost one outside the library, too: the same, unless a kernel of the library called.
    """

    kernel: Line
    user: Line

    def __str__(self) -> str:
        return str(self.kernel) if self.kernel == self.user else f"{self.kernel}, from {self.user}"


_STANDING_IN: ContextVar[SourceLine | None] = ContextVar("standing_in", default=None)


@contextmanager
def standing_in(source: SourceLine | None) -> Iterator[None]:
    """Let `source` be what calls this folder within: a front end appends for lines that it has read before. None: the
    lines that do are, as for a kernel's own function that a front end calls."""
    before = _STANDING_IN.set(source)
    try:
        yield
    finally:
        _STANDING_IN.reset(before)


def line_stand_in() -> SourceLine | None:
    """Return what stands in for the lines that call this folder, if anything does."""
    return _STANDING_IN.get()


def caller() -> SourceLine:
    """Return the lines from which this folder was called, or which stand in for them."""
    source = line_stand_in()
    if source is not None:
        return source
    frame: Any = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_PROGRAM):
        frame = frame.f_back
    file, number = frame.f_code.co_filename, frame.f_lineno
    if not file.startswith(_LIBRARY):
        return _source(file, number, file, number)
    while frame.f_code.co_filename.startswith(_BOTH):
        frame = frame.f_back
    return _source(file, number, frame.f_code.co_filename, frame.f_lineno)


@lru_cache(4096)
def _source(kernel_file: str, kernel_number: int, user_file: str, user_number: int) -> SourceLine:
    """Return the one source of these lines: a program has many instructions of each."""
    return SourceLine(Line(kernel_file, kernel_number), Line(user_file, user_number))


def located(function: _Function) -> _Function:
    """Let what a function of this folder refuses end with the line that asked for it, as "(my_kernel.py:12)"."""

    @wraps(function)
    def checked(*args, **options):
        try:
            return function(*args, **options)
        except ValueError as refusal:
            if not hasattr(refusal, "source"):
                source = caller()
                setattr(refusal, "source", source)  # noqa: B010 (ValueError declares none)
                refusal.args = (f"{refusal} ({source})",)
            raise

    return cast(_Function, checked)

"""Source lines: the line of a kernel that appended an instruction, for timelines and error messages."""

import linecache
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from neuroncore_rtl.kernels.arguments import wrong_argument

__all__ = ["Line", "SourceLine", "caller", "located", "override_source", "source_override"]

_Function = TypeVar("_Function", bound=Callable)

_KERNELS = Path(__file__).parent
_PROGRAM = (str(_KERNELS / "program") + os.sep, __file__)
_LIBRARY = tuple(str(_KERNELS / room) + os.sep for room in ("library", "tiling", "training"))
_BOTH = *_PROGRAM, *_LIBRARY


class Line(NamedTuple):
    """Line of a source file, printed as file name and line number."""

    file: str
    number: int

    @property
    def code(self) -> str:
        """The statement that begins in the line, without indentation; empty if there is no such file."""
        text = ""
        for line in linecache.getlines(self.file)[self.number - 1 :]:
            text = f"{text} {line.strip()}".strip()
            if text.count("(") <= text.count(")"):
                break
        return text.replace("( ", "(")

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.number}"


class SourceLine(NamedTuple):
    """Source lines of a kernel and of a user that called a function of `kernels.program`.

    `kernel` is the innermost line outside that folder, `user` the innermost also outside the library; often the same.
    """

    kernel: Line
    user: Line

    def __str__(self) -> str:
        return str(self.kernel) if self.kernel == self.user else f"{self.kernel}, from {self.user}"


_OVERRIDE: ContextVar[SourceLine | None] = ContextVar("source_override", default=None)


@contextmanager
def override_source(source: SourceLine | None) -> Iterator[None]:
    """Make `caller` return `source` in the context; None for the lines on the call stack.

    A front end appends instructions for lines that it has parsed before.
    """
    before = _OVERRIDE.set(source)
    try:
        yield
    finally:
        _OVERRIDE.reset(before)


def source_override() -> SourceLine | None:
    """Return the source line that a front end has set, or None."""
    return _OVERRIDE.get()


def caller() -> SourceLine:
    """Return the source lines that called a function of `kernels.program`, or the line that a front end has set."""
    source = source_override()
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
    return SourceLine(Line(kernel_file, kernel_number), Line(user_file, user_number))


def located(function: _Function) -> _Function:
    """Decorate a function that users call.

    An error because of an argument whose type its annotation excludes becomes a ValueError that names the argument.
    Every ValueError ends with the caller's source line, as "(my_kernel.py:12)".
    """

    @wraps(function)
    def checked(*args, **options):
        try:
            return function(*args, **options)
        except Exception as error:
            # A refusal of this project says what must hold; all other errors are Python's or numpy's.
            own = isinstance(error, ValueError) and " must " in str(error)
            refusal = None if own else wrong_argument(function, args, options)
            if refusal is None and isinstance(error, ValueError):
                refusal = error
            if refusal is None:
                raise
            if not hasattr(refusal, "source"):
                source = caller()
                setattr(refusal, "source", source)  # noqa: B010 (ValueError declares none)
                refusal.args = (f"{refusal} ({source})",)
            if refusal is error:
                raise
            raise refusal from None

    return cast(_Function, checked)

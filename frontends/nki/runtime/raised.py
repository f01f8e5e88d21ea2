"""Errors of kernels for their authors: one sentence, or only the stack frames of the kernel's own files."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neuroncore_rtl import ROOT
from neuroncore_rtl.run.settings import UsageError

__all__ = ["report_errors"]

_EXAMPLES = ROOT / "frontends" / "nki" / "examples"
_OWN = tuple(ROOT / folder for folder in ("frontends", "golden", "kernels", "spec", "run", "neuroncore_rtl", ".venv"))


@contextmanager
def report_errors() -> Iterator[None]:
    """Convert an exception that a kernel raises in this context, while it is recorded.

    Raises:
        UsageError: with a refused call's message, which ends with the kernel's line, or with the kernel's traceback.
    """
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        theirs = [frame for frame in frames if _is_kernels(frame)]
        if hasattr(error, "source") or (isinstance(error, ValueError) and not theirs):
            raise UsageError(str(error)) from error
        if not theirs:
            raise  # a bug of this project
        lines = ["Traceback (most recent call last):\n", *traceback.format_list(theirs)]
        lines += traceback.format_exception_only(error)
        last = frames[-1]
        within = "" if last in theirs else f"(in {Path(last.filename).name}:{last.lineno} of this project)\n"
        raise UsageError(f"the kernel raises {type(error).__name__}\n{''.join(lines)}{within}".rstrip()) from error


def _is_kernels(frame: traceback.FrameSummary) -> bool:
    path = Path(frame.filename)
    ours = frame.filename.startswith("<") or any(path.is_relative_to(folder) for folder in _OWN)
    return not ours or path.is_relative_to(_EXAMPLES)

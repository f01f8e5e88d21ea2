"""What a kernel raises, as its author wants to see it: the frames of the kernel's own files, or a sentence."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neuroncore_rtl import ROOT
from neuroncore_rtl.run.settings import UsageError

__all__ = ["told"]

_EXAMPLES = ROOT / "frontends" / "nki" / "examples"
_OWN = tuple(ROOT / folder for folder in ("frontends", "golden", "kernels", "spec", "run", "neuroncore_rtl", ".venv"))


@contextmanager
def told() -> Iterator[None]:
    """Report what a kernel, or a call of it, raises while it is recorded.

    Raises:
        UsageError: with the sentence of a call that was refused, which ends with the kernel's line, or else with the
            kernel's own traceback.
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
            raise  # a mistake of this project's
        lines = ["Traceback (most recent call last):\n", *traceback.format_list(theirs)]
        lines += traceback.format_exception_only(error)
        last = frames[-1]
        within = "" if last in theirs else f"(in {Path(last.filename).name}:{last.lineno} of this project)\n"
        raise UsageError(f"the kernel raises {type(error).__name__}\n{''.join(lines)}{within}".rstrip()) from error


def _is_kernels(frame: traceback.FrameSummary) -> bool:
    """Whether a frame is of the user's files, or of a kernel that ships."""
    path = Path(frame.filename)
    ours = frame.filename.startswith("<") or any(path.is_relative_to(folder) for folder in _OWN)
    return not ours or path.is_relative_to(_EXAMPLES)

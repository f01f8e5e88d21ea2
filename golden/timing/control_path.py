"""Control path: cycles of a control program outside of the sections that it runs."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ControlPath"]


@dataclass(frozen=True)
class ControlPath:
    """Cycles of a control program outside of `run_section` (`kernels/control/runtime.c`).

    Arguments:
        first: cycles from the start of `main` to the first section.
        between: cycles from the end of a section to the next section, without clearing semaphores; a sequence if
            they differ between sections.
        last: cycles from the end of the last section to the return of `main`.
        clear: cycles for each cleared semaphore.
        to_clear: cycles of one preparation before the first cleared semaphore.
    """

    first: int
    between: int | Sequence[int]
    last: int
    clear: int = 4
    to_clear: int = 4

    def before(self, run: int) -> int:
        """Return the cycles from the end of section run `run` - 1, or from the start of `main` for 0, to run `run`."""
        if run == 0:
            return self.first
        return self.between if isinstance(self.between, int) else self.between[run - 1]

"""Ctrl-C while JAX calls the plug-in: KeyboardInterrupt rises in the user's code, never in the middle of JAX's own."""

import signal
import threading
from _thread import interrupt_main
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

__all__ = ["Interrupts", "interruptible"]


def interruptible(work: Callable, *arguments: Any) -> Any:
    """Return work's result; the only place of the plug-in where KeyboardInterrupt may rise."""
    return work(*arguments)


class Interrupts:
    """Interrupts that wait for the end of a call; `entry` is the code of the function that JAX calls."""

    def __init__(self, entry: CodeType):
        self.entry, self.waiting = entry, False
        # A handler of the user's stays.
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        inner = frame
        while inner is not None and inner.f_code is not interruptible.__code__:
            if inner.f_code is self.entry:
                self.waiting = True
                return
            inner = inner.f_back
        signal.default_int_handler(number, frame)

    def again(self) -> Any:
        """Return an iterator; unpacking it lets a waiting interrupt rise after the caller's return.

        Python handles signals after calls of functions, but not after an iterator's next item.
        """
        waiting, self.waiting = self.waiting, False
        return map(interrupt_main, (signal.SIGINT,) if waiting else ())

"""Ctrl-C while JAX calls the plug-in: KeyboardInterrupt rises in the user's code, never in the middle of JAX's own."""

import signal
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from neuroncore_rtl.frontends.pjrt.entries import WAITING
from neuroncore_rtl.run.report import only_long

__all__ = ["interruptible", "postpone_interrupts"]


def interruptible(work: Callable, *arguments: Any) -> Any:
    """Return work's result; the only place of the plug-in where KeyboardInterrupt may rise."""
    with only_long():
        return work(*arguments)


def postpone_interrupts(entry: CodeType) -> None:
    """Let interrupts wait for the end of each call of `entry`; a handler of the user's stays."""

    def handle(number: int, frame: FrameType | None) -> None:
        inner = frame
        while inner is not None and inner.f_code is not interruptible.__code__:
            if inner.f_code is entry:
                WAITING.value = 1
                return
            inner = inner.f_back
        signal.default_int_handler(number, frame)

    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, handle)

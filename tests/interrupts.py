"""Ctrl-C for processes that tests start."""

import signal

__all__ = ["heed_ctrl_c"]


def heed_ctrl_c() -> None:
    """Let Ctrl-C end this process; a shell's background jobs, and their children, ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)

"""Pause of Python's garbage collector."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collector_paused"]


@contextmanager
def collector_paused() -> Iterator[None]:
    """Disable the collector of cyclic garbage; a context manager or decorator.

    Lowering creates many objects, none of them garbage. Scanning them repeatedly would take a fifth of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()

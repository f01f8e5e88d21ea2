"""Python's collector of cyclic garbage, and when it would look in vain."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collector_paused"]


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the collector from running within; also a decorator.

    A layout makes a dozen objects of every instruction, all of which stay and none of which is part of a cycle. The
    collector would take a fifth of its time to find that out, again with every quarter that comes to what is there.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()

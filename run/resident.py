"""Memory of this process."""

import resource
import sys

__all__ = ["most_resident"]


def most_resident() -> int:
    """Return the most bytes of memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

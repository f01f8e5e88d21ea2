"""Commands for the running results of reductions."""

from enum import Enum

__all__ = ["ReduceCommand"]


class ReduceCommand(Enum):
    """Commands as in `nisa.reduce_cmd`: keep, reset, continue, reset and reduce, start from memory and reduce."""

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4

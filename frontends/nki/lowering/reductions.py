"""Commands for the running results of reductions."""

from enum import Enum

__all__ = ["ReduceCommand"]


class ReduceCommand(Enum):
    """Commands as in `nisa.reduce_cmd`.

    `idle` keeps the running results, `reset` resets them, `reduce` continues them, `reset_reduce` resets them and then
    reduces, `load_reduce` starts from values in memory and reduces.
    """

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4

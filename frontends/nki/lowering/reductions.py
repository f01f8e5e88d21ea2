"""What is done with the registers that sums are kept in."""

from enum import Enum

__all__ = ["ReduceCommand"]


class ReduceCommand(Enum):
    """`nisa.reduce_cmd`: leave them, start from zero, go on, start and store, start from what is in memory."""

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4

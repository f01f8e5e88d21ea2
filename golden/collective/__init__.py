"""Collectives: equations for their results, and an interpreter of the lists of collectives of several cores."""

from neuroncore_rtl.golden.collective.errors import CollectiveError, Deadlock
from neuroncore_rtl.golden.collective.group import execute_group
from neuroncore_rtl.golden.collective.order import channel_of, last_rank, orders, segment_of
from neuroncore_rtl.golden.collective.reduction import reduce_blocks
from neuroncore_rtl.golden.collective.system import execute_lists

__all__ = [
    "CollectiveError", "Deadlock", "channel_of", "execute_group", "execute_lists", "last_rank", "orders",
    "reduce_blocks", "segment_of",
]  # fmt: skip

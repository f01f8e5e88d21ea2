"""Collectives as equations on the blocks of all ranks, and as an interpreter of what a set of cores executes."""

from neuroncore_rtl.golden.collective.errors import CollectiveError, Deadlock
from neuroncore_rtl.golden.collective.group import execute
from neuroncore_rtl.golden.collective.order import channel_of, last_rank, orders, segment_of
from neuroncore_rtl.golden.collective.reduction import reduce_blocks
from neuroncore_rtl.golden.collective.system import run

__all__ = [
    "CollectiveError", "Deadlock", "channel_of", "execute", "last_rank", "orders", "reduce_blocks", "run",
    "segment_of",
]  # fmt: skip

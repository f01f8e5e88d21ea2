"""Steps of a collective schedule, one segment each."""

from amaranth import unsigned
from amaranth.lib import data, enum

from neuroncore_rtl.hdl.collective.ops import ELEMENTS_BITS
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.link import CORE_BITS

__all__ = ["CollectiveStep", "Phase"]


class Phase(enum.Enum, shape=unsigned(2)):
    """Kind of a step; the module `hdl.collective.schedule` describes each."""

    SEND = 0
    OWN = 1
    REDUCE = 2
    GATHER = 3


class CollectiveStep(data.Struct):
    """A step; its segment is not yet clipped to the channel's part.

    Fields:
        first: index of the segment's first element in its block.
        load_block, store_block: byte offset of the block to load from `src`; of the block to store to `dst`.
        send_peer, receive_peer: core to send to; core to receive from.
        final: the last reduction of the segment.
        ends: this core is the last one that needs the received segment, and does not forward it.
        token: the step transfers a token: one element that is not in memory; see `hdl.collective.schedule`.
    """

    phase: Phase
    first: unsigned(ELEMENTS_BITS + 1)
    load_block: unsigned(HBM_ADDRESS_BITS)
    store_block: unsigned(HBM_ADDRESS_BITS)
    send_peer: unsigned(CORE_BITS)
    receive_peer: unsigned(CORE_BITS)
    final: unsigned(1)
    ends: unsigned(1)
    token: unsigned(1)

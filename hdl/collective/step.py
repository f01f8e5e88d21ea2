"""What passes inside a Schedule: steps, each of one segment."""

from amaranth import unsigned
from amaranth.lib import data, enum

from neuroncore_rtl.hdl.collective.ops import ELEMENTS_BITS
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS
from neuroncore_rtl.spec.link import CORE_BITS

__all__ = ["CollectiveStep", "Phase"]


class Phase(enum.Enum, shape=unsigned(2)):
    """What a step does; see :mod:`hdl.collective.schedule`."""

    SEND = 0
    OWN = 1
    REDUCE = 2
    GATHER = 3


class CollectiveStep(data.Struct):
    """A step whose segment has still to be clipped to the channel's part. first: element of the block. load_block,
    store_block: bytes from src and dst to the block. send_peer, receive_peer: who else is in it. final: the last
    reduction of its segment. ends: the last core that what comes is for. token: one element, not in memory."""

    phase: Phase
    first: unsigned(ELEMENTS_BITS + 1)
    load_block: unsigned(HBM_ADDRESS_BITS)
    store_block: unsigned(HBM_ADDRESS_BITS)
    send_peer: unsigned(CORE_BITS)
    receive_peer: unsigned(CORE_BITS)
    final: unsigned(1)
    ends: unsigned(1)
    token: unsigned(1)

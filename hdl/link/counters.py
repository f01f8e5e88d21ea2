"""Counters of a link end."""

from amaranth import unsigned
from amaranth.lib import data

from neuroncore_rtl.spec.isa.engine import COUNTER_BITS

__all__ = ["LinkCounters"]


class LinkCounters(data.Struct):
    """Counters of a link end since reset.

    Fields:
        flits: flits accepted from the router, without replays.
        replays: replays that this end started.
        crc_errors: frames with a wrong CRC.
        discarded: intact flits discarded because an earlier flit was missing.
        idle: cycles in which a frame without a flit is sent.
        stalled: cycles in which a flit is pending and none is accepted, for lack of credits or replay memory.
    """

    flits: unsigned(COUNTER_BITS)
    replays: unsigned(COUNTER_BITS)
    crc_errors: unsigned(COUNTER_BITS)
    discarded: unsigned(COUNTER_BITS)
    idle: unsigned(COUNTER_BITS)
    stalled: unsigned(COUNTER_BITS)

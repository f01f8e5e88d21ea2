"""Counters of a link end."""

from amaranth import unsigned
from amaranth.lib import data

from neuroncore_rtl.spec.isa.engine import COUNTER_BITS

__all__ = ["LinkCounters"]


class LinkCounters(data.Struct):
    """Counters of a link end since reset.

    Fields:
        flits: flits accepted from the router; replays do not count.
        replays: replays started by this end.
        crc_errors: frames with a wrong CRC.
        discarded: good flits discarded because an earlier one was missing.
        idle: cycles with a frame without a flit.
        stalled: cycles with a flit pending and none accepted, for lack of credits or replay memory.
    """

    flits: unsigned(COUNTER_BITS)
    replays: unsigned(COUNTER_BITS)
    crc_errors: unsigned(COUNTER_BITS)
    discarded: unsigned(COUNTER_BITS)
    idle: unsigned(COUNTER_BITS)
    stalled: unsigned(COUNTER_BITS)

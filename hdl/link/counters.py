"""What an end of a link counts."""

from amaranth import unsigned
from amaranth.lib import data

from neuroncore_rtl.spec.isa.engine import COUNTER_BITS

__all__ = ["LinkCounters"]


class LinkCounters(data.Struct):
    """Counters of an end of a link since reset.

    flits: taken from the router to be sent, each counted once. replays: times that this end went back and sent again
    from the first flit missing. crc_errors: frames that came with a wrong check. discarded: good flits that were not
    taken, as one before them was missing. idle: cycles whose frame carries no flit. stalled: cycles with a flit waiting
    and none taken, for want of credits or of room in the replay memory.
    """

    flits: unsigned(COUNTER_BITS)
    replays: unsigned(COUNTER_BITS)
    crc_errors: unsigned(COUNTER_BITS)
    discarded: unsigned(COUNTER_BITS)
    idle: unsigned(COUNTER_BITS)
    stalled: unsigned(COUNTER_BITS)

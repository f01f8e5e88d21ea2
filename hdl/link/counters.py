"""What an end of a link counts."""

from amaranth import unsigned
from amaranth.lib import data

__all__ = ["LinkCounters"]


class LinkCounters(data.Struct):
    """Counters of an end of a link since reset.

    flits: taken from the router to be sent, each counted once. replays: times that this end went back and sent again
    from the first flit missing. crc_errors: frames that came with a wrong check. discarded: good flits that were not
    taken, as one before them was missing. idle: cycles whose frame carries no flit. stalled: cycles with a flit waiting
    and none taken, for want of room here or at the other end.
    """

    flits: unsigned(48)
    replays: unsigned(48)
    crc_errors: unsigned(48)
    discarded: unsigned(48)
    idle: unsigned(48)
    stalled: unsigned(48)

"""What a collective engine counts."""

from amaranth import unsigned
from amaranth.lib import data

__all__ = ["ChannelCounters", "CollectiveCounters"]


class ChannelCounters(data.Struct):
    """Counters of a channel since reset, in cycles unless said otherwise.

    sent, received: flits of data. wait_ready: the next core has not begun. wait_credit: its buffer is full, as far as
    this end knows. wait_link: a flit was offered to the router and not taken. wait_net: the previous core owes beats,
    and none is there. wait_load: HBM owes beats, and none is there. wait_store: results were offered to be written, and
    not taken.
    """

    sent: unsigned(48)
    received: unsigned(48)
    wait_ready: unsigned(48)
    wait_credit: unsigned(48)
    wait_link: unsigned(48)
    wait_net: unsigned(48)
    wait_load: unsigned(48)
    wait_store: unsigned(48)


class CollectiveCounters(data.Struct):
    """busy: cycles with an instruction waiting or under way. channel0, channel1: :class:`ChannelCounters`."""

    busy: unsigned(48)
    channel0: ChannelCounters
    channel1: ChannelCounters

"""What a collective engine counts."""

from amaranth import unsigned
from amaranth.lib import data

from neuroncore_rtl.spec.isa.engine import COUNTER_BITS

__all__ = ["CHANNEL_EVENTS", "ChannelCounters", "CollectiveCounters"]


class ChannelCounters(data.Struct):
    """Counters of a channel since reset, in cycles unless said otherwise.

    sent, received: flits of data. wait_ready: the next core has not begun. wait_credit: its buffer is full, as far as
    this end knows. wait_link: a flit was offered to the router and not taken. wait_net: the previous core owes beats,
    and none is there. wait_load: HBM owes beats, and none is there. wait_store: results were offered to be written, and
    not taken.
    """

    sent: unsigned(COUNTER_BITS)
    received: unsigned(COUNTER_BITS)
    wait_ready: unsigned(COUNTER_BITS)
    wait_credit: unsigned(COUNTER_BITS)
    wait_link: unsigned(COUNTER_BITS)
    wait_net: unsigned(COUNTER_BITS)
    wait_load: unsigned(COUNTER_BITS)
    wait_store: unsigned(COUNTER_BITS)


CHANNEL_EVENTS = data.StructLayout({name: 1 for name, _ in ChannelCounters.as_shape()})
"""What each of them counts, in a cycle."""


class CollectiveCounters(data.Struct):
    """busy: cycles with an instruction waiting or under way. channel0, channel1: :class:`ChannelCounters`."""

    busy: unsigned(COUNTER_BITS)
    channel0: ChannelCounters
    channel1: ChannelCounters

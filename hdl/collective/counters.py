"""Counters of a collective engine."""

from amaranth import unsigned
from amaranth.lib import data

from neuroncore_rtl.spec.isa.engine import COUNTER_BITS

__all__ = ["CHANNEL_EVENTS", "ChannelCounters", "CollectiveCounters"]


class ChannelCounters(data.Struct):
    """Counters of a channel since reset, in cycles except for `sent` and `received`, which are flits of data.

    Fields:
        wait_ready: cycles in which a send operation waits for READY of the next core.
        wait_credit: cycles in which a beat to send has no credit for the next core's buffer.
        wait_link: cycles in which the router does not accept a flit.
        wait_net: cycles in which beats of the previous core are outstanding and none is buffered.
        wait_load: cycles in which HBM beats are outstanding and none is buffered.
        wait_store: cycles in which a result to store stalls because the Storer does not accept it.
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
"""Increments of `ChannelCounters` in a cycle, one bit per counter."""


class CollectiveCounters(data.Struct):
    """Counters of both channels, and `busy`: cycles with an instruction pending or in flight."""

    busy: unsigned(COUNTER_BITS)
    channel0: ChannelCounters
    channel1: ChannelCounters

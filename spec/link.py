"""NeuronLink: what crosses a link, and who is who.

A flit is `link_bytes` of data with a header beside it; every flit is a packet of its own. On the wire a frame carries
at most one flit, and always what the other end needs to know: how far this end has received, and the credits that it
has returned. The widths here are those of the model: the published machine says nothing of its flits.
"""

import enum

from neuroncore_rtl.spec.isa.fields import Layout, width_of

__all__ = [
    "CHANNELS", "CORES_PER_CHIP", "CORE_BITS", "CRC_BITS", "CRC_POLYNOMIAL", "DIRECTIONS", "FLIT_HEADER",
    "FLIT_HEADER_BITS", "MAX_CORES", "SEQUENCE_BITS", "VIRTUAL_CHANNELS", "FlitKind",
]  # fmt: skip

CORES_PER_CHIP = 2
"""Cores of a chip, as on Trainium and Inferentia2; core c is on chip c // 2."""

MAX_CORES = 128
"""Cores of an instance, at most."""

CORE_BITS = 7
"""Bits of a core's number."""

DIRECTIONS = 4
"""Links of a chip, at most: of a torus; a ring has the first two."""

CHANNELS = 2
"""Halves of a collective engine: channel 0 sends to the next rank and channel 1 to the previous one. Each has its own
port to the router, so that a core can use both directions of a ring at once. The channel is also the tie-break of the
route to a chip that is equally far both ways: 0 goes up, 1 goes down."""

VIRTUAL_CHANNELS = 2
"""Of a link: 0 until a flit passes the dateline of its ring, 1 from there on."""


class FlitKind(enum.IntEnum):
    """What a flit says to the channel that it is for."""

    DATA = 0
    """`link_bytes` of a tensor."""
    READY = 1
    """From a receiver to its sender: its buffer is free, and the data say which collective it takes part in."""
    GRANT = 2
    """From a receiver to its sender: half of the buffer has become free. The data means nothing."""
    REFUSE = 3
    """From a sender to its receiver: the collective announced is not the one that I am in, which is this (the data)."""


FLIT_HEADER: Layout = (
    ("destination", CORE_BITS),
    ("source", CORE_BITS),
    ("channel", 1),
    ("kind", 2),
)
"""Beside the data of a flit, from the least significant bit up: cores of the instance, the channel, a `FlitKind`."""

FLIT_HEADER_BITS = width_of(FLIT_HEADER)

SEQUENCE_BITS = 8
"""Bits of a flit's sequence number on a link, and of the counts of credits."""

CRC_BITS = 32
CRC_POLYNOMIAL = 0x04C11DB7
"""CRC-32 of IEEE 802.3: reflected, initial value and final inversion all ones, as zlib's crc32."""

assert MAX_CORES <= 1 << CORE_BITS

"""NeuronLink: flits, frames and numbering of cores.

A frame on the wire carries at most one flit, and the receive state of its sender: the last sequence number that it
received and the credits that it returned. The published machine does not document its flits.
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

CORE_BITS = 7
"""Width of a core's index."""

DIRECTIONS = 4
"""Links per chip in a torus; a ring has the first two."""

CHANNELS = 2
"""Halves of a collective engine: channel 0 sends to the next rank, channel 1 to the previous one.

Each channel has its own port to the router, so a core can use both directions of a ring at the same time.
"""

VIRTUAL_CHANNELS = 2


class FlitKind(enum.IntEnum):
    """Kind of a flit: the meaning of its data."""

    DATA = 0
    """`link_bytes` of a tensor."""
    READY = 1
    """From receiver to sender: the buffer is free; the data hold the signature of the receiver's collective."""
    GRANT = 2
    """From receiver to sender: half of the buffer has become free. The data are undefined."""
    REFUSE = 3
    """From sender to receiver: the sender executes another collective; the data hold its signature."""


FLIT_HEADER: Layout = (
    ("destination", CORE_BITS),
    ("source", CORE_BITS),
    ("channel", 1),
    ("kind", 2),
)
"""Header of a flit, from the least significant bit up: destination and source core, channel, `FlitKind`."""

FLIT_HEADER_BITS = width_of(FLIT_HEADER)

SEQUENCE_BITS = 8
"""Width of a flit's sequence number on a link, and of the counts of credits."""

CRC_BITS = 32
CRC_POLYNOMIAL = 0x04C11DB7
"""CRC-32 of IEEE 802.3: reflected, initial value and final inversion all ones, as zlib's crc32."""

assert MAX_CORES <= 1 << CORE_BITS

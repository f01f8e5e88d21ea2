"""The read port of an on-chip memory: all partitions in lockstep at one address."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ADDRESS_BITS", "ReadPort"]

ADDRESS_BITS = 18
"""Byte address in a partition; 192 KiB of SBUF need 18 bits."""


class ReadPort(wiring.Signature):
    """Seen from the reader.

    Arguments:
        partitions: partitions read at once.
        width: bits per partition and access; the address is a multiple of width / 8 bytes.

    Members:
        valid, address: a request, which must stay until it is taken; address in bytes.
        ready: the request is taken at the end of this cycle; the memory stalls the reader by keeping it low.
        data: `width` bits of each partition, partition 0 in the lowest, `LATENCY` cycles after the request was taken.
    """

    LATENCY = 1
    """Cycles from a request that is taken to its data."""

    def __init__(self, partitions: int, width: int):
        self.partitions = partitions
        self.width = width
        super().__init__(
            {
                "valid": Out(1),
                "address": Out(ADDRESS_BITS),
                "ready": In(1),
                "data": In(width * partitions),
            }
        )

"""Port signatures of the on-chip memories.

An engine port accesses all partitions in lockstep at one address. A line port accesses adjacent bytes of one partition.
"""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.primitives.enumeration import typed_enum
from neuroncore_rtl.spec import isa, timing

__all__ = [
    "ADDRESS_BITS",
    "PARTITION_BITS",
    "LineRead",
    "LineWrite",
    "OnChipStorage",
    "PsumWritePort",
    "ReadPort",
    "Storage",
    "WritePort",
]

ADDRESS_BITS = 18
"""Bits of a byte address in a partition; 192 KiB of SBUF need 18."""

PARTITION_BITS = 10
"""Bits of a partition's number."""


Storage = typed_enum("Storage", isa.Storage, 2)
"""Memory of a tensor, with the codes of `spec.isa.Storage`."""

OnChipStorage = typed_enum("OnChipStorage", isa.Storage, 1)
"""SBUF or PSUM, the memories of a core."""


class ReadPort(wiring.Signature):
    """Engine read port, seen from the reader.

    Arguments:
        partitions: number of partitions.
        width: bits per partition and access; the address must be a multiple of width / 8 bytes.
        late: `port_latency` of the machine; 0 at the PSUM ports of the tensor engine.

    Members:
        valid: a request; stable until accepted.
        address: byte address; stable until accepted.
        ready: the request is accepted at the end of this cycle.
        data: `width` bits per partition, partition 0 lowest, `LATENCY` cycles after acceptance.
    """

    LATENCY = timing.READ_LATENCY
    """Cycles from an accepted request to its data, by `port_latency`."""

    def __init__(self, partitions: int, width: int, late: int = 0):
        self.partitions = partitions
        self.width = width
        self.latency = self.LATENCY[late]
        super().__init__(
            {
                "valid": Out(1),
                "address": Out(ADDRESS_BITS),
                "ready": In(1),
                "data": In(width * partitions),
            }
        )


class WritePort(wiring.Signature):
    """Engine write port, seen from the writer: one 32-bit word per partition of either memory.

    Arguments:
        partitions: number of SBUF partitions; those beyond PSUM's are never enabled at PSUM.

    Members:
        valid: a write; stable until accepted, with all other members.
        address: in bytes, a multiple of 4.
        enable: one bit per partition.
        mask: one bit per byte of the word, for all partitions.
        data: words, partition 0 lowest.
        ready: the write is accepted at the end of this cycle; reads accepted later see it.
    """

    def __init__(self, partitions: int):
        self.partitions = partitions
        super().__init__(
            {
                "valid": Out(1),
                "storage": Out(OnChipStorage),
                "address": Out(ADDRESS_BITS),
                "enable": Out(partitions),
                "mask": Out(4),
                "data": Out(32 * partitions),
                "ready": In(1),
            }
        )


class PsumWritePort(wiring.Signature):
    """PSUM write port: a `WritePort` without `storage`.

    Arguments:
        columns: number of PSUM partitions.
    """

    def __init__(self, columns: int):
        self.columns = columns
        members = dict(WritePort(columns).members)
        del members["storage"]
        super().__init__(members)


class LineRead(wiring.Signature):
    """Line read port of DMA engines and the controller's window, seen from the reader.

    Arguments:
        size: bytes per access, a power of two up to `spec.config.LINE_BYTES`.
        late: `port_latency` of the machine.

    Members:
        valid: a request; stable until accepted, with all other members.
        address: in bytes, a multiple of `size`.
        word: for PSUM, index of the 4-byte word to access in the `size` bytes.
        ready: the request is accepted at the end of this cycle.
        data: the bytes, `latency` cycles after acceptance. PSUM reads only `word`, at its position; the rest is
            undefined.
    """

    LATENCY = timing.LINE_READ_LATENCY
    """Cycles from an accepted request to its data, by `port_latency`."""

    def __init__(self, size: int, late: int = 0):
        self.size = size
        self.latency = self.LATENCY[late]
        super().__init__(
            {
                "valid": Out(1),
                "storage": Out(OnChipStorage),
                "partition": Out(PARTITION_BITS),
                "address": Out(ADDRESS_BITS),
                "word": Out(4),
                "ready": In(1),
                "data": In(8 * size),
            }
        )


class LineWrite(wiring.Signature):
    """Line write port, seen from the writer; other members as in `LineRead`.

    Arguments:
        size: bytes per access; see `LineRead`.

    Members:
        valid: a write; stable until accepted, but behind a `LineBuffer` a stalled one may change.
        data: bytes.
        mask: bytes to write; at PSUM all in one aligned word of 4.
        ready: the write is accepted at the end of this cycle; reads accepted later see it, behind a line buffer only
            after `written`.
    """

    def __init__(self, size: int):
        self.size = size
        super().__init__(
            {
                "valid": Out(1),
                "storage": Out(OnChipStorage),
                "partition": Out(PARTITION_BITS),
                "address": Out(ADDRESS_BITS),
                "data": Out(8 * size),
                "mask": Out(size),
                "ready": In(1),
            }
        )

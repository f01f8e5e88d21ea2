"""The ports of the on-chip memories.

The engines' ports reach all partitions in lockstep at one address; a line port reaches adjacent bytes of one partition.
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
"""Byte address in a partition; 192 KiB of SBUF need 18 bits."""

PARTITION_BITS = 10
"""Number of a partition."""


Storage = typed_enum("Storage", isa.Storage, 2)
"""Where a tensor is; codes of `spec.isa.Storage`."""

OnChipStorage = typed_enum("OnChipStorage", isa.Storage, 1)
"""Those that are memories of the core."""


class ReadPort(wiring.Signature):
    """Seen from the reader.

    Arguments:
        partitions: partitions read at once.
        width: bits per partition and access; the address is a multiple of width / 8 bytes.
        late: `port_latency` of the machine; 0 of PSUM in the tensor engine, whatever that is.

    Members:
        valid, address: a request, which must stay until it is taken; address in bytes.
        ready: the request is taken at the end of this cycle; the memory stalls the reader by keeping it low.
        data: `width` bits of each partition, partition 0 in the lowest, `latency` cycles after the request was taken.
    """

    LATENCY = timing.READ_LATENCY
    """Cycles from a request that is taken to its data, by `port_latency`."""

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
    """Seen from the writer: one 32-bit word of every partition of either memory.

    Arguments:
        partitions: partitions of SBUF. PSUM may have fewer; the others are never enabled then.

    Members:
        valid: a write, which must stay until it is taken; so must everything that belongs to it.
        storage: the memory. address: in bytes, a multiple of 4.
        enable: a bit for each partition. mask: a bit for each byte of the word, common to all partitions.
        data: the words, partition 0 lowest.
        ready: the write is taken at the end of this cycle; a read request taken in a later cycle sees it.
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
    """Seen from the writer: one 32-bit word of every partition of PSUM.

    Arguments:
        columns: partitions of PSUM.

    Members: those of :class:`WritePort`, whose storage is known.
    """

    def __init__(self, columns: int):
        self.columns = columns
        members = dict(WritePort(columns).members)
        del members["storage"]
        super().__init__(members)


class LineRead(wiring.Signature):
    """Reads adjacent bytes of one partition, seen from the reader: DMA, and the controller's window.

    Arguments:
        size: bytes of an access; the address is a multiple of it. A power of two, at most `spec.config.LINE_BYTES`.
        late: `port_latency` of the machine.

    Members:
        valid, storage, partition, address: a request, which must stay until it is taken.
        ready: the request is taken at the end of this cycle.
        data: `latency` cycles after the request was taken. Of PSUM only the aligned word of 4 bytes that `word` names
            is read; it comes in its place, with anything beside it.
        word: of PSUM, which word of the access.
    """

    LATENCY = timing.LINE_READ_LATENCY
    """Cycles from a request that is taken to its data, by `port_latency`."""

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
    """Writes adjacent bytes of one partition, seen from the writer.

    Arguments:
        size: bytes of an access, as of :class:`LineRead`.

    Members:
        valid, storage, partition, address: as of :class:`LineRead`; but in front of the memory another line may take
            the place of one that is not taken (:class:`hdl.memory.line_buffer.LineBuffer`).
        data, mask: bytes, and which of them to write. Of PSUM all enabled bytes lie in one aligned word of 4.
        ready: the write is taken at the end of this cycle; a read request taken in a later cycle sees it, but behind a
            buffer of lines only once that says `written`.
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

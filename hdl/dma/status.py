"""What a DMA engine tells about itself: its error and its counters."""

from amaranth import unsigned
from amaranth.lib import data

__all__ = ["DmaCounters", "DmaError"]


class DmaError(data.Struct):
    """valid: a copy failed. cause: the `spec.isa.Rule` that it breaks, or `Cause.AXI` or `Cause.INDEX`. number: of
    instructions before it since reset. detail: of INDEX the row number, else 0."""

    valid: unsigned(1)
    cause: unsigned(8)
    number: unsigned(32)
    detail: unsigned(32)


class DmaCounters(data.Struct):
    """Counters since reset, in cycles unless said otherwise.

    busy: cycles with an instruction waiting or in flight. read_bytes, write_bytes: bytes of tensors read and written.
    wait_axi_read: HBM owes beats and none is there. wait_axi_write: an address or a beat was offered to HBM and not
    taken. wait_line_read, wait_line_write: an access to SBUF or PSUM was offered and not taken.
    """

    busy: unsigned(48)
    read_bytes: unsigned(48)
    write_bytes: unsigned(48)
    wait_axi_read: unsigned(48)
    wait_axi_write: unsigned(48)
    wait_line_read: unsigned(48)
    wait_line_write: unsigned(48)

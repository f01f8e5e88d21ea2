"""What a DMA engine counts."""

from amaranth import unsigned
from amaranth.lib import data

from neuroncore_rtl.spec.isa.engine import COUNTER_BITS

__all__ = ["DmaCounters"]


class DmaCounters(data.Struct):
    """Counters since reset, in cycles unless said otherwise.

    busy: cycles with an instruction waiting or in flight. read_bytes, write_bytes: bytes of tensors read and written.
    wait_axi_read: HBM owes beats and none is there. wait_axi_write: an address or a beat was offered to HBM and not
    taken. wait_line_read, wait_line_write: an access to SBUF or PSUM was offered and not taken.
    """

    busy: unsigned(COUNTER_BITS)
    read_bytes: unsigned(COUNTER_BITS)
    write_bytes: unsigned(COUNTER_BITS)
    wait_axi_read: unsigned(COUNTER_BITS)
    wait_axi_write: unsigned(COUNTER_BITS)
    wait_line_read: unsigned(COUNTER_BITS)
    wait_line_write: unsigned(COUNTER_BITS)

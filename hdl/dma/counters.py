"""Counters of a DMA engine."""

from amaranth import unsigned
from amaranth.lib import data

from neuroncore_rtl.spec.isa.engine import COUNTER_BITS

__all__ = ["DmaCounters"]


class DmaCounters(data.Struct):
    """Counters since reset, in cycles unless a field says otherwise.

    Fields:
        busy: cycles in which an instruction is pending or in flight.
        read_bytes, write_bytes: bytes of tensors read and written.
        wait_axi_read: cycles in which HBM beats are outstanding and none is buffered.
        wait_axi_write: cycles in which HBM does not accept an address or a beat.
        wait_line_read, wait_line_write: cycles in which SBUF or PSUM does not accept a read, a write.
    """

    busy: unsigned(COUNTER_BITS)
    read_bytes: unsigned(COUNTER_BITS)
    write_bytes: unsigned(COUNTER_BITS)
    wait_axi_read: unsigned(COUNTER_BITS)
    wait_axi_write: unsigned(COUNTER_BITS)
    wait_line_read: unsigned(COUNTER_BITS)
    wait_line_write: unsigned(COUNTER_BITS)

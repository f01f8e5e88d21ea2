"""Record prefetcher of a queue: requests the records of its blocks before they are needed."""

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.primitives.counting import Counting
from neuroncore_rtl.hdl.primitives.fifo import Fifo
from neuroncore_rtl.hdl.queue.record import Header, RecordBeat
from neuroncore_rtl.hdl.queue.record_fifo import RecordFifo
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS, RECORD_BYTES
from neuroncore_rtl.spec.isa.engine import QUEUE_BLOCKS

__all__ = ["PrefetchBlock", "Prefetcher"]


class PrefetchBlock(data.Struct):
    """Block of records.

    address: HBM address of the first record.
    count: number of records; 0 has no effect.
    """

    address: unsigned(HBM_ADDRESS_BITS)
    count: unsigned(16)


class Prefetcher(wiring.Component):
    """Record prefetcher: requests one record per cycle while it has room.

    Arguments:
        body_bits: number of low bits of a record's body that are stored.
        records: maximum number of records fetched ahead, with the next one.
        size: bytes of a beat of a record.

    Ports:
        blocks: doorbell: blocks of records to fetch.
        places: number of blocks that `blocks` accepts without a stall.
        halt: while set, blocks are accepted and discarded.
        rung: number of records in all accepted blocks, modulo 2 ** 32.
        request: HBM address of a record to fetch.
        record: beats of the requested records, in order.
        head: the next record, with `body_bits` bits of its body.
        address: HBM address of the record at `head`.
        coming: a next record exists, even if it has not arrived.
        next_address: HBM address of the next record.
    """

    def __init__(self, body_bits: int, records: int, size: int):
        self.body_bits = body_bits
        self.records = records
        self.size = size
        super().__init__(
            {
                "blocks": In(stream.Signature(PrefetchBlock)),
                "places": Out(range(QUEUE_BLOCKS + 1)),
                "halt": In(1),
                "rung": Out(32),
                "request": Out(stream.Signature(HBM_ADDRESS_BITS)),
                "record": In(stream.Signature(RecordBeat(size), always_ready=True)),
                "head": Out(stream.Signature(data.StructLayout({"header": Header, "body": body_bits, "error": 1}))),
                "address": Out(HBM_ADDRESS_BITS),
                "coming": Out(1),
                "next_address": Out(HBM_ADDRESS_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.block_fifo = blocks = Fifo(PrefetchBlock, QUEUE_BLOCKS)
        m.submodules.addresses = addresses = Fifo(HBM_ADDRESS_BITS, self.records)
        m.submodules.record_fifo = records = RecordFifo(self.head.payload.shape(), self.size, self.records)
        block = blocks.o.payload
        fetched = Signal(len(block.count))  # requested records of the current block
        rings, asked = Signal(), Signal()
        m.submodules.rung = rung = Counting(
            data.StructLayout({"records": len(self.rung)}), {"records": len(block.count)}
        )
        wiring.connect(m, wiring.flipped(self.record), records.beat)
        wiring.connect(m, records.o, wiring.flipped(self.head))
        m.d.comb += [
            self.blocks.ready.eq(blocks.i.ready | self.halt),
            rings.eq(self.blocks.valid & blocks.i.ready & ~self.halt & (self.blocks.payload.count != 0)),
            blocks.i.valid.eq(rings),
            blocks.i.payload.eq(self.blocks.payload),
            rung.amounts.records.eq(Mux(rings, self.blocks.payload.count, 0)),
            self.rung.eq(rung.counters.records),
            self.places.eq(QUEUE_BLOCKS - blocks.level),
            # An address stays here until its record is consumed, so a free entry is also one in `record_fifo`.
            self.request.valid.eq(blocks.o.valid & addresses.i.ready),
            self.request.payload.eq(block.address + (fetched << (RECORD_BYTES.bit_length() - 1))),
            asked.eq(self.request.valid & self.request.ready),
            blocks.o.ready.eq(asked & (fetched == block.count - 1)),
            addresses.i.valid.eq(asked),
            addresses.i.payload.eq(self.request.payload),
            addresses.o.ready.eq(self.head.ready),
            self.address.eq(addresses.o.payload),
            self.coming.eq(blocks.o.valid | addresses.o.valid),
            self.next_address.eq(Mux(addresses.o.valid, addresses.o.payload, self.request.payload)),
        ]
        with m.If(asked):
            m.d.sync += fetched.eq(Mux(blocks.o.ready, 0, fetched + 1))
        return m

"""Burst buffer: the AXI manager of the host link."""

from amaranth import Array, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.memory.axi import RESPONSE_OKAY, AxiPort
from neuroncore_rtl.spec.host_link import PAYLOAD_BYTES

__all__ = ["BurstBuffer"]


class BurstBuffer(wiring.Component):
    """Buffer of one payload, which is written to memory or read from memory in one burst.

    Arguments:
        size: bytes of a beat.
        id_bits: width of the IDs, which are all 0.
        patience: maximum number of cycles of a burst.

    Ports:
        write, place, byte: store `byte` at offset `place` of the buffer; not during a burst.
        read_place, read_byte: offset to read, and its byte two cycles later; not during a burst.
        start, store, address, beats: start a burst of `beats` beats at `address`, a multiple of `size`, to memory if
            `store`, otherwise from memory; held until `done`.
        done: the burst is over.
        failed: valid with `done`: memory returned an error, or did not answer within `patience`. After a timeout every
            burst fails immediately, without an access, until `restart`.
        restart: memory is reset; clears the timeout.
        axi: port to memory.
    """

    def __init__(self, size: int, id_bits: int, patience: int = 1 << 16):
        self.size = size
        self.patience = patience
        places = range(PAYLOAD_BYTES)
        super().__init__(
            {
                "write": In(1),
                "place": In(places),
                "byte": In(8),
                "read_place": In(places),
                "read_byte": Out(8),
                "start": In(1),
                "store": In(1),
                "address": In(32),
                "beats": In(range(PAYLOAD_BYTES // size + 1)),
                "done": Out(1),
                "failed": Out(1),
                "restart": In(1),
                "axi": Out(AxiPort(size, id_bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        depth = PAYLOAD_BYTES // self.size
        m.submodules.bytes = store = memory.Memory(shape=8 * self.size, depth=depth, init=[])
        writing, reading = store.write_port(granularity=8), store.read_port()
        lane_bits = (self.size - 1).bit_length()
        beat = Signal(range(depth))  # index of the next beat
        lane = Signal(lane_bits, reset_less=True)
        fault, silent = Signal(), Signal()
        addressed, written = Signal(), Signal()  # the burst's address is accepted; all of its data beats are accepted
        left = Signal(range(self.patience + 1), init=self.patience)
        axi = self.axi
        m.d.sync += [lane.eq(self.read_place[:lane_bits]), left.eq(left - 1)]
        m.d.comb += [
            reading.addr.eq(self.read_place[lane_bits:]),
            writing.addr.eq(self.place[lane_bits:]),
            writing.data.eq(self.byte.replicate(self.size)),
            writing.en.eq(self.write << self.place[:lane_bits]),
            axi.w.payload.data.eq(reading.data),
            axi.w.payload.strb.eq(~0),
            axi.w.payload.last.eq(beat == self.beats - 1),
        ]
        for channel in (axi.aw, axi.ar):
            m.d.comb += [channel.payload.addr.eq(self.address), channel.payload.len.eq(self.beats - 1)]
        m.d.sync += self.read_byte.eq(Array(reading.data.word_select(n, 8) for n in range(self.size))[lane])

        def wait(condition):
            """Begin the block that runs when `condition` holds.

            If `patience` cycles pass first, the burst fails instead.
            """
            with m.If(left == 0):
                m.d.sync += silent.eq(1)
                m.next = "DONE"
            return m.Elif(condition)

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [beat.eq(0), fault.eq(0), addressed.eq(0), written.eq(0), left.eq(self.patience)]
                with m.If(self.start & silent):
                    m.next = "DONE"
                with m.Elif(self.start & self.store):
                    m.next = "WRITE"
                with m.Elif(self.start):
                    m.next = "READ"
            with m.State("WRITE"):
                m.d.comb += reading.addr.eq(beat)
                m.next = "BEATS"
            with m.State("BEATS"):  # address and data are offered independently, so neither can block the other
                m.d.comb += [axi.aw.valid.eq(~addressed), axi.w.valid.eq(~written)]
                m.d.comb += reading.addr.eq(beat + axi.w.ready)
                m.d.sync += addressed.eq(addressed | axi.aw.ready)
                with wait(axi.w.ready & ~written):
                    m.d.sync += [beat.eq(beat + 1), written.eq(axi.w.payload.last)]
                with m.If(addressed & written):
                    m.next = "WRITTEN"
            with m.State("WRITTEN"):
                m.d.comb += axi.b.ready.eq(1)
                with wait(axi.b.valid):
                    m.d.sync += fault.eq(axi.b.payload.resp != RESPONSE_OKAY)
                    m.next = "DONE"
            with m.State("READ"):
                m.d.comb += axi.ar.valid.eq(1)
                with wait(axi.ar.ready):
                    m.next = "FILL"
            with m.State("FILL"):
                m.d.comb += [axi.r.ready.eq(1), writing.addr.eq(beat), writing.data.eq(axi.r.payload.data)]
                with wait(axi.r.valid):
                    m.d.comb += writing.en.eq(~0)
                    m.d.sync += [beat.eq(beat + 1), fault.eq(fault | (axi.r.payload.resp != RESPONSE_OKAY))]
                    with m.If(axi.r.payload.last):
                        m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += [self.done.eq(1), self.failed.eq(fault | silent)]
                m.next = "IDLE"
        with m.If(self.restart):
            m.d.sync += silent.eq(0)
        return m

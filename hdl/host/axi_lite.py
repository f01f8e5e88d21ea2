"""AXI4-Lite subordinate, 32 bits wide, as the control port of a core (ARM IHI 0022)."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.controller.bus import Bus
from neuroncore_rtl.hdl.memory.axi import RESPONSE_OKAY, RESPONSE_SLVERR, Axi

__all__ = ["AxiLiteBridge", "AxiLitePort"]


class AxiLitePort(Axi):
    """AXI4-Lite port, seen from the manager.

    Arguments:
        address_bits: width of an address.

    Members: the channels aw, w, b, ar, r: streams with the fields of the specification as payload.
    """

    def __init__(self, address_bits: int):
        self.address_bits = address_bits
        addresses = stream.Signature(data.StructLayout({"addr": address_bits, "prot": 3}))
        super().__init__(
            {
                "aw": Out(addresses),
                "w": Out(stream.Signature(data.StructLayout({"data": 32, "strb": 4}))),
                "b": In(stream.Signature(data.StructLayout({"resp": 2}))),
                "ar": Out(addresses),
                "r": In(stream.Signature(data.StructLayout({"data": 32, "resp": 2}))),
            }
        )


class AxiLiteBridge(wiring.Component):
    """Bridge from AXI4-Lite to the register bus, one access at a time; reads and writes alternate if both are pending.

    A refused access returns SLVERR. An address that is not a multiple of 4 returns SLVERR without a bus access. An
    access takes 4 cycles if the bus answers in the cycle after it accepted the request.

    Arguments:
        address_bits: width of an address.

    Ports:
        axi: port of the manager.
        bus: bus to the registers. The mask of a write is the strobes of the AXI write; a read always reads the whole
            word.
    """

    def __init__(self, address_bits: int):
        self.address_bits = address_bits
        super().__init__({"axi": In(AxiLitePort(address_bits)), "bus": Out(Bus())})

    def elaborate(self, platform):
        m = Module()
        axi, bus = self.axi, self.bus
        writes, wrote, answer = Signal(), Signal(), axi.r.payload  # the current, the last access is a write
        address = Signal(self.address_bits)
        m.d.comb += [
            writes.eq(axi.aw.valid & axi.w.valid & ~(axi.ar.valid & wrote)),
            address.eq(Mux(writes, axi.aw.payload.addr, axi.ar.payload.addr)),
            axi.b.payload.resp.eq(answer.resp),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [axi.aw.ready.eq(writes), axi.w.ready.eq(writes), axi.ar.ready.eq(axi.ar.valid & ~writes)]
                with m.If(writes | axi.ar.valid):
                    m.d.sync += [
                        wrote.eq(writes),
                        bus.address.eq(address),
                        bus.write.eq(writes),
                        bus.mask.eq(Mux(writes, axi.w.payload.strb, 0b1111)),
                        bus.data.eq(axi.w.payload.data),
                        answer.data.eq(0),
                        answer.resp.eq(RESPONSE_SLVERR),
                    ]
                    m.next = "ASK"
                    with m.If(address[:2].any()):
                        m.next = "ANSWER"
            with m.State("ASK"):
                m.d.comb += bus.valid.eq(1)
                with m.If(bus.ready):
                    m.next = "WAIT"
            with m.State("WAIT"):
                with m.If(bus.response):
                    m.d.sync += [
                        answer.data.eq(Mux(bus.error, 0, bus.result)),
                        answer.resp.eq(Mux(bus.error, RESPONSE_SLVERR, RESPONSE_OKAY)),
                    ]
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += [axi.b.valid.eq(bus.write), axi.r.valid.eq(~bus.write)]
                with m.If((axi.b.valid & axi.b.ready) | (axi.r.valid & axi.r.ready)):
                    m.next = "IDLE"
        return m

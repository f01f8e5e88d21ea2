"""Fetches the records of all queues from HBM."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.memory.axi import RESPONSE_OKAY, AxiPort
from neuroncore_rtl.hdl.round_robin import RoundRobin
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS, RECORD_BITS, RECORD_BYTES, queue_count

__all__ = ["Fetcher"]


class Fetcher(wiring.Component):
    """Serves the queues in turn: a burst for each record.

    A request takes a cycle to become an address, and a record one from its last beat to the queue; one comes every
    RECORD_BYTES / hbm_bytes cycles if HBM keeps up.

    Arguments:
        config: the machine's parameters.

    Ports:
        requests: of each queue, the HBM address of a record, a multiple of RECORD_BYTES. A queue asks only for what it
            has room for; it is answered in the order in which it asked.
        record_valid: a pulse in the bit of the queue that a record is for. record: it, meanwhile. record_error: HBM
            answered with an error; the record means nothing then.
        axi: reads.
    """

    OUTSTANDING = 16
    """Records on their way; one more request waits for the first of them."""

    def __init__(self, config: Config):
        self.config = config
        queues = queue_count(config)
        super().__init__(
            {
                "requests": In(stream.Signature(HBM_ADDRESS_BITS)).array(queues),
                "record_valid": Out(queues),
                "record": Out(RECORD_BITS),
                "record_error": Out(1),
                "axi": Out(AxiPort(config.hbm_bytes, 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        axi = self.axi
        m.submodules.turn = turn = RoundRobin(len(self.requests))
        m.submodules.order = order = SyncFIFO(width=len(turn.grant), depth=self.OUTSTANDING)  # whose record comes next

        asking, room = Signal(), Signal()
        address = Signal(HBM_ADDRESS_BITS, reset_less=True)
        m.d.comb += [
            turn.requests.eq(Cat(request.valid for request in self.requests)),
            room.eq((~asking | axi.arready) & order.w_rdy),
            turn.taken.eq(room & turn.requests.any()),
            order.w_en.eq(turn.taken),
            order.w_data.eq(turn.grant),
            axi.arvalid.eq(asking),
            axi.araddr.eq(address),
            axi.arlen.eq(RECORD_BYTES // self.config.hbm_bytes - 1),
        ]
        with m.If(turn.taken):
            m.d.sync += asking.eq(1)
        with m.Elif(axi.arready):
            m.d.sync += asking.eq(0)
        with m.Switch(turn.grant):
            for queue, request in enumerate(self.requests):
                with m.Case(queue):
                    m.d.comb += request.ready.eq(room)
                    with m.If(turn.taken):
                        m.d.sync += address.eq(request.payload)

        beat = len(axi.rdata)
        record = Signal(RECORD_BITS, reset_less=True)
        valid, failed, wrong = Signal(len(self.requests)), Signal(), Signal()
        m.d.comb += [
            axi.rready.eq(1),
            wrong.eq(failed | (axi.rresp != RESPONSE_OKAY)),
            order.r_en.eq(axi.rvalid & axi.rlast),
            self.record.eq(record),
            self.record_valid.eq(valid),
        ]
        m.d.sync += valid.eq(Mux(order.r_en, 1 << order.r_data, 0))
        with m.If(axi.rvalid):
            m.d.sync += [
                record.eq(Cat(record[beat:], axi.rdata)),
                failed.eq(wrong & ~axi.rlast),
                self.record_error.eq(wrong),
            ]
        return m

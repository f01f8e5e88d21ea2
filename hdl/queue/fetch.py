"""Record fetcher: reads the records of all queues from HBM."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.memory.axi import RESPONSE_OKAY, AxiPort
from neuroncore_rtl.hdl.primitives.fifo import Fifo
from neuroncore_rtl.hdl.primitives.round_robin import RoundRobin
from neuroncore_rtl.hdl.queue.record import RecordBeat
from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS, RECORD_BYTES, queue_count

__all__ = ["Fetcher"]


class Fetcher(wiring.Component):
    """Record fetcher: round robin over the queues, one burst per record.

    A request takes one cycle to the address channel, a beat one cycle to its queue. Throughput: one record per
    RECORD_BYTES / hbm_bytes cycles.

    Arguments:
        config: the machine's parameters.

    Ports:
        requests: one stream per queue: HBM address of a record, a multiple of RECORD_BYTES. A queue requests only
            records that it has room for.
        records: one stream per queue: beats of the requested records, in order.
        axi: port for reads of HBM.
    """

    OUTSTANDING = timing.FETCHER_RECORDS
    """Records in flight; one further request can wait at the address channel."""

    def __init__(self, config: Config):
        self.config = config
        queues = queue_count(config)
        super().__init__(
            {
                "requests": In(stream.Signature(HBM_ADDRESS_BITS)).array(queues),
                "records": Out(stream.Signature(RecordBeat(config.hbm_bytes), always_ready=True)).array(queues),
                "axi": Out(AxiPort(config.hbm_bytes, 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        axi = self.axi
        m.submodules.turn = turn = RoundRobin(len(self.requests))
        m.submodules.order = order = Fifo(turn.grant.shape(), self.OUTSTANDING)  # queues of the records in flight

        asking, room = Signal(), Signal()
        address = Signal(HBM_ADDRESS_BITS, reset_less=True)
        m.d.comb += [
            turn.requests.eq(Cat(request.valid for request in self.requests)),
            room.eq((~asking | (axi.ar.ready & (self.config.port_latency == 0))) & order.i.ready),
            turn.taken.eq(room & turn.requests.any()),
            order.i.valid.eq(turn.taken),
            order.i.payload.eq(turn.grant),
            axi.ar.valid.eq(asking),
            axi.ar.payload.addr.eq(address),
            axi.ar.payload.len.eq(RECORD_BYTES // self.config.hbm_bytes - 1),
        ]
        with m.If(turn.taken):
            m.d.sync += asking.eq(1)
        with m.Elif(axi.ar.ready):
            m.d.sync += asking.eq(0)
        m.d.comb += [request.ready.eq(room & turn.chosen[queue]) for queue, request in enumerate(self.requests)]
        with m.Switch(turn.grant):
            for queue, request in enumerate(self.requests):
                with m.Case(queue), m.If(turn.taken):
                    m.d.sync += address.eq(request.payload)

        beat = Signal(RecordBeat(self.config.hbm_bytes), reset_less=True)
        place = Signal.like(beat.place)
        failed, wrong = Signal(), Signal()
        m.d.comb += [
            axi.r.ready.eq(1),
            wrong.eq(failed | (axi.r.payload.resp != RESPONSE_OKAY)),
            order.o.ready.eq(axi.r.valid & axi.r.payload.last),
        ]
        for queue, port in enumerate(self.records):
            m.d.comb += port.payload.eq(beat)
            m.d.sync += port.valid.eq(axi.r.valid & (order.o.payload == queue))
        with m.If(axi.r.valid):
            m.d.sync += [
                beat.data.eq(axi.r.payload.data),
                beat.place.eq(place),
                beat.last.eq(axi.r.payload.last),
                beat.error.eq(wrong),
                place.eq(Mux(axi.r.payload.last, 0, place + 1)),
                failed.eq(wrong & ~axi.r.payload.last),
            ]
        return m

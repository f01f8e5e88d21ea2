"""Packets: limit of how often the DMA engines together begin one.

NeuronCore-v2's DMA engines take a minimum time per packet of descriptors. A descriptor is a run of contiguous bytes; a
packet has the runs in HBM of one index of a copy's outermost dimension, at most `RUNS_PER_PACKET`.
"""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.dma.job import Run
from neuroncore_rtl.hdl.memory.port import Storage
from neuroncore_rtl.hdl.primitives.round_robin import RoundRobin
from neuroncore_rtl.spec.timing import RUNS_PER_PACKET

__all__ = ["PacketGate", "PacketTurns"]


class PacketGate(wiring.Component):
    """Passes runs combinationally; in HBM the first one of a packet waits for its turn.

    Ports:
        first: the run at `i` is the first one of an index of the outermost dimension.
        request: that run begins a packet, and can be passed.
        turn: it may be passed.
    """

    i: In(stream.Signature(Run))
    first: In(1)
    o: Out(stream.Signature(Run))
    request: Out(1)
    turn: In(1)

    def elaborate(self, platform):
        m = Module()
        runs, begins, may = Signal(range(RUNS_PER_PACKET)), Signal(), Signal()
        m.d.comb += [
            begins.eq((self.i.payload.storage == Storage.HBM) & (self.first | (runs == 0))),
            may.eq(~begins | self.turn),
            self.request.eq(self.i.valid & self.o.ready & begins),
            self.o.valid.eq(self.i.valid & may),
            self.o.payload.eq(self.i.payload),
            self.i.ready.eq(self.o.ready & may),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += runs.eq(Mux(begins, 1, runs + 1))
        return m


class PacketTurns(wiring.Component):
    """Round-robin arbiter of the engines, with turns at least `interval` cycles apart.

    Arguments:
        count: number of DMA engines.
        interval: cycles from one turn to the next, at least 1.

    Ports:
        requests: one bit per engine, set while its next packet can begin.
        turns: one-hot; the engine begins a packet in this cycle; combinational.
    """

    def __init__(self, count: int, interval: int):
        self.count = count
        self.interval = interval
        super().__init__({"requests": In(count), "turns": Out(count)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = RoundRobin(self.count)
        rest = Signal(range(self.interval))
        m.d.comb += [
            arbiter.requests.eq(self.requests),
            arbiter.taken.eq((rest == 0) & self.requests.any()),
            self.turns.eq(Mux(rest == 0, arbiter.chosen, 0)),
        ]
        m.d.sync += rest.eq(Mux(arbiter.taken, self.interval - 1, rest - (rest != 0)))
        return m

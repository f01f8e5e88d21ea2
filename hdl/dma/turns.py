"""Arbiter of runs: limits how often the DMA engines together begin a run in HBM."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.primitives.round_robin import RoundRobin

__all__ = ["RunTurns"]


class RunTurns(wiring.Component):
    """Round-robin arbiter with turns at least `interval` cycles apart.

    NeuronCore-v2's DMA engines take a minimum time per descriptor, which a run of contiguous bytes stands for here.

    Arguments:
        count: number of DMA engines.
        interval: cycles from one turn to the next, at least 1.

    Ports:
        requests: one bit per engine, set while its next run can begin.
        turns: the engine whose run begins in this cycle, one-hot; combinational.
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

"""Collective engine: executes one rank's part of the operations of a group of cores.

    instructions -> Checker -> job -+-> Channel 0 --+-- AXI, flits to and from the router
                                    +-> Channel 1 --+

The two channels are identical and independent. The first half of the vector travels around the group in one direction,
the second half in the other, each through its own HBM port and router port.
"""

from amaranth import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.collective.channel import Channel
from neuroncore_rtl.hdl.collective.checker import CollectiveChecker
from neuroncore_rtl.hdl.collective.counters import CHANNEL_EVENTS, CollectiveCounters
from neuroncore_rtl.hdl.collective.instruction import CollectiveInstruction
from neuroncore_rtl.hdl.collective.peer import Peer
from neuroncore_rtl.hdl.collective.signature import Disagreement
from neuroncore_rtl.hdl.link.flit import flit_stream
from neuroncore_rtl.hdl.memory.axi import AxiPort
from neuroncore_rtl.hdl.primitives.counting import count
from neuroncore_rtl.hdl.primitives.engine_error import DetailedError
from neuroncore_rtl.spec.isa import Cause
from neuroncore_rtl.spec.isa.cause import DETAIL_CORE_BITS
from neuroncore_rtl.spec.link import CHANNELS, CORE_BITS, DIRECTIONS

__all__ = ["CollectiveEngine"]


class CollectiveEngine(wiring.Component):
    """Executes collectives one at a time; the next one begins when HBM has answered all stores of this one.

    Cores that exchange data first compare their instructions: neighbours in the ring, both sides of a transfer. If
    these differ, both report DISAGREE. A core waits for ever for a peer that never executes the collective, is in
    another group, or counts ranks in the other direction; `peer` names it to a watchdog.

    Arguments:
        link_bytes: data bytes per flit, 8 to 64.
        hbm_bytes: bytes per HBM beat, 8 to 64.
        cores: number of cores of the instance.
        rate: maximum bytes per cycle that a channel sends; 0: no limit.

    Ports:
        core: number of this core; constant.
        axi: ports to HBM, one per channel; all IDs are 0.
        dead: one bit per direction, set when that link of the chip has failed for good; 0 for absent links.
        retired: pulse for each instruction, in order, when HBM has answered the instruction's writes of this core.
        error: `DetailedError`; stays until reset, and no instruction begins after it. Rules are checked before any flit
            is sent. A collective in flight fails when any link of the chip is dead, even an unused one; the detail is
            the lowest dead direction.
        peer: core that the collective in flight waited for in the previous cycle; if several units wait, the first in
            the order channel 0's sender, its receiver, channel 1's sender, its receiver. Not valid if no unit waits, or
            after an error.
        busy: an instruction is pending or in flight.
        active: the state of the engine may change at the end of this cycle; otherwise the clock may stop.
    """

    def __init__(self, link_bytes: int, hbm_bytes: int, cores: int, rate: int = 0):
        self.rate = rate
        self.link_bytes = link_bytes
        self.hbm_bytes = hbm_bytes
        self.cores = cores
        super().__init__(
            {
                "instructions": In(stream.Signature(CollectiveInstruction)),
                "core": In(CORE_BITS),
                "axi": Out(AxiPort(hbm_bytes, 1)).array(CHANNELS),
                "i": In(flit_stream(link_bytes)).array(CHANNELS),
                "o": Out(flit_stream(link_bytes)).array(CHANNELS),
                "dead": In(DIRECTIONS),
                "retired": Out(1),
                "error": Out(DetailedError),
                "peer": Out(Peer),
                "busy": Out(1),
                "active": Out(1),
                "counters": Out(CollectiveCounters),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.checker = checker = CollectiveChecker(self.cores)
        sizes = self.link_bytes, self.hbm_bytes, self.cores
        channels = [Channel(*sizes, channel, self.rate) for channel in range(CHANNELS)]
        for number, channel in enumerate(channels):
            m.submodules[f"channel{number}"] = channel
            wiring.connect(m, wiring.flipped(self.i[number]), channel.i)
            wiring.connect(m, channel.o, wiring.flipped(self.o[number]))
            wiring.connect(m, channel.axi, wiring.flipped(self.axi[number]))
            m.d.comb += [
                channel.core.eq(self.core),
                channel.stop.eq(self.error.valid),
                channel.job.payload.eq(checker.o.payload),
            ]
            events = {name: channel.events[name] for name, _ in CHANNEL_EVENTS}
            count(m, self.counters[f"channel{number}"], f"counting{number}", **events)
        m.d.comb += [
            checker.core.eq(self.core),
            checker.i.payload.eq(self.instructions.payload),
            checker.i.valid.eq(self.instructions.valid & ~self.error.valid),
            self.instructions.ready.eq(checker.i.ready & ~self.error.valid),
        ]

        counted = Signal(data.StructLayout({"over": 32}))  # retired instructions
        active, begins, ends, holds = (Signal(name=n) for n in ("active", "begins", "ends", "holds"))
        m.d.comb += [
            # Never after an error: a failed job stays active, and the checker emits no job after a refusal.
            begins.eq(checker.o.valid & ~active),
            checker.o.ready.eq(begins),
            *(channel.job.valid.eq(begins) for channel in channels),
            holds.eq(self.instructions.valid | checker.busy | checker.error.valid | active),
            self.busy.eq(holds & ~self.error.valid),
        ]
        with m.If(begins):
            m.d.sync += active.eq(1)
        with m.Elif(ends):
            m.d.sync += active.eq(0)
        fails = self._judge(m, checker.error, channels, active, counted.over)
        self._retire(m, channels, active, fails, ends)
        count(m, counted, "numbering", over=ends)
        self._report_peer(m, channels, active)
        # After an error the channels continue: their REFUSE flits must reach other cores.
        m.d.comb += self.active.eq(holds | Cat(i.valid for i in self.i).any() | self.peer.valid | self.retired)
        count(m, self.counters, busy=self.busy)
        return m

    def _retire(self, m: Module, channels: list[Channel], active: Signal, fails: Value, ends: Signal) -> None:
        """End a job when all units are idle in two successive cycles, so that nothing is in transit between units."""
        idle, was_idle = Signal(), Signal()
        m.d.comb += [
            idle.eq(Cat(channel.idle for channel in channels).all()),
            ends.eq(active & idle & was_idle & ~fails),
        ]
        m.d.sync += [was_idle.eq(active & idle), self.retired.eq(ends)]

    def _report_peer(self, m: Module, channels: list[Channel], active: Signal) -> None:
        """Drive `peer` with the core that the job in flight waits for."""
        first, second = (channel.peer for channel in channels)
        m.d.sync += self.peer.eq(Mux(active & ~self.error.valid, Mux(first.valid, first, second), 0))

    def _judge(self, m: Module, illegal, channels: list[Channel], active: Signal, number: Signal) -> Value:
        """Drive `error` with the first error; return whether the job in flight has failed."""
        refused, failed, cut, disagreement = Signal(), Signal(), Signal(), Signal(Disagreement)
        m.d.comb += [
            # Instructions accepted before an illegal one may still fail.
            refused.eq(illegal.valid & ~active),
            failed.eq(Cat(channel.axi_error for channel in channels).any()),
            cut.eq(active & self.dead.any()),
        ]
        for channel in reversed(channels):
            with m.If(channel.disagreement.valid):
                m.d.comb += disagreement.eq(channel.disagreement)
        gap = C(0, DETAIL_CORE_BITS - CORE_BITS)
        fails = failed | disagreement.valid | cut
        with m.If((refused | fails) & ~self.error.valid):
            m.d.sync += [self.error.valid.eq(1), self.error.number.eq(number), self.error.detail.eq(0)]
            with m.If(refused):
                m.d.sync += self.error.cause.eq(illegal.cause)
            with m.Elif(disagreement.valid):
                m.d.sync += [
                    self.error.cause.eq(Cause.DISAGREE),
                    self.error.detail.eq(Cat(disagreement.core, gap, disagreement.field)),
                ]
            with m.Elif(failed):
                m.d.sync += self.error.cause.eq(Cause.AXI)
            with m.Else():
                m.d.sync += self.error.cause.eq(Cause.LINK)
                for direction in reversed(range(len(self.dead))):
                    with m.If(self.dead[direction]):
                        m.d.sync += self.error.detail.eq(direction)
        return fails

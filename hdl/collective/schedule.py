"""Collective schedule: turns an instruction into the operations of one channel, in order of dependence.

    job -> Stepper -> steps -> Dispatcher -+-> loads, receives
                                           +-> send_loads, sends

The channel's part of the vector is processed in rounds. A round has phases, a phase has steps, and a step processes one
segment. The phases of a round, with their number of steps if it is not 1:

    ALL_REDUCE      SEND  REDUCE * (ranks - 1)  GATHER * (ranks - 1)
    REDUCE_SCATTER  SEND  REDUCE * (ranks - 1)
    ALL_GATHER      SEND  OWN  GATHER * (ranks - 1)
    BROADCAST       a token from the last rank to the root; root: SEND  OWN; others: GATHER
    ALL_TO_ALL      (SEND  GATHER) * peers  OWN, in channel 1 only
    SEND, RECEIVE   a token from RECEIVE to SEND; SEND; GATHER
    BARRIER         as ALL_REDUCE, of one element that is not in memory

- SEND loads a segment and sends it.
- OWN copies a segment in memory; an ALL_GATHER whose src is its own block of dst omits it.
- REDUCE combines the received segment with a loaded one.
- GATHER stores the received segment.

What SEND sends has a Loader of its own. So a rank sends the first segment of a round while it reduces the last one of
the previous round.

REDUCE and GATHER also forward the result to the next rank, except at the last rank that needs it. Successive steps
process the segments of successive ranks, against the direction of the channel.

A token is one element that is not in memory. A core that would receive no data receives a token, so it sends READY,
with its signature, as all others do. Any two cores that exchange data or a token thus check that they are in the same
collective.
"""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.collective.dispatcher import Dispatcher
from neuroncore_rtl.hdl.collective.job import CollectiveJobLayout
from neuroncore_rtl.hdl.collective.ops import LoadOp, ReceiveOp, SendOp
from neuroncore_rtl.hdl.collective.stepper import Stepper

__all__ = ["Schedule"]


class Schedule(wiring.Component):
    """Issues all operations of a step in one cycle; an empty step has no operations.

    The operations of a step enter their queues together. If a unit lacks an operation, the full queue of another unit
    stalls the schedule: the unit waits for that unit. Up to `Dispatcher.DEPTH` operations of each kind are queued.

    Arguments:
        channel: direction: 0 sends to the next rank, 1 to the previous one.

    Ports:
        job: the last job accepted at `i`, from the next cycle on.
        busy: steps or operations of `job` are pending.
    """

    def __init__(self, channel: int):
        self.channel = channel
        super().__init__(
            {
                "i": In(stream.Signature(CollectiveJobLayout)),
                "job": Out(CollectiveJobLayout),
                "loads": Out(stream.Signature(LoadOp)),
                "receives": Out(stream.Signature(ReceiveOp)),
                "send_loads": Out(stream.Signature(LoadOp)),
                "sends": Out(stream.Signature(SendOp)),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.stepper = stepper = Stepper(self.channel)
        m.submodules.dispatcher = dispatcher = Dispatcher()
        wiring.connect(m, wiring.flipped(self.i), stepper.i)
        wiring.connect(m, stepper.o, dispatcher.i)
        for name in ("loads", "receives", "send_loads", "sends"):
            wiring.connect(m, getattr(dispatcher, name), wiring.flipped(getattr(self, name)))
        m.d.comb += [
            self.job.eq(stepper.job),
            dispatcher.job.eq(stepper.job),
            dispatcher.end.eq(stepper.end),
            dispatcher.begins.eq(stepper.begins),
            self.busy.eq(stepper.busy | dispatcher.busy),
        ]
        return m

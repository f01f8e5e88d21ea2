"""The schedule: makes one channel's operations from an instruction, in the order in which they depend on each other.

The channel's part of the vector is gone through in rounds; a round is a few phases, a phase some steps of one segment
each:

    job -> Stepper -> steps -> Dispatcher -+-> loads
                                           +-> receives
                                           +-> sends

    ALL_REDUCE      SEND  REDUCE * (ranks - 1)  GATHER * (ranks - 1)
    REDUCE_SCATTER  SEND  REDUCE * (ranks - 1)
    ALL_GATHER      SEND  OWN  GATHER * (ranks - 1)
    BROADCAST       SEND  OWN, of the root; else GATHER; after a token from the last rank to the root
    ALL_TO_ALL      (SEND  GATHER) * peers  OWN, of channel 1
    SEND, RECEIVE   SEND; GATHER; after a token from RECEIVE to SEND
    BARRIER         as ALL_REDUCE, of one element that is not in memory

SEND loads a segment and sends it; OWN copies one in memory; REDUCE adds what comes to what is loaded, and GATHER takes
what comes; both send it on, but for the last ranks that it is for. The segments of successive steps are those of ranks
against the direction of the channel.

A token is one element that is not in memory. Who receives no data waits for it, and so says READY as all others do: any
two who send or receive something of each other are in the same collective, or find that they are not.
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
    """Makes the operations of a step in a cycle; a step without elements makes none. `Dispatcher.DEPTH` of each wait.

    All operations of a step are given out together, so that whoever waits for one of them waits for a unit, not for the
    schedule.

    Arguments:
        channel: 0 sends to the next rank, 1 to the previous one.

    Ports:
        i: legal jobs. job: the last one taken, from the next cycle on.
        loads, receives, sends: operations. busy: some of `job` are not yet taken.
    """

    def __init__(self, channel: int):
        self.channel = channel
        super().__init__(
            {
                "i": In(stream.Signature(CollectiveJobLayout)),
                "job": Out(CollectiveJobLayout),
                "loads": Out(stream.Signature(LoadOp)),
                "receives": Out(stream.Signature(ReceiveOp)),
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
        for name in ("loads", "receives", "sends"):
            wiring.connect(m, getattr(dispatcher, name), wiring.flipped(getattr(self, name)))
        m.d.comb += [
            self.job.eq(stepper.job),
            dispatcher.job.eq(stepper.job),
            dispatcher.end.eq(stepper.end),
            dispatcher.begins.eq(stepper.begins),
            self.busy.eq(stepper.busy | dispatcher.busy),
        ]
        return m

"""Line arbiter: connects DMA engines and the controller's window to one line port of the on-chip memories."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.memory.port import LineRead, LineWrite
from neuroncore_rtl.hdl.primitives.round_robin import RoundRobin

__all__ = ["LineReadArbiter", "LineWriteArbiter"]


class _LineArbiter(wiring.Component):
    """Round robin arbiter that grants in the cycle of the request.

    A stalled request keeps its grant until it is accepted.
    """

    def __init__(self, signature: type[LineRead] | type[LineWrite], size: int, count: int):
        self.size = size
        self.count = count
        super().__init__(
            {
                "requesters": In(signature(size)).array(count),
                "port": Out(signature(size)),
                "chosen": Out(range(max(2, count))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        port, requesters = self.port, [self.requesters[number] for number in range(self.count)]
        m.submodules.turn = turn = RoundRobin(self.count)
        waits = Signal()  # the port's request of the previous cycle is stalled
        held, chosen = Signal.like(turn.grant), self.chosen
        asked = Cat(requester.valid for requester in requesters)
        m.d.comb += [
            turn.requests.eq(Mux(waits, 1 << held, asked)),
            turn.taken.eq(port.valid & port.ready),
            chosen.eq(turn.grant),
            port.valid.eq(asked.any()),  # a stalled request remains asserted
            *(requester.ready.eq(port.ready & turn.chosen[n]) for n, requester in enumerate(requesters)),
        ]
        m.d.sync += [waits.eq(port.valid & ~port.ready), held.eq(chosen)]

        members = port.signature.members
        with m.Switch(chosen):
            for number, requester in enumerate(requesters):
                with m.Case(number):
                    m.d.comb += [
                        getattr(port, name).eq(getattr(requester, name))
                        for name, member in members.items()
                        if member.flow == Out and name != "valid"
                    ]
        if "data" in members and members["data"].flow == In:
            m.d.comb += [requester.data.eq(port.data) for requester in requesters]
        return m


class LineReadArbiter(_LineArbiter):
    """Grants one of several readers per cycle, round robin.

    Arguments:
        size: bytes per access.
        count: number of readers.

    Ports:
        requesters: the readers' ports; each receives all data, and must know when its own arrive.
        chosen: index of the reader with the current request.
    """

    def __init__(self, size: int, count: int):
        super().__init__(LineRead, size, count)


class LineWriteArbiter(_LineArbiter):
    """Grants one of several writers per cycle, round robin.

    Parameters and ports are like those of `LineReadArbiter`.
    """

    def __init__(self, size: int, count: int):
        super().__init__(LineWrite, size, count)

"""Lets an AXI manager be reset at any time: what it has begun on its port is brought to an end without it."""

from amaranth import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.memory.axi import AxiPort
from neuroncore_rtl.hdl.primitives.fifo import Fifo

__all__ = ["AxiIsolation"]


class AxiIsolation(wiring.Component):
    """Hands on everything, and ends what is under way when the manager falls silent.

    An address and a beat that is written take a cycle to pass, what comes back takes none. No beat passes before its
    address has. From the first cycle of `stop` on nothing of the manager's is taken; the beats that it still owes are
    written with no byte enabled, and what comes back is thrown away.

    Arguments:
        size: bytes of a beat.
        id_bits: width of the IDs.

    Ports:
        manager: who may be reset while `stop` is high. port: to the memory; never reset but with it.
        stop: the manager does not count. idle: everything that was asked for has been answered.
    """

    WRITES = 16
    """Bursts whose beats have not all passed; the next address waits."""

    def __init__(self, size: int, id_bits: int):
        self.size = size
        self.id_bits = id_bits
        axi = AxiPort(size, id_bits)
        super().__init__({"manager": In(axi), "port": Out(axi), "stop": In(1), "idle": Out(1)})

    def elaborate(self, platform):
        m = Module()
        manager, port = self.manager, self.port
        m.submodules.lengths = lengths = Fifo(8, depth=self.WRITES)
        asked_read = self._pass(m, "ar", ~self.stop)
        asked_write = self._pass(m, "aw", ~self.stop & lengths.i.ready)
        m.d.comb += [lengths.i.payload.eq(manager.aw.payload.len), lengths.i.valid.eq(asked_write)]
        self._pass_beats(m, lengths)
        for channel in ("r", "b"):
            source, sink = getattr(port, channel), getattr(manager, channel)
            m.d.comb += [
                sink.payload.eq(source.payload),
                sink.valid.eq(source.valid & ~self.stop),
                source.ready.eq(sink.ready | self.stop),
            ]
        reads = _under_way(m, "reads", asked_read, port.r.valid & port.r.ready & port.r.payload.last)
        writes = _under_way(m, "writes", asked_write, port.b.valid & port.b.ready)
        m.d.comb += self.idle.eq((reads == 0) & (writes == 0))
        return m

    def _pass(self, m: Module, name: str, may: Value) -> Value:
        """Add the register of an address channel; return whether it takes an address now."""
        source, sink = getattr(self.manager, name), getattr(self.port, name)
        taken, address = Signal(name=f"{name}_taken"), Signal(sink.payload.shape(), name=name, reset_less=True)
        m.d.comb += [
            source.ready.eq((~sink.valid | sink.ready) & may),
            taken.eq(source.ready & source.valid),
            sink.payload.eq(address),
        ]
        m.d.sync += sink.valid.eq(taken | (sink.valid & ~sink.ready))
        with m.If(taken):
            m.d.sync += address.eq(source.payload)
        return taken

    def _pass_beats(self, m: Module, lengths: Fifo) -> None:
        """Add the register of the beats that are written; lengths: of the bursts whose beats come next."""
        source, sink = self.manager.w, self.port.w
        beat, number = Signal(sink.payload.shape(), name="w", reset_less=True), Signal(8)
        room, taken, last = Signal(), Signal(), Signal()
        m.d.comb += [
            room.eq((~sink.valid | sink.ready) & lengths.o.valid),
            taken.eq(room & (source.valid | self.stop)),
            last.eq(number == lengths.o.payload),
            lengths.o.ready.eq(taken & last),
            source.ready.eq(room & ~self.stop),
            sink.payload.eq(beat),
        ]
        m.d.sync += sink.valid.eq(taken | (sink.valid & ~sink.ready))
        with m.If(taken):
            m.d.sync += [number.eq(number + 1), beat.eq(source.payload), beat.last.eq(last)]
            with m.If(last):
                m.d.sync += number.eq(0)
            with m.If(self.stop):
                m.d.sync += beat.strb.eq(0)


def _under_way(m: Module, name: str, begins: Value, ends: Value) -> Signal:
    """Return how many bursts have begun and not ended."""
    count = Signal(16, name=name)
    m.d.sync += count.eq(count + begins - ends)
    return count

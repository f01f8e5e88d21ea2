"""AXI isolation: lets a manager be reset at any time by completing its outstanding transactions."""

from amaranth import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.memory.axi import AxiPort
from neuroncore_rtl.hdl.primitives.fifo import Fifo

__all__ = ["AxiIsolation"]


class AxiIsolation(wiring.Component):
    """AXI isolation: forwards all transactions, and completes the outstanding ones of a stopped manager.

    Addresses and write data are delayed by one cycle, responses are not. A data beat is never forwarded before its
    address.

    From the first cycle of `stop`, nothing more is accepted from the manager. Write data that it still owes are sent
    with all strobes 0, and responses are discarded.

    Arguments:
        size: bytes of a beat.
        id_bits: width of the IDs.

    Ports:
        manager: port of the manager, which may be reset while `stop` is set.
        port: port to the memory; must not be reset unless the memory is reset too.
        stop: while set, all signals of the manager are ignored.
        idle: no transaction is outstanding.
    """

    WRITES = 16
    """Maximum number of writes with outstanding data beats; further addresses stall."""

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
        """Add the register of an address channel. Return whether it accepts an address in this cycle."""
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
        """Add the register of the write data; `lengths` holds the lengths of the bursts with outstanding data."""
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
    """Return the number of outstanding bursts: bursts that have begun minus bursts that have ended."""
    count = Signal(16, name=name)
    m.d.sync += count.eq(count + begins - ends)
    return count

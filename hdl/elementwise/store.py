"""Result store: writes the lanes' results in order to the destinations announced with their steps."""

from amaranth import Const, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.elementwise.issue import Write
from neuroncore_rtl.hdl.elementwise.place import from_lanes, quadrants, shifted
from neuroncore_rtl.hdl.memory.port import WritePort
from neuroncore_rtl.hdl.primitives.fifo import BufferedFifo, Fifo, StreamRegister
from neuroncore_rtl.spec.config import Config

__all__ = ["ResultStore"]


class ResultStore(wiring.Component):
    """Result store; never stalls the lanes. Latency: `spec.timing.STORE_LATENCY`. Throughput: one result per cycle.

    With `config.port_latency` its entries are in block RAM.

    Arguments:
        config: the machine's parameters.
        depth: maximum number of results announced and not yet written.

    Ports:
        writes: announces a result; only while `room` is asserted.
        room: another result may be announced.
        drained: all announced results are written.
        result_valid, result, enable: results in announced order: right-aligned words, zeros above, and one bit per
            lane. The store disables lanes beyond the partitions of the write.
        port: write port to the memories.
        retired: an instruction's last write was accepted in the cycle before.
    """

    def __init__(self, config: Config, depth: int):
        self.config = config
        self.depth = depth
        super().__init__(
            {
                "writes": In(stream.Signature(Write, always_ready=True)),
                "room": Out(1),
                "drained": Out(1, init=1),
                "result_valid": In(1),
                "result": In(32 * config.partitions),
                "enable": In(config.partitions),
                "port": Out(WritePort(config.partitions)),
                "retired": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, lanes, port = self.config, self.config.partitions, self.port
        kind = BufferedFifo if config.port_latency else Fifo
        m.submodules.writes = writes = kind(Write, self.depth)
        m.submodules.results = results = kind(data.StructLayout({"words": 32 * lanes, "enable": lanes}), self.depth)
        announced, next_write = self.writes, writes.o
        if config.port_latency:
            # Registered, because the issue of a step is known late in a cycle.
            announced = stream.Signature(Write).create(path=("announced",))
            m.d.sync += [announced.valid.eq(self.writes.valid), announced.payload.eq(self.writes.payload)]
            # Hides the latency of block RAM: a write is announced long before its result.
            m.submodules.next_write = register = StreamRegister(Write)
            wiring.connect(m, writes.o, register.i)
            next_write = register.o
        outstanding = Signal(range(self.depth + 1))
        write, result = next_write.payload, results.o.payload
        taken, full = Signal(), Signal()
        m.d.comb += [
            writes.i.payload.eq(announced.payload),
            writes.i.valid.eq(announced.valid),
            next_write.ready.eq(taken),
            results.i.payload.words.eq(self.result),
            results.i.payload.enable.eq(self.enable),
            results.i.valid.eq(self.result_valid),
            results.o.ready.eq(taken),
            self.room.eq(~full),
            port.valid.eq(results.o.valid),
            taken.eq(port.valid & port.ready),
        ]
        # `full` and `drained` are registers, because both their inputs and their users are late in a cycle.
        with m.If(self.writes.valid & ~taken):
            m.d.sync += [outstanding.eq(outstanding + 1), full.eq(outstanding == self.depth - 1), self.drained.eq(0)]
        with m.Elif(taken & ~self.writes.valid):
            m.d.sync += [outstanding.eq(outstanding - 1), full.eq(0), self.drained.eq(outstanding == 1)]
        m.d.sync += self.retired.eq(taken & write.last)

        place = write.place
        present = Signal(lanes)
        m.d.comb += [
            present.eq(result.enable & (Const((1 << lanes) - 1, lanes) >> (lanes - write.partitions)[:11])),
            port.storage.eq(place.storage),
            port.address.eq(place.address & ~3),
            port.enable.eq(
                shifted(m, "enable_turned", present, place.quadrant, config.quadrant, quadrants(config), left=True)
            ),
            port.data.eq(from_lanes(m, "data", config, place, result.words)),
        ]
        with m.Switch(place.size):
            for size in range(3):
                with m.Case(size):
                    m.d.comb += port.mask.eq(Const((1 << (1 << size)) - 1, 4) << place.address[:2])
            with m.Default():
                pass
        return m

"""The store: results of the lanes, in order, go where their steps said, through the write port."""

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.elementwise.place import from_lanes, quadrants, shifted
from neuroncore_rtl.hdl.elementwise.sequencer import Write
from neuroncore_rtl.hdl.memory.port import WritePort
from neuroncore_rtl.spec.config import Config

__all__ = ["Store"]


class Store(wiring.Component):
    """Joins announced writes with the results that come for them; never stalls the lanes.

    Arguments:
        config: the machine's parameters.
        depth: results that may be announced and not yet written.

    Ports:
        write_valid, write: announces a result; only with `room`.
        room, drained: another result may be announced; all that were are written.
        result_valid, result, enable: results in the order of their announcement, a right-aligned storage word with
            zero above it and a bit for each lane; lanes that do not take part are masked here.
        port: the write port.
        retired: an instruction's last write was taken in the cycle before.

    One result a cycle.
    """

    LATENCY = 1
    """Cycles from a result to its write."""

    def __init__(self, config: Config, depth: int):
        self.config = config
        self.depth = depth
        super().__init__(
            {
                "write_valid": In(1),
                "write": In(Write),
                "room": Out(1),
                "drained": Out(1),
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
        m.submodules.writes = writes = SyncFIFO(width=Write.as_shape().size, depth=self.depth)
        m.submodules.results = results = SyncFIFO(width=33 * lanes, depth=self.depth)
        outstanding = Signal(range(self.depth + 1))
        write = Signal(Write)
        taken = Signal()
        m.d.comb += [
            writes.w_data.eq(self.write),
            writes.w_en.eq(self.write_valid),
            writes.r_en.eq(taken),
            results.w_data.eq(Cat(self.result, self.enable)),
            results.w_en.eq(self.result_valid),
            results.r_en.eq(taken),
            write.eq(writes.r_data),
            self.room.eq(outstanding != self.depth),
            self.drained.eq(outstanding == 0),
            port.valid.eq(results.r_rdy),
            taken.eq(port.valid & port.ready),
        ]
        m.d.sync += [
            outstanding.eq(outstanding + self.write_valid - taken),
            self.retired.eq(taken & write.last),
        ]

        place = write.place
        present = Signal(lanes)
        m.d.comb += [
            present.eq(
                results.r_data[32 * lanes :] & (Const((1 << lanes) - 1, lanes) >> (lanes - write.partitions)[:11])
            ),
            port.storage.eq(place.storage),
            port.address.eq(place.address & ~3),
            port.enable.eq(
                shifted(m, "enable_turned", present, place.quadrant, config.quadrant, quadrants(config), left=True)
            ),
            port.data.eq(from_lanes(m, "data", config, place, results.r_data[: 32 * lanes])),
        ]
        with m.Switch(place.size):
            for size in range(3):
                with m.Case(size):
                    m.d.comb += port.mask.eq(Const((1 << (1 << size)) - 1, 4) << place.address[:2])
            with m.Default():
                pass
        return m

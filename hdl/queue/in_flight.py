"""In-flight records of an engine, from their issue until their updates are done."""

from amaranth import Module, Signal, unsigned
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.queue.semaphores import Update
from neuroncore_rtl.hdl.queue.updates import Updates
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS

__all__ = ["Flight", "InFlight"]


class Flight(data.Struct):
    """Entry of an in-flight record.

    address: HBM address of the record.
    updates: semaphore updates, made in order when the record has finished.
    """

    address: unsigned(HBM_ADDRESS_BITS)
    updates: data.ArrayLayout(Update, 2)


class InFlight(wiring.Component):
    """Ring of in-flight records, which finish in the order in which they started.

    Arguments:
        depth: number of entries, a power of two.

    Ports:
        start: `record` starts in this cycle; an entry must be free.
        record: the record that starts.
        finish: the engine finishes its oldest unfinished record in this cycle.
        finished_address: HBM address of that record, in the same cycle.
        update: semaphore updates of finished records, one per cycle, from the cycle after `finish` on.
        leaves: the oldest record is removed at the end of this cycle, with its last update, if any.
        busy: records are in flight, or their updates are pending.
        oldest: HBM address of the oldest record in flight.
    """

    def __init__(self, depth: int):
        self.depth = depth
        super().__init__(
            {
                "start": In(1),
                "record": In(Flight),
                "finish": In(1),
                "finished_address": Out(HBM_ADDRESS_BITS),
                "update": Out(stream.Signature(Update)),
                "leaves": Out(1),
                "busy": Out(1),
                "oldest": Out(HBM_ADDRESS_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.updates = updates = Updates()
        wiring.connect(m, updates.update, wiring.flipped(self.update))
        m.submodules.records = records = memory.Memory(shape=Flight, depth=self.depth, init=[])
        started, finished, left = (Signal(range(2 * self.depth), name=n) for n in ("started", "finished", "left"))
        write = records.write_port()
        finishing, oldest = (records.read_port(domain="comb") for _ in range(2))
        m.d.comb += [
            write.en.eq(self.start),
            write.addr.eq(started),
            write.data.eq(self.record),
            finishing.addr.eq(finished),
            self.finished_address.eq(finishing.data.address),
            oldest.addr.eq(left),
            self.busy.eq(started != left),
            self.oldest.eq(oldest.data.address),
            updates.valid.eq(left != finished),
            updates.updates.eq(oldest.data.updates),
            self.leaves.eq(updates.done),
        ]
        m.d.sync += [
            started.eq(started + self.start),
            finished.eq(finished + self.finish),
            left.eq(left + self.leaves),
        ]
        return m

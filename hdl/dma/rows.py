"""DMA row reader: prefetches and checks the row numbers of a gather or scatter.

    line access -> [number] -> [product] -> offset, bad, skip -> one queue per tensor

Both address generators wait for each row's result, so a copy ends at the same row in both tensors and skips the same
rows.
"""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.dma.job import JobRow, JobRows
from neuroncore_rtl.hdl.memory.port import LineRead, OnChipStorage
from neuroncore_rtl.hdl.primitives.fifo import BufferedFifo, StreamRegister
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS

__all__ = ["RowReader"]


class RowReader(wiring.Component):
    """Delivers one row per cycle, prefetched up to `AHEAD` rows.

    Arguments:
        size: bytes per beat.
        latency: `port_latency` of the machine; 1 halves the request rate and delays each row by a cycle.

    Ports:
        load: begin to read the row numbers that `rows` describes.
        failed: a row number was beyond its limit and not skipped; stays until reset.
        number: the first row number that set `failed`.
        busy: a row number is not read yet, or is in the pipeline.
    """

    AHEAD = 64

    def __init__(self, size: int, latency: int = 0):
        self.size = size
        self.latency = latency
        super().__init__(
            {
                "load": In(1),
                "rows": In(JobRows),
                "line": Out(LineRead(size, latency)),
                "src": Out(stream.Signature(JobRow)),
                "dst": Out(stream.Signature(JobRow)),
                "failed": Out(1),
                "number": Out(32),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        rows, left = Signal(JobRows, reset_less=True), Signal(len(self.rows.last) + 1)
        partition = Signal.like(self.line.partition)
        queues = {}
        for name in ("src", "dst"):
            m.submodules[name] = queues[name] = BufferedFifo(JobRow, self.AHEAD)
            rows_read = queues[name].o
            if self.latency:
                m.submodules[f"{name}_row"] = register = StreamRegister(JobRow)
                wiring.connect(m, rows_read, register.i)
                rows_read = register.o
            wiring.connect(m, rows_read, wiring.flipped(getattr(self, name)))

        # A request needs a free entry in both queues.
        free = {name: Signal(range(self.AHEAD + 1), init=self.AHEAD, name=f"{name}_free") for name in queues}
        access, counted, wanted = Signal(), Signal(), Signal()
        flight = Signal(self.line.signature.latency + 2)
        place_bits = (self.size - 1).bit_length()
        asks = wanted
        if self.latency:
            asks = Signal(name="asks")
            m.d.sync += [asks.eq(wanted & ~access), counted.eq(access)]
        else:
            m.d.comb += counted.eq(access)
        uncounted = counted if self.latency else 0  # accepted, but still counted in `left` and `free`
        m.d.comb += [
            wanted.eq(Cat(places != uncounted for places in (left, *free.values())).all()),
            self.line.valid.eq(asks),
            self.line.storage.eq(OnChipStorage.SBUF),
            self.line.partition.eq(partition),
            self.line.address.eq(Cat(Const(0, place_bits), rows.address[place_bits:])),
            access.eq(self.line.valid & self.line.ready),
            self.busy.eq((left != 0) | flight.any()),
        ]
        with m.If(self.load):
            m.d.sync += [rows.eq(self.rows), left.eq(self.rows.last + 1), partition.eq(self.rows.partition)]
        with m.Elif(counted):
            m.d.sync += [left.eq(left - 1), partition.eq(partition + 1)]
        m.d.sync += flight.eq(Cat(access, flight[:-1]))

        # Two stages: the number, then its offset.
        number, late_number = Signal(32, reset_less=True), Signal(32, reset_less=True)
        product = Signal(HBM_ADDRESS_BITS, reset_less=True)
        line, beyond, offset = Signal(8 * self.size), Signal(), Signal(HBM_ADDRESS_BITS)
        m.d.sync += [
            number.eq(line[:32]),
            late_number.eq(number),
            product.eq(number * rows.step),
        ]
        m.d.comb += [
            line.eq(self.line.data >> Cat(Const(0, 5), rows.address[2:place_bits])),
            beyond.eq(late_number >= rows.limit),
            offset.eq(product << rows.size),
        ]
        for name, queue in queues.items():
            of_this = rows.scatter == (name == "dst")
            m.d.comb += [
                queue.i.valid.eq(flight[-1]),
                queue.i.payload.bad.eq(beyond & ~rows.skip),
                queue.i.payload.skip.eq(beyond & rows.skip),
                queue.i.payload.offset.eq(Mux(of_this, offset, 0)),
            ]
            m.d.sync += free[name].eq(free[name] - counted + (queue.o.valid & queue.o.ready))
        with m.If(flight[-1] & beyond & ~rows.skip & ~self.failed):
            m.d.sync += [self.failed.eq(1), self.number.eq(late_number)]
        return m

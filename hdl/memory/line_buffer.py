"""Line buffer: holds writes to busy banks, and lets later writes to other banks bypass them.

writers' arbiter -+-------------------> SBUF, PSUM
                  +-> stalled lines ---^
"""

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.memory.bank_arbiter import one_of
from neuroncore_rtl.hdl.memory.port import LineWrite, OnChipStorage
from neuroncore_rtl.hdl.memory.sbuf_block import Geometry
from neuroncore_rtl.spec import timing

__all__ = ["LineBuffer"]


class LineBuffer(wiring.Component):
    """Writes one line per cycle: the oldest line to PSUM or to an SBUF bank that is not `busy`.

    Without latency the incoming line is a candidate, too. If no line qualifies, the oldest line requests its busy bank.
    At most `AHEAD` lines bypass the oldest, which then requests until accepted. Lines to the same bank stay in order,
    so a byte holds the last value written.

    Arguments:
        size: bytes per access.
        writers: number of writers that share the line port.
        sbuf: geometry of SBUF.
        latency: 0 or 1. With 1 a line stays for at least one cycle, all lines stay in order, and no line is accepted
            while `LINES` are buffered.

    Ports:
        i: lines from the arbiter.
        writer: index of the writer of the line at `i`.
        o: lines to the memories; a stalled request may change.
        busy: one bit per SBUF bank, set when an engine or an earlier line port requests the bank.
        after: `busy` of the next line port: `busy`, and the bank that this port requests.
        written: one bit per writer, set when all lines of the writer are written at the end of this cycle.
    """

    LINES = timing.LINE_BUFFER
    AHEAD = timing.LINE_AHEAD

    def __init__(self, size: int, writers: int, sbuf: Geometry, latency: int = 0):
        self.size = size
        self.latency = latency
        self.writers = writers
        self.sbuf = sbuf
        super().__init__(
            {
                "i": In(LineWrite(size)),
                "writer": In(range(max(2, writers))),
                "o": Out(LineWrite(size)),
                "busy": In(sbuf.banks),
                "after": Out(sbuf.banks),
                "written": Out(writers),
            }
        )

    def elaborate(self, platform):
        m = Module()
        known = data.StructLayout({"psum": 1, "bank": self.sbuf.bank_bits, "writer": self.writer.shape()})
        waiting = [Signal(known, name=f"waiting{n}", reset_less=True) for n in range(self.LINES)]  # oldest first
        count, comes = Signal(range(self.LINES + 1)), Signal(known)
        lines = [*waiting, comes]
        there, gone = Signal(len(lines)), Signal(len(lines))
        chosen, stays = self._choose(m, there, lines), Signal()
        m.d.comb += [
            comes.psum.eq(self.i.storage == OnChipStorage.PSUM),
            comes.bank.eq(self.i.address[self.sbuf.bank]),
            comes.writer.eq(self.writer),
            there.eq(Cat(*(count > n for n in range(self.LINES)), self.i.valid)),
            gone.eq(Mux(self.o.ready, there & chosen, 0)),
            self.i.ready.eq((count != self.LINES) | (self.o.ready & (self.latency == 0))),
            stays.eq(self.i.valid & self.i.ready & ~gone[-1]),
            self.o.valid.eq(there[0] if self.latency else there.any()),
        ]
        for writer in range(self.writers):
            left = there & ~gone & Cat(line.writer == writer for line in lines)
            m.d.comb += self.written[writer].eq(~left.any())
        with m.If(self.o.valid & (self.o.storage == OnChipStorage.SBUF)):
            m.d.comb += self.after.eq(self.busy | (1 << self.o.address[self.sbuf.bank]))
        with m.Else():
            m.d.comb += self.after.eq(self.busy)

        m.d.sync += count.eq(count + stays - gone[:-1].any())
        for n in range(self.LINES):
            # The incoming line is appended to the remaining ones.
            with m.If(gone[: n + 1].any()):
                m.d.sync += waiting[n].eq(Mux(count == n + 1, comes, lines[n + 1]))
            with m.Elif(count == n):
                m.d.sync += waiting[n].eq(comes)
        self._store(m, count, chosen, gone, stays)
        return m

    def _choose(self, m: Module, there: Signal, lines: list) -> Signal:
        able, chosen = Signal(len(lines)), Signal(len(lines))
        if self.latency:
            m.d.comb += chosen.eq(1)
            return chosen
        ahead, busy = Signal(range(self.AHEAD + 1)), Array(self.busy)
        free = Cat(line.psum | ~busy[line.bank] for line in lines)
        m.d.comb += [
            able.eq(there & free & Mux(ahead == self.AHEAD, 1, (1 << len(lines)) - 1)),
            chosen.eq(Mux(able.any(), able & ~(able - 1), Mux(there[0], 1, 1 << self.LINES))),
        ]
        with m.If(~there[0] | (self.o.ready & chosen[0])):
            m.d.sync += ahead.eq(0)
        with m.Elif(self.o.ready):
            m.d.sync += ahead.eq(ahead + 1)
        return chosen

    def _store(self, m: Module, count: Signal, chosen: Signal, gone: Signal, stays: Value) -> None:
        """Store the payloads of buffered lines in a memory, which avoids shifting them.

        Output the payload of the chosen line.
        """
        members = self.o.signature.members
        names = [name for name, member in members.items() if member.flow == Out and name != "valid"]
        held = data.StructLayout({name: members[name].shape for name in names})
        m.submodules.held = memory = Memory(shape=held, depth=self.LINES, init=[])
        write, read = memory.write_port(), memory.read_port(domain="comb")
        # Memory address of each line, then the free addresses.
        places = [Signal(range(self.LINES), name=f"place{n}", init=n) for n in range(self.LINES)]
        m.d.comb += [
            read.addr.eq(one_of(chosen[:-1], places)),
            write.addr.eq(Mux(count == self.LINES, read.addr, Array(places)[count[: len(write.addr)]])),
            write.en.eq(stays),
        ]
        for n in range(self.LINES):
            with m.If(gone[: n + 1].any()):
                m.d.sync += places[n].eq(places[n + 1] if n + 1 < self.LINES else read.addr)
        for name in names:
            coming, waiting = getattr(self.i, name), read.data[name]
            m.d.comb += [
                write.data[name].eq(coming),
                getattr(self.o, name).eq(waiting if self.latency else Mux(chosen[-1], coming, waiting)),
            ]

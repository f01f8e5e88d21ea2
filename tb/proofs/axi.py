"""Bounded proofs of AXI4 compliance: a unit with an AXI port complies if the unit at the port's other end does."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from amaranth.hdl import Assert, Assume, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.board.burst import BurstBuffer
from neuroncore_rtl.hdl.board.memory import BurstServer
from neuroncore_rtl.hdl.collective.loader import CollectiveLoader
from neuroncore_rtl.hdl.collective.storer import Storer
from neuroncore_rtl.hdl.dma.answers import Answers
from neuroncore_rtl.hdl.dma.chunker import Chunker
from neuroncore_rtl.hdl.dma.job import BURST_BEATS, Run
from neuroncore_rtl.hdl.dma.reader import Reader
from neuroncore_rtl.hdl.dma.ring import RingRead
from neuroncore_rtl.hdl.dma.writer import HbmWriter
from neuroncore_rtl.hdl.host.axi_lite import AxiLiteBridge
from neuroncore_rtl.hdl.host.isolation import AxiIsolation
from neuroncore_rtl.hdl.memory.axi import AxiPort, connect_channels
from neuroncore_rtl.hdl.memory.axi_arbiter import AxiArbiter
from neuroncore_rtl.hdl.memory.read_arbiter import ReadArbiter
from neuroncore_rtl.hdl.queue.fetch import Fetcher
from neuroncore_rtl.hdl.queue.words import WordReader
from neuroncore_rtl.spec.config import preset_named
from neuroncore_rtl.spec.host_link import PAYLOAD_BYTES
from neuroncore_rtl.spec.isa import RECORD_BYTES
from neuroncore_rtl.tb.proofs.axi_rules import LONGEST, AxiRules
from neuroncore_rtl.tb.proofs.proof import Model, Proof, stream_stays

__all__ = ["PROOFS", "SIZE", "AxiModel"]

SIZE = 8
DEPTH = 8


class AxiModel(Model):
    """A unit that is AXI manager of the ports `drives`, subordinate of `serves`; `legal` restricts other inputs."""

    def __init__(
        self, unit: wiring.Component, legal: Callable | None = None, *, drives: Iterable = (), serves: Iterable = ()
    ):
        self.drives, self.serves, self.legal = drives, serves, legal
        super().__init__(unit)

    def properties(self, m: Module) -> None:
        if self.legal:
            self.legal(m, self.unit)
        for name, ports, managers, subordinates in (
            ("drives", self.drives, Assert, Assume),
            ("serves", self.serves, Assume, Assert),
        ):
            for place, port in enumerate(ports):
                rules = AxiRules(m, f"{name}{place}", port, SIZE)
                rules.manager(managers)
                rules.subordinate(subordinates)


class IsolationModel(AxiModel):
    """Isolation unit: the manager in front of it complies until `stop` is set, which then remains set."""

    def __init__(self):
        super().__init__(unit := AxiIsolation(SIZE, 1), drives=[unit.port])

    def properties(self, m: Module) -> None:
        super().properties(m)
        stopped = Signal()
        m.d.sync += stopped.eq(stopped | self.unit.stop)
        rules = AxiRules(m, "manager", self.unit.manager, SIZE)
        m.d.comb += Assume(self.unit.stop | ~stopped)
        rules.manager(lambda rule: Assume(rule | self.unit.stop))


class DmaReads(wiring.Component):
    """Read path of a DMA engine: runs are divided into chunks, and chunks into bursts."""

    runs: In(stream.Signature(Run))
    axi: Out(AxiPort(SIZE, 1))
    line_ready: In(1)
    ready: In(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.chunker = chunker = Chunker(SIZE)
        m.submodules.reader = reader = Reader(SIZE, BURST_BEATS)
        wiring.connect(m, wiring.flipped(self.runs), chunker.i)
        wiring.connect(m, chunker.o, reader.i)
        wiring.connect(m, reader.axi, wiring.flipped(self.axi))
        m.d.comb += [reader.line.ready.eq(self.line_ready), reader.o.ready.eq(self.ready)]
        return m


class DmaWrites(wiring.Component):
    """Write path of a DMA engine, with the counter of the responses."""

    runs: In(stream.Signature(Run))
    ring: Out(RingRead(SIZE))
    axi: Out(AxiPort(SIZE, 1))
    line_ready: In(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.chunker = chunker = Chunker(SIZE)
        m.submodules.writer = writer = HbmWriter(SIZE)
        m.submodules.answers = answers = Answers()
        wiring.connect(m, wiring.flipped(self.runs), chunker.i)
        wiring.connect(m, chunker.o, writer.i)
        wiring.connect(m, writer.ring, wiring.flipped(self.ring))
        connect_channels(m, writer.axi, self.axi, "aw", "w")
        wiring.connect(m, wiring.flipped(self.axi.b), answers.b)
        m.d.comb += [
            writer.line.ready.eq(self.line_ready),
            answers.burst.eq(writer.burst),
            writer.room.eq(answers.room),
            writer.stop.eq(answers.copies.failed),
        ]
        return m


def legal_runs(m: Module, unit) -> None:
    """Assume that runs of bytes lie inside the memory."""
    run = unit.runs.payload
    inside = run.address + run.bytes <= (1 << len(run.address))
    m.d.comb += Assume(~unit.runs.valid | ((run.bytes != 0) & inside))


def legal_requests(m: Module, unit) -> None:
    """Assume that queues request aligned records."""
    for request in unit.requests:
        m.d.comb += Assume(request.payload % RECORD_BYTES == 0)


def legal_words(m: Module, unit) -> None:
    """Assume that the start of a read of words is requested only once."""
    started = Signal()
    m.d.sync += started.eq(started | unit.start)
    inside = unit.address + 4 * unit.count <= (1 << len(unit.address))
    m.d.comb += Assume(~unit.start | (~started & (unit.address % SIZE == 0) & (unit.count != 0) & inside))


def legal_operations(m: Module, unit) -> None:
    """Assume that operations stay until accepted, have elements, and begin at a legal address."""
    stream_stays(m, unit.ops)
    op = unit.ops.payload
    m.d.comb += Assume((op.address % 64 == 0) & (op.elements != 0) & (op.address >> 39 == 0))


def legal_stores(m: Module, unit) -> None:
    legal_operations(m, unit)
    stream_stays(m, unit.beats)


def legal_bursts(m: Module, unit) -> None:
    """Assume that a burst lies inside a block of PAYLOAD_BYTES, and the buffer is not written during the burst."""
    waits = Signal()
    requested = (unit.store, unit.address, unit.beats)
    before = [Signal.like(value) for value in requested]
    m.d.sync += waits.eq(unit.start & ~unit.done)
    for value, kept in zip(requested, before, strict=True):
        m.d.sync += kept.eq(value)
        with m.If(waits):
            m.d.comb += Assume(unit.start & (value == kept))
    inside = (unit.address % PAYLOAD_BYTES) + unit.beats * SIZE <= PAYLOAD_BYTES
    m.d.comb += [Assume((unit.address % SIZE == 0) & (unit.beats != 0) & inside), Assume(~(unit.start & unit.write))]


def legal_bus(m: Module, unit) -> None:
    """Assume at most one response for each accepted request on the bridge's bus, at least one cycle later."""
    owed = Signal()
    m.d.sync += owed.eq((unit.bus.valid & unit.bus.ready) | (owed & ~unit.bus.response))
    m.d.comb += Assume(~unit.bus.response | owed)


def legal_ids(m: Module, unit) -> None:
    """Assume that the managers use the ID 0."""
    m.d.comb += [Assume(~channel.payload.id) for one in unit.managers for channel in (one.aw, one.ar)]


def legal_loaders(m: Module, unit) -> None:
    """Assume that the managers use the ID 0, accept every beat, and do not write."""
    legal_ids(m, unit)
    m.d.comb += [Assume(one.r.ready & ~one.aw.valid & ~one.w.valid) for one in unit.managers]


def legal_memory(m: Module, unit) -> None:
    """Assume that the memory answers outstanding reads only, and an answer stays until accepted."""
    outstanding = Signal(range(LONGEST + 1))
    stream_stays(m, unit.answers)
    accepted, given = unit.beats.valid & unit.beats.ready & ~unit.beats.payload.write, unit.answers.valid
    m.d.sync += outstanding.eq(outstanding + accepted - (given & unit.answers.ready))
    m.d.comb += Assume(~given | (outstanding != 0))


def _manager(name: str, make: Callable[[], wiring.Component], legal: Callable, depth: int = DEPTH) -> Proof:
    return Proof(name, lambda: AxiModel(unit := make(), legal, drives=[unit.axi]), depth)


def _both_sides(name: str, make: Callable[[], wiring.Component], legal: Callable) -> Proof:
    return Proof(name, lambda: AxiModel(unit := make(), legal, drives=[unit.port], serves=unit.managers), 6)


PROOFS = (
    _manager("DMA engine, reads", DmaReads, legal_runs),
    _manager("DMA engine, writes", DmaWrites, legal_runs),
    _manager("record fetcher", lambda: Fetcher(replace(preset_named("small"), hbm_bytes=SIZE)), legal_requests),
    _manager("boot, words", lambda: WordReader(SIZE, 1 << 10), legal_words),
    _manager("collective loader", lambda: CollectiveLoader(8, SIZE), legal_operations),
    _both_sides("collective loads, both sides", lambda: ReadArbiter(SIZE), legal_loaders),
    _manager("collective storer", lambda: Storer(8, SIZE), legal_stores),
    _manager("host link", lambda: BurstBuffer(SIZE, 1), legal_bursts, 5),
    _both_sides("HBM arbiter, both sides", lambda: AxiArbiter(SIZE, 2), legal_ids),
    Proof("isolation", IsolationModel, DEPTH),
    Proof("AXI4-Lite bridge", lambda: AxiModel(unit := AxiLiteBridge(16), legal_bus, serves=[unit.axi]), 16),
    Proof(
        "board memory",
        lambda: AxiModel(unit := BurstServer(SIZE, 1, 2, 1 << 20), legal_memory, serves=unit.managers),
        DEPTH,
    ),
)

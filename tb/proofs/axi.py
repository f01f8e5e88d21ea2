"""Every unit that has an AXI port keeps to the rules of AXI4, if the other side does: bounded.

A unit may do what it likes within the cycles of a proof; its other inputs are free, but for what is assumed here.
"""

from collections.abc import Callable
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
from neuroncore_rtl.hdl.queue.fetch import Fetcher
from neuroncore_rtl.hdl.queue.words import WordReader
from neuroncore_rtl.spec.config import preset_named
from neuroncore_rtl.spec.host_link import PAYLOAD_BYTES
from neuroncore_rtl.spec.isa import RECORD_BYTES
from neuroncore_rtl.tb.proofs.axi_rules import LONGEST, AxiRules
from neuroncore_rtl.tb.proofs.proof import Model, Proof, stream_stays

__all__ = ["PROOFS", "SIZE", "AxiModel"]

SIZE = 8
"""Bytes of a beat."""

DEPTH = 8
"""Cycles from reset."""


class AxiModel(Model):
    """A unit, the rules of its ports, and what is assumed of the rest.

    Arguments:
        unit: it.
        drives, serves: returns the ports of which it is the manager, or the subordinate.
        legal: adds assumptions of its other inputs.
    """

    def __init__(
        self,
        unit: wiring.Component,
        *,
        drives: Callable[[wiring.Component], list] = lambda unit: [],
        serves: Callable[[wiring.Component], list] = lambda unit: [],
        legal: Callable[[Module, wiring.Component], None] = lambda m, unit: None,
    ):
        self.drives, self.serves, self.legal = drives, serves, legal
        super().__init__(unit)

    def properties(self, m: Module) -> None:
        self.legal(m, self.unit)
        for name, ports, managers, subordinates in (
            ("drives", self.drives(self.unit), Assert, Assume),
            ("serves", self.serves(self.unit), Assume, Assert),
        ):
            for place, port in enumerate(ports):
                rules = AxiRules(m, f"{name}{place}", port, SIZE)
                rules.manager(managers)
                rules.subordinate(subordinates)


class IsolationModel(AxiModel):
    """The manager keeps to the rules until `stop`, which stays; then it may do anything."""

    def __init__(self):
        super().__init__(AxiIsolation(SIZE, 1), drives=lambda unit: [unit.port])

    def properties(self, m: Module) -> None:
        super().properties(m)
        stopped = Signal()
        m.d.sync += stopped.eq(stopped | self.unit.stop)
        rules = AxiRules(m, "manager", self.unit.manager, SIZE)
        m.d.comb += Assume(self.unit.stop | ~stopped)
        rules.manager(lambda rule: Assume(rule | self.unit.stop))


class DmaReads(wiring.Component):
    """The part of a DMA engine that reads: runs become chunks, and chunks bursts."""

    def __init__(self):
        self.reader = Reader(SIZE, BURST_BEATS)
        super().__init__(
            {
                "runs": In(stream.Signature(Run)),
                "axi": Out(AxiPort(SIZE, 1)),
                "line_ready": In(1),
                "ready": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.chunker = chunker = Chunker(SIZE)
        m.submodules.reader = reader = self.reader
        wiring.connect(m, wiring.flipped(self.runs), chunker.i)
        wiring.connect(m, chunker.o, reader.i)
        wiring.connect(m, reader.axi, wiring.flipped(self.axi))
        m.d.comb += [reader.line.ready.eq(self.line_ready), reader.o.ready.eq(self.ready)]
        return m


class DmaWrites(wiring.Component):
    """The part of a DMA engine that writes, and counts the answers."""

    def __init__(self):
        super().__init__(
            {
                "runs": In(stream.Signature(Run)),
                "ring": Out(RingRead(SIZE)),
                "axi": Out(AxiPort(SIZE, 1)),
                "line_ready": In(1),
            }
        )

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
    """Runs have bytes, which are all in memory."""
    run = unit.runs.payload
    inside = run.address + run.bytes <= (1 << len(run.address))
    m.d.comb += Assume(~unit.runs.valid | ((run.bytes != 0) & inside))


def legal_requests(m: Module, unit) -> None:
    """Queues ask for records, which are aligned."""
    for request in unit.requests:
        m.d.comb += Assume(request.payload % RECORD_BYTES == 0)


def legal_words(m: Module, unit) -> None:
    """A run of words begins once, at any time."""
    begun = Signal()
    m.d.sync += begun.eq(begun | unit.start)
    inside = unit.address + 4 * unit.count <= (1 << len(unit.address))
    m.d.comb += Assume(~unit.start | (~begun & (unit.address % SIZE == 0) & (unit.count != 0) & inside))


def legal_operations(m: Module, unit) -> None:
    """Operations stay until they are taken; they have elements, and begin where a segment may."""
    stream_stays(m, unit.ops)
    op = unit.ops.payload
    m.d.comb += Assume((op.address % 64 == 0) & (op.elements != 0) & (op.address >> 39 == 0))


def legal_bursts(m: Module, unit) -> None:
    """A burst stays until it is done, lies in a block of a payload's size, and has the buffer for itself."""
    waits = Signal()
    asked = (unit.store, unit.address, unit.beats)
    before = [Signal.like(value) for value in asked]
    m.d.sync += waits.eq(unit.start & ~unit.done)
    for value, kept in zip(asked, before, strict=True):
        m.d.sync += kept.eq(value)
        with m.If(waits):
            m.d.comb += Assume(unit.start & (value == kept))
    inside = (unit.address % PAYLOAD_BYTES) + unit.beats * SIZE <= PAYLOAD_BYTES
    m.d.comb += [Assume((unit.address % SIZE == 0) & (unit.beats != 0) & inside), Assume(~(unit.start & unit.write))]


def legal_bus(m: Module, unit) -> None:
    """Who answers the bridge answers once, later, what was asked."""
    owed = Signal()
    m.d.sync += owed.eq((unit.bus.valid & unit.bus.ready) | (owed & ~unit.bus.response))
    m.d.comb += Assume(~unit.bus.response | owed)


def legal_memory(m: Module, unit) -> None:
    """The memory answers what it was asked to read, in order, and an answer stays until it is taken."""
    asked = Signal(range(LONGEST + 1))
    stream_stays(m, unit.answers)
    taken, given = unit.beats.valid & unit.beats.ready & ~unit.beats.payload.write, unit.answers.valid
    m.d.sync += asked.eq(asked + taken - (given & unit.answers.ready))
    m.d.comb += Assume(~given | (asked != 0))


def port(unit) -> list:
    """Return a unit's only port."""
    return [unit.axi]


def _fetcher() -> AxiModel:
    return AxiModel(Fetcher(replace(preset_named("small"), hbm_bytes=SIZE)), drives=port, legal=legal_requests)


def _loader() -> AxiModel:
    return AxiModel(CollectiveLoader(8, SIZE), drives=port, legal=legal_operations)


def _storer() -> AxiModel:
    def legal(m, unit):
        legal_operations(m, unit)
        stream_stays(m, unit.beats)

    return AxiModel(Storer(8, SIZE), drives=port, legal=legal)


def _arbiter() -> AxiModel:
    def legal(m, unit):
        m.d.comb += [Assume(~channel.payload.id) for one in unit.managers for channel in (one.aw, one.ar)]

    drives, serves = (lambda unit: [unit.port]), (lambda unit: list(unit.managers))
    return AxiModel(AxiArbiter(SIZE, 2), drives=drives, serves=serves, legal=legal)


PROOFS = (
    Proof("DMA engine, reads", lambda: AxiModel(DmaReads(), drives=port, legal=legal_runs), DEPTH),
    Proof("DMA engine, writes", lambda: AxiModel(DmaWrites(), drives=port, legal=legal_runs), DEPTH),
    Proof("record fetcher", _fetcher, DEPTH),
    Proof("boot, words", lambda: AxiModel(WordReader(SIZE, 1 << 10), drives=port, legal=legal_words), DEPTH),
    Proof("collective loader", _loader, DEPTH),
    Proof("collective storer", _storer, DEPTH),
    Proof("host link", lambda: AxiModel(BurstBuffer(SIZE, 1), drives=port, legal=legal_bursts), 5),
    Proof("HBM arbiter, both sides", _arbiter, 6),
    Proof("isolation", IsolationModel, DEPTH),
    Proof("AXI4-Lite bridge", lambda: AxiModel(AxiLiteBridge(16), serves=port, legal=legal_bus), 16),
    Proof(
        "board memory",
        lambda: AxiModel(BurstServer(SIZE, 1, 2, 1 << 20), serves=lambda unit: list(unit.managers), legal=legal_memory),
        DEPTH,
    ),
)

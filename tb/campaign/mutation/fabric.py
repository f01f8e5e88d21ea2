"""Mutation units of data movement: arbiters, DMA, links and the router."""

from collections.abc import Mapping

from amaranth.hdl import Assume, Cat, Const, Module, Signal, Value

from neuroncore_rtl.hdl.dma.address_generator import DmaAddressGenerator
from neuroncore_rtl.hdl.dma.answers import Answers
from neuroncore_rtl.hdl.dma.caster import Caster
from neuroncore_rtl.hdl.dma.checker import DmaChecker
from neuroncore_rtl.hdl.dma.chunker import Chunker
from neuroncore_rtl.hdl.dma.engine import DmaEngine
from neuroncore_rtl.hdl.dma.job import BURST_BEATS, WORD_BYTES
from neuroncore_rtl.hdl.dma.reader import Reader
from neuroncore_rtl.hdl.dma.rows import RowReader
from neuroncore_rtl.hdl.dma.sequencer import DmaSequencer
from neuroncore_rtl.hdl.dma.turns import PacketTurns
from neuroncore_rtl.hdl.dma.writer import HbmWriter
from neuroncore_rtl.hdl.link.router import Router
from neuroncore_rtl.hdl.memory.bank_arbiter import BankArbiter
from neuroncore_rtl.hdl.memory.line_arbiter import LineReadArbiter
from neuroncore_rtl.hdl.memory.port import Storage
from neuroncore_rtl.hdl.primitives.round_robin import RoundRobin
from neuroncore_rtl.tb.campaign.mutation.netlist import payloads, qualify
from neuroncore_rtl.tb.campaign.mutation.unit import Unit, answers_requests, files, if_valid, tests_module

__all__ = ["FABRIC"]


def _routable(m: Module, router: Router) -> Value:
    """Return whether golden would send each flit through this router's input, and the chip number is constant."""
    tests = tests_module("link.test_router")
    routes, (streams, _) = tests.cases(tests.RING), tests.streams_of(router, tests.RING)
    legal = []
    for source, flits in zip(tests_module("link.test_router_cycles").came_from(tests.RING), streams, strict=True):
        header = flits.payload.header
        place = Cat(router.chip, header.destination, header.channel)
        widths = len(router.chip), len(header.destination)
        known = [chip | core << widths[0] | channel << sum(widths) for chip, core, channel in routes.get(source, ())]
        legal.append(if_valid(flits, place.matches(*known)))
    begun, chip = Signal(), Signal.like(router.chip)
    m.d.sync += [begun.eq(1), chip.eq(router.chip)]
    return Cat(legal, ~begun | (chip == router.chip)).all()


def _flits(m: Module, router: Router) -> Mapping[str, Value]:
    links = [f"links_out.{side}.{vc}" for side, both in enumerate(router.links_out) for vc in range(len(both))]
    return payloads(router, *links, *(f"local_out.{port}" for port in range(len(router.local_out))))


def _line(line, name: str, *others: str) -> dict[str, Value]:
    members = ("storage", "partition", "address", *others)
    return qualify(line.valid, {f"{name}.{member}": getattr(line, member) for member in members})


def _legal_runs(m: Module, chunker: Chunker) -> Value:
    run = chunker.i.payload
    return if_valid(chunker.i, (run.bytes != 0) & Value.cast(run.storage).matches(*Storage))


def _legal_chunks(unit: Reader | HbmWriter) -> Value:
    """Return whether each chunk fits one access of its memory, or one burst of HBM."""
    chunk, legal = unit.i.payload, Const(0)
    for storage, grid in (
        (Storage.SBUF, unit.size),
        (Storage.PSUM, WORD_BYTES),
        (Storage.HBM, BURST_BEATS * unit.size),
    ):
        place = chunk.address[: (grid - 1).bit_length()]
        legal |= (chunk.storage == storage) & (chunk.bytes != 0) & (place + chunk.bytes <= grid)
    return if_valid(unit.i, legal)


def _row_jobs(m: Module, rows: RowReader) -> Value:
    """Return whether a job starts after the previous one, with aligned row numbers in existing partitions."""
    done = ~(rows.busy | rows.src.valid | rows.dst.valid)
    count = rows.rows.last < 1 << len(rows.rows.partition)
    return ~rows.load | (done & (rows.rows.address[:2] == 0) & count)


def _writer_outputs(m: Module, writer: HbmWriter) -> Mapping[str, Value]:
    ring = qualify(writer.ring.take, {f"ring.{name}": getattr(writer.ring, name) for name in ("count", "offset")})
    hungry = qualify(writer.i.valid, {"hungry": writer.hungry})
    return _line(writer.line, "line", "data", "mask") | payloads(writer.axi, "aw", "w", of="axi.") | ring | hungry


def _answer_inputs(m: Module, answers: Answers) -> Value:
    """Return whether bursts and ends of copies occur only with free entries, and HBM answers only issued bursts."""
    copies = answers.copies
    return Cat(~answers.burst | answers.room, ~copies.close | copies.closable, ~answers.b.valid | ~copies.quiet).all()


def _grant(m: Module, turn: RoundRobin) -> Mapping[str, Value]:
    """Compare the grant only while there is a request; assume that the grant is used only then."""
    m.d.comb += Assume(~turn.taken | turn.requests.any())
    return qualify(turn.requests.any(), {"grant": turn.grant})


FABRIC = {
    "bank_arbiter": Unit("SBUF's arbiter", lambda: BankArbiter(3, 4, 4), files("memory/bank_arbiter"), 24),
    "link_end": Unit(
        "link's end", lambda: tests_module("link.pair").Pair(1, 2),
        (*files("link/ends"), *(f"{file}::test_{name}_dead" for file in files("link/link") for name in
                                ("cut_link_is", "idle_link_is_not"))), 7, part="end0", without=("counting",),
    ),
    "router": Unit(
        "router", lambda: Router(tests_module("link.test_router").RING), files("link/router_cycles", "link/router"), 4,
        legal=_routable, means=_flits,
    ),
    "round_robin": Unit(
        "round robin", lambda: RoundRobin(8), files("primitives/round_robin"), 8, means=_grant
    ),
    "line_arbiter": Unit(
        "line arbiter", lambda: LineReadArbiter(16, 5), files("memory/line_arbiter"), 8, without=("turn",),
        means=lambda m, dut: _line(dut.port, "port", "word") | qualify(dut.port.valid, {"chosen": dut.chosen}),
    ),
    "address_generator": Unit("DMA's addresses", DmaAddressGenerator, files("dma/address_generator"), 6),
    "packet_turns": Unit("DMA's turns", lambda: PacketTurns(4, 5), files("dma/turns"), 12, without=("arbiter",)),
    "chunker": Unit(
        "DMA's chunks", lambda: Chunker(8), files("dma/chunker"), 6, legal=_legal_runs,
        means=lambda m, chunker: payloads(chunker, "o"),
    ),
    "dma_reader": Unit(
        "DMA's reader", lambda: Reader(8, 32), files("dma/reader"), 8,
        means=lambda m, dut: payloads(dut, "o") | payloads(dut.axi, "ar", of="axi.") | _line(dut.line, "line", "word"),
        legal=lambda m, reader: answers_requests(m, reader.axi) & _legal_chunks(reader),
    ),
    "dma_rows": Unit(
        "DMA's row numbers", lambda: RowReader(tests_module("dma.test_rows").SIZE), files("dma/rows"), 8,
        legal=_row_jobs, means=lambda m, rows: payloads(rows, "src", "dst") | _line(rows.line, "line", "word")
        | qualify(rows.failed, {"number": rows.number}),
    ),
    "dma_writer": Unit(
        "DMA's writer", lambda: HbmWriter(8), files("dma/writer"), 8, means=_writer_outputs,
        legal=lambda m, writer: _legal_chunks(writer),
    ),
    "caster": Unit("DMA's casts", lambda: Caster(8, 1, 1), files("dma/caster"), 4),
    "dma_checker": Unit(
        "DMA's checker", lambda: DmaChecker(tests_module("dma.test_checker").CONFIGS["4x4"]), files("dma/checker"), 0
    ),
    "dma_answers": Unit("DMA's answers", Answers, files("dma/answers"), 12, legal=_answer_inputs),
    "dma_sequencer": Unit("DMA's sequencer", DmaSequencer, files("dma/sequencer"), 8),
    "dma": Unit(
        "DMA engine", lambda: DmaEngine(tests_module("dma.test_errors").CONFIG),
        files("dma/cycles", "dma/copies", "dma/errors"), 0, module="dma_engine",
        without=(
            "counting", "caster", "checker", "reader", "rows", "writer", "line", "answers", "sequencer",
            *(f"{side}_{part}" for side in ("src", "dst") for part in ("addresses", "chunker")),
        ),
    ),
}  # fmt: skip

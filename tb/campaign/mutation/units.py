"""Table of all mutation units, with those of arithmetic, of the engines, of queues and of the processor."""

import importlib
from collections.abc import Mapping

from amaranth.hdl import Assume, Cat, Module, Mux, Signal, Value

from neuroncore_rtl.hdl.arith.add import Fp32Adder
from neuroncore_rtl.hdl.arith.decode import EdgeDecoder
from neuroncore_rtl.hdl.arith.divide import Fp32Divider
from neuroncore_rtl.hdl.arith.fma import Fp32Fma
from neuroncore_rtl.hdl.arith.formats import FormatCode
from neuroncore_rtl.hdl.arith.power import Fp32Power
from neuroncore_rtl.hdl.arith.round import Fp32Rounder
from neuroncore_rtl.hdl.arith.threefry import Threefry2x32
from neuroncore_rtl.hdl.controller.cpu import Cpu
from neuroncore_rtl.hdl.controller.decoder import Decoder
from neuroncore_rtl.hdl.elementwise.indices import Indices
from neuroncore_rtl.hdl.elementwise.pacer import Pacer
from neuroncore_rtl.hdl.elementwise.store import ResultStore
from neuroncore_rtl.hdl.memory.psum import Psum
from neuroncore_rtl.hdl.primitives.fifo import BufferedFifo
from neuroncore_rtl.hdl.queue.boot import Boot
from neuroncore_rtl.hdl.queue.fetch import Fetcher
from neuroncore_rtl.hdl.queue.queue import Queue
from neuroncore_rtl.hdl.queue.registers import Registers
from neuroncore_rtl.hdl.queue.semaphores import Semaphores
from neuroncore_rtl.hdl.scalar.running_sum import RunningSum
from neuroncore_rtl.hdl.tensor.loader import StationaryLoader
from neuroncore_rtl.hdl.tensor.mover import Mover
from neuroncore_rtl.hdl.vector.alu import VectorAlu
from neuroncore_rtl.hdl.vector.search import Search
from neuroncore_rtl.run.sim.elaboration import CPU
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import matmul_formats
from neuroncore_rtl.spec.isa import RECORD_BYTES, Engine
from neuroncore_rtl.spec.pacing import pace_of
from neuroncore_rtl.tb.campaign.mutation.collective import COLLECTIVE_UNITS
from neuroncore_rtl.tb.campaign.mutation.fabric import FABRIC
from neuroncore_rtl.tb.campaign.mutation.netlist import payloads, qualify
from neuroncore_rtl.tb.campaign.mutation.unit import Unit, answers_requests, files, if_valid, tests_module
from neuroncore_rtl.tb.tests.engines.mac import MacUnit

__all__ = ["MUTATED_UNITS", "unit_named"]


def _known_formats(m, unit):
    """Assume that the operands' format is a known one, as results for other format codes have no meaning."""
    known = matmul_formats(unit.mac.significand_bits)
    m.d.comb += Assume(Cat(unit.word.format == FormatCode(fmt.code) for fmt in known).any())
    return {}


def _of_integers_or_not(m, unit):
    """Compare the product only for integer operations and the sum only for float operations, each after its latency."""
    integer, late = unit.integer, []
    for cycle in range(unit.latency):
        late.append(integer)
        integer = Signal(name=f"integer_{cycle}", reset_less=True)
        m.d.sync += integer.eq(late[-1])
    late.append(integer)
    return {"out": Mux(late[unit.latency], 0, unit.out), "product": Mux(late[unit.product_latency], unit.product, 0)}


def _accepted_reads(m, psum):
    """Compare read data only in the cycle after an accepted request."""
    seen = {}
    for name in ("reads", "shared_reads"):
        port, accepted = getattr(psum, name), Signal(name=f"{name}_accepted")
        m.d.sync += accepted.eq(port.valid & port.ready)
        seen |= qualify(accepted, {f"{name}.data": port.data})
    return seen


def _announcements(m: Module, store: ResultStore) -> Value:
    """Return whether each result follows its write request, and each request has a free entry and a legal size."""
    owed, writes = Signal(range(store.depth + 1), name="owed"), store.writes
    m.d.sync += owed.eq(owed + writes.valid - store.result_valid)
    sized = writes.payload.place.size != 3
    return if_valid(writes, store.room & sized) & (~store.result_valid | (owed != 0))


def _of_records(m: Module, fetcher: Fetcher) -> Value:
    """Return whether HBM sends only requested data with `last` on each record's last beat, and requests are aligned."""
    bits, beats = (RECORD_BYTES - 1).bit_length(), RECORD_BYTES // fetcher.config.hbm_bytes
    beat, answer = Signal(range(beats), name="beat_of_record"), fetcher.axi.r
    with m.If(answer.valid & answer.ready):
        m.d.sync += beat.eq(Mux(answer.payload.last, 0, beat + 1))
    last_is_right = if_valid(answer, answer.payload.last == (beat == beats - 1))
    starts = Cat(port.payload[:bits] == 0 for port in fetcher.requests).all()
    return answers_requests(m, fetcher.axi) & last_is_right & starts


def _trace(m: Module, cpu: Cpu) -> Mapping[str, Value]:
    said = ("trace_pc", "trace_instruction", "trace_trap", "trace_cause", "trace_rd", "trace_value")
    return qualify(cpu.trace_valid, {name: getattr(cpu, name) for name in said})


MUTATED_UNITS = {
    "pe": Unit(
        "PE with its decoders", lambda: MacUnit(2), files("arith/mac", "arith/benches"), 5, means=_known_formats
    ),
    "edge_decoder": Unit("edge decoder", EdgeDecoder, files("arith/decode"), 2),
    "rounding": Unit("rounding", lambda: Fp32Rounder(2), files("arith/round"), 5),
    "threefry": Unit("Threefry", Threefry2x32, files("arith/threefry"), 2),
    "adder": Unit("FP32 adder", lambda: Fp32Adder(2), files("arith/fp32"), 5),
    "multiply_add": Unit("FP32 multiply-add", lambda: Fp32Fma(4), files("arith/fp32"), 7, means=_of_integers_or_not),
    "alu": Unit("vector ALU", lambda: VectorAlu(), files("vector/alu"), 4),
    "search": Unit("search", Search, files("vector/search"), 20),
    "psum": Unit(
        "PSUM", lambda: Psum(3, 16, 1), files("memory/psum_traffic"), 0, means=_accepted_reads,
        without=tuple(f"partitions.block0.partition{n}.add" for n in range(3)),
    ),
    "mover": Unit("tensor sequencing: mover", lambda: Mover(Config(rows=2, columns=4)), files("tensor/sequencers")),
    "loader": Unit(
        "tensor sequencing: loader", lambda: StationaryLoader(Config(rows=2, columns=1024)), files("tensor/sequencers")
    ),
    "counting": Unit(
        "counters", lambda: tests_module("primitives.test_counting").counting(), files("primitives/counting"), 3
    ),
    "fifo": Unit(
        "queues in a memory", lambda: BufferedFifo(16, 4), files("primitives/fifo"), 8,
        means=lambda m, fifo: payloads(fifo, "o"),
    ),
    "divider": Unit("divider", Fp32Divider, files("arith/iterative"), 0),
    "power": Unit("power", Fp32Power, files("arith/iterative"), 0),
    "statistics": Unit(
        "statistics", lambda: tests_module("vector.test_stats").WithUnits(1), files("vector/stats"), 16,
        part="statistics",
    ),
    "functions": Unit(
        "activation functions", lambda: tests_module("scalar.activations").PlayedFunction(),
        files("scalar/function"), 0, part="unit", whole=True,
    ),
    "running_sum": Unit("running sum", RunningSum, files("scalar/running_sum"), 0),
    "indices": Unit("element-wise indices", Indices, files("elementwise/indices"), 3),
    "sequencer": Unit(
        "element-wise sequencer", lambda: (tests := tests_module("elementwise.test_sequencer")).Front(tests.WIDE),
        files("elementwise/sequencer"), 0, part="sequencer", without=("indices",),
    ),
    "checker": Unit(
        "element-wise checker",
        lambda: (tests := tests_module("elementwise.test_checker")).checker(tests.CONFIGS["8x4"], tests.OPCODES),
        files("elementwise/checker"), 0,
    ),
    "pacer": Unit(
        "pacer", lambda: Pacer(pace_of(Engine.VECTOR, tests_module("elementwise.test_pacer").MACHINE)),
        files("elementwise/pacer"), 0,
    ),
    "store": Unit(
        "element-wise store",
        lambda: ResultStore((tests := tests_module("elementwise.test_store")).TRIED, tests.DEPTH),
        files("elementwise/store"), 8, legal=_announcements,
    ),
    "frontend": Unit(
        "element-wise front end",
        lambda: (tests := tests_module("elementwise.test_frontend")).Command(tests.TINY, [], [], None).dut,
        files("elementwise/frontend"), 0, without=("checker", "sequencer", "store", "counting"),
    ),
    "queue": Unit(
        "queue", lambda: Queue(Engine.TENSOR, 2, 4), files("queue/queue", "queue/queue_errors"), 8,
        without=("counting", "prefetcher.rung"),
        legal=lambda m, queue: if_valid(queue.record, queue.record.payload.last),
    ),
    "semaphores": Unit("semaphores", lambda: Semaphores(3, 16), files("queue/semaphores"), 8),
    "fetcher": Unit(
        "fetcher", lambda: Fetcher(Config(rows=4, columns=4, dma_engines=2, hbm_bytes=64)), files("queue/fetch"), 8,
        legal=_of_records,
    ),
    "boot": Unit(
        "boot", lambda: Boot(Config(rows=4, columns=6, dma_engines=3, hbm_bytes=16, cores=24)), files("queue/boot"), 15,
        legal=lambda m, boot: answers_requests(m, boot.axi),
    ),
    "registers": Unit(
        "registers", lambda: Registers(PRESETS["tiny"]), files("queue/registers"), 10,
        means=lambda m, unit: qualify(unit.bus.response, {"bus.result": unit.bus.result, "bus.error": unit.bus.error}),
    ),
    "address_decoder": Unit(
        "controller: addresses", lambda: Decoder(tests_module("controller.test_decoder").REGIONS),
        files("controller/decoder"),
    ),
    "riscv": Unit(
        "RISC-V processor", Cpu,
        files(*(f"controller/{name}" for name in ("arithmetic", "access", "csr", "places", "timing", "traps"))), 6,
        module=CPU, means=_trace,
    ),
    **FABRIC,
    **COLLECTIVE_UNITS,
}  # fmt: skip


def unit_named(name: str) -> Unit:
    """Return a unit of `MUTATED_UNITS`, or the unit that another module defines; then the name is module:attribute."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute) if attribute else MUTATED_UNITS[name]

"""Mutation units of control: queues with their fetching, registers, and the processor."""

from collections.abc import Mapping

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from neuroncore_rtl.hdl.controller.cpu import Cpu
from neuroncore_rtl.hdl.controller.decoder import Decoder
from neuroncore_rtl.hdl.queue.boot import Boot
from neuroncore_rtl.hdl.queue.fetch import Fetcher
from neuroncore_rtl.hdl.queue.queue import Queue
from neuroncore_rtl.hdl.queue.registers import Registers
from neuroncore_rtl.hdl.queue.semaphores import Semaphores
from neuroncore_rtl.run.sim.elaboration import CPU
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.isa import RECORD_BYTES, Engine
from neuroncore_rtl.tb.campaign.mutation.legal import answers_requests, if_valid
from neuroncore_rtl.tb.campaign.mutation.unit import Unit, files, qualify, tests_module

__all__ = ["CONTROL_UNITS"]


def _of_records(m: Module, fetcher: Fetcher) -> Value:
    """Return whether HBM sends only requested data with `last` on each record's last beat, and requests are aligned."""
    bits, beats = (RECORD_BYTES - 1).bit_length(), RECORD_BYTES // fetcher.config.hbm_bytes
    beat, answer = Signal(range(beats), name="beat_of_record"), fetcher.axi.r
    with m.If(answer.valid & answer.ready):
        m.d.sync += beat.eq(Mux(answer.payload.last, 0, beat + 1))
    last_is_right = if_valid(answer, answer.payload.last == (beat == beats - 1))
    starts = Cat(port.payload[:bits] == 0 for port in fetcher.requests).all()
    return answers_requests(m, fetcher.axi) & last_is_right & starts


def _response(m: Module, registers: Registers) -> Mapping[str, Value]:
    bus = registers.bus
    return qualify(bus.response, {f"bus.{name}": getattr(bus, name) for name in ("result", "error")})


def _trace(m: Module, cpu: Cpu) -> Mapping[str, Value]:
    said = ("trace_pc", "trace_instruction", "trace_trap", "trace_cause", "trace_rd", "trace_value")
    return qualify(cpu.trace_valid, {name: getattr(cpu, name) for name in said})


CONTROL_UNITS = {
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
        "registers", lambda: Registers(PRESETS["tiny"]), files("queue/registers"), 10, means=_response
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
}  # fmt: skip

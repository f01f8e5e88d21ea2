"""Rows of the units that say what is done when: queues and what is around them, registers, and the processor."""

from amaranth.hdl import Cat, Module, Value

from neuroncore_rtl.hdl.controller.cpu import Cpu
from neuroncore_rtl.hdl.controller.decoder import Decoder
from neuroncore_rtl.hdl.queue.boot import Boot
from neuroncore_rtl.hdl.queue.fetch import Fetcher
from neuroncore_rtl.hdl.queue.queue import Queue
from neuroncore_rtl.hdl.queue.registers import Registers
from neuroncore_rtl.hdl.queue.semaphores import Semaphores
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.isa import RECORD_BYTES, Engine
from neuroncore_rtl.tb.campaign.mutation.legal import answers_what_was_asked
from neuroncore_rtl.tb.campaign.mutation.unit import Unit, files, of_tests
from neuroncore_rtl.tb.sim.elaboration import CPU

__all__ = ["CONTROL"]


def _of_records(m: Module, fetcher: Fetcher) -> Value:
    """Return whether HBM answers what was asked, and what is asked for begins where a record may."""
    bits = (RECORD_BYTES - 1).bit_length()
    return answers_what_was_asked(m, fetcher.axi) & Cat(port.payload[:bits] == 0 for port in fetcher.requests).all()


CONTROL = {
    "queue": Unit(
        "queue", lambda: Queue(Engine.TENSOR, 2, 4), files("queue/queue", "queue/queue_errors"), 8,
        without=("counting", "prefetcher.rung"),
    ),
    "semaphores": Unit("semaphores", lambda: Semaphores(3, 16), files("queue/semaphores"), 8),
    "fetcher": Unit(
        "fetcher", lambda: Fetcher(Config(rows=4, columns=4, dma_engines=2, hbm_bytes=64)), files("queue/fetch"), 8,
        legal=_of_records,
    ),
    "boot": Unit(
        "boot", lambda: Boot(Config(rows=4, columns=6, dma_engines=3, hbm_bytes=16, cores=24)), files("queue/boot"), 15
    ),
    "registers": Unit("registers", lambda: Registers(PRESETS["tiny"]), files("queue/registers"), 10),
    "address_decoder": Unit(
        "controller: addresses", lambda: Decoder(of_tests("controller.test_decoder").REGIONS),
        files("controller/decoder"),
    ),
    "riscv": Unit(
        "RISC-V processor", Cpu,
        files(*(f"controller/{name}" for name in ("arithmetic", "access", "csr", "places", "timing", "traps"))), 6,
        module=CPU,
    ),
}  # fmt: skip
"""By the names that UNIT= takes."""

"""Units of a core."""

from functools import partial

from amaranth import Cat, Module

from neuroncore_rtl.hdl.collective.engine import CollectiveEngine
from neuroncore_rtl.hdl.controller.controller import Controller
from neuroncore_rtl.hdl.controller.decoder import REGION_BITS, Decoder
from neuroncore_rtl.hdl.dma.engine import DmaEngine
from neuroncore_rtl.hdl.dma.turns import PacketTurns
from neuroncore_rtl.hdl.memory.onchip import OnChipMemory
from neuroncore_rtl.hdl.primitives.clock_gate import gated
from neuroncore_rtl.hdl.queue.boot import Boot
from neuroncore_rtl.hdl.queue.errors import Errors
from neuroncore_rtl.hdl.queue.fetch import Fetcher
from neuroncore_rtl.hdl.queue.queue import Queue
from neuroncore_rtl.hdl.queue.registers import Registers
from neuroncore_rtl.hdl.queue.semaphores import Semaphores
from neuroncore_rtl.hdl.queue.watchdog import Watchdog
from neuroncore_rtl.hdl.queue.window import Window
from neuroncore_rtl.hdl.scalar.engine import ScalarEngine
from neuroncore_rtl.hdl.tensor.engine import TensorEngine
from neuroncore_rtl.hdl.vector.engine import VectorEngine
from neuroncore_rtl.hdl.verilog.hierarchy import shared
from neuroncore_rtl.spec import memory_map
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import collective_queue, engine_of_queue, queue_count
from neuroncore_rtl.spec.isa.engine import LANES, records_ahead

__all__ = ["CoreUnits"]

REGIONS = (
    (memory_map.REGISTERS >> 32 - REGION_BITS,),
    tuple(base >> 32 - REGION_BITS for base in (memory_map.SBUF_WINDOW, memory_map.PSUM_WINDOW)),
)
"""Upper address bits of the controller's peripherals: the registers, and the window to the on-chip memories."""


class CoreUnits:
    """Units of a core, added to a module and not yet connected.

    Arguments:
        m: the module.
        config: the machine's parameters.
        link_bytes: data bytes of a flit.
        platform: the platform that `elaborate` received.

    Attributes:
        tensor, vector, scalar: the compute engines.
        dma: the DMA engines, a list.
        collective: the collective engine; None for a single core, which has no links to other cores.
        engines: all engines, in the order of their queues.
        queues: one queue per engine.
        controller, decoder, registers, window, semaphores, watchdog, errors, boot, fetcher, memory: the other units.
    """

    def __init__(self, m: Module, config: Config, link_bytes: int, platform):
        queues = queue_count(config)
        tensor = partial(TensorEngine, config)
        self.tensor = gated(m, "tensor", "tensor_engine", tensor, platform)
        self.vector = gated(m, "vector", "vector_engine", partial(VectorEngine, config), platform)
        self.scalar = gated(m, "scalar", "scalar_engine", partial(ScalarEngine, config), platform)
        dma = partial(DmaEngine, config)
        self.dma = [gated(m, f"dma{number}", "dma_engine", dma, platform) for number in range(config.dma_engines)]
        for side in range(2 if config.packet_interval else 0):
            m.submodules[f"turns{side}"] = turns = PacketTurns(config.dma_engines, config.packet_interval)
            m.d.comb += turns.requests.eq(Cat(engine.requests[side] for engine in self.dma))
            m.d.comb += [engine.turns[side].eq(turn) for engine, turn in zip(self.dma, turns.turns, strict=True)]
        self.collective = None
        if config.cores > 1:
            collective = partial(CollectiveEngine, link_bytes, config.hbm_bytes, config.cores, config.ring_rate)
            self.collective = gated(m, "collective", "collective_engine", collective, platform)

        m.submodules.controller = self.controller = Controller(config.local_bytes, config.port_latency)
        m.submodules.decoder = self.decoder = Decoder(REGIONS, config.port_latency)
        m.submodules.registers = self.registers = Registers(config)
        m.submodules.window = self.window = Window(config)
        m.submodules.semaphores = self.semaphores = Semaphores(queues, config.semaphores, config.port_latency)
        m.submodules.watchdog = self.watchdog = Watchdog(queues, collective_queue(config))
        m.submodules.errors = self.errors = Errors(queues)
        m.submodules.boot = self.boot = Boot(config)
        m.submodules.fetcher = self.fetcher = Fetcher(config)
        m.submodules.memory = self.memory = OnChipMemory(config)

        self.queues = []
        for number in range(queues):
            engine = engine_of_queue(number, config)
            sizes = records_ahead(engine, config), config.port_latency, config.hbm_bytes
            queue = partial(Queue, engine, LANES[engine], *sizes)
            self.queues.append(shared(m, f"queue{number}", f"queue_{engine.name.lower()}", queue, platform))

    @property
    def engines(self) -> list:
        return [self.tensor, self.vector, self.scalar, *self.dma, *([self.collective] if self.collective else [])]

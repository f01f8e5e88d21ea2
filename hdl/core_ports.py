"""Interface of a core: its ports, the layout of its counters, and the assignment of managers to HBM ports."""

from amaranth import unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.collective.counters import CollectiveCounters
from neuroncore_rtl.hdl.dma.counters import DmaCounters
from neuroncore_rtl.hdl.elementwise.frontend import ElementwiseCounters
from neuroncore_rtl.hdl.memory.axi import AxiPort
from neuroncore_rtl.hdl.memory.axi_arbiter import AxiArbiter
from neuroncore_rtl.hdl.memory.onchip import Conflicts
from neuroncore_rtl.hdl.queue.errors import CoreError
from neuroncore_rtl.hdl.queue.queue import QueueCounters
from neuroncore_rtl.hdl.tensor.engine import TensorCounters
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS, queue_count
from neuroncore_rtl.spec.isa.engine import COUNTER_BITS
from neuroncore_rtl.spec.link import CHANNELS

__all__ = ["ControllerCounters", "axi_id_bits", "core_counters", "core_signature", "sharers"]


def sharers(config: Config, engines: list, first: list, channels: list = ()) -> list[list]:
    """Return the list of users of each HBM port.

    The users of an HBM port also share one line port of the on-chip memories.

    Arguments:
        config: the machine's parameters.
        engines: one user per DMA engine; engine i is on port i modulo `hbm_ports`.
        first: further users besides the engines, all on port 0.
        channels: one user per channel of the collective engine; channel i is on port i modulo `hbm_ports`, after all
            other users.
    """
    ports = config.hbm_ports
    return [[*engines[port::ports], *(first if port == 0 else ()), *channels[port::ports]] for port in range(ports)]


def axi_id_bits(config: Config) -> int:
    """Return the width of the AXI IDs; it is the same for every HBM port."""
    channels = [None] * CHANNELS if config.cores > 1 else []
    ports = sharers(config, [None] * config.dma_engines, ["fetcher", "boot"], channels)
    return AxiArbiter.id_bits(max(map(len, ports)))


class ControllerCounters(data.Struct):
    """Counters of the controller.

    instructions: retired instructions.
    waiting: cycles in WFI.
    """

    instructions: unsigned(COUNTER_BITS)
    waiting: unsigned(COUNTER_BITS)


def core_counters(config: Config) -> data.StructLayout:
    """Return the layout of all counters of a core: queues, engines, memories and controller."""
    return data.StructLayout(
        {
            "queues": data.ArrayLayout(QueueCounters, queue_count(config)),
            "tensor": TensorCounters,
            "vector": ElementwiseCounters,
            "scalar": ElementwiseCounters,
            "dma": data.ArrayLayout(DmaCounters, config.dma_engines),
            "conflicts": Conflicts,
            "controller": ControllerCounters,
            **({"collective": CollectiveCounters} if config.cores > 1 else {}),
        }
    )


def core_signature(config: Config) -> wiring.Signature:
    """Return the ports of a core, except those to the links; see `hdl.core.Core`."""
    queues = queue_count(config)
    lanes = queues + 1
    return wiring.Signature(
        {
            "start": In(1),
            "boot_address": In(HBM_ADDRESS_BITS),
            "axi": Out(AxiPort(config.hbm_bytes, axi_id_bits(config))).array(config.hbm_ports),
            "host_interrupt": In(1),
            "done": Out(1),
            "exit_code": Out(32),
            "error": Out(CoreError),
            "quiet": Out(1),
            "console": Out(stream.Signature(8, always_ready=True)),
            "issued": Out(queues),
            "issued_addresses": Out(HBM_ADDRESS_BITS * queues),
            "passed": Out(queues),
            "retired": Out(lanes),
            "retired_addresses": Out(HBM_ADDRESS_BITS * lanes),
            "controller_retires": Out(1),
            "controller_pc": Out(32),
            "counters": Out(core_counters(config)),
        }
    )

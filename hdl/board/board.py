"""Board logic without its pads: the same module in simulation and in a bitstream.

host - UART - HostLink - registers - core
                 |                    |
                 +--- BurstServer ----+
                           |
              BeatSplitter - SdramController - SDRAM
"""

from amaranth import Cat, ClockDomain, ClockSignal, DomainRenamer, Module, ResetSignal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.board.host_link import HostLink
from neuroncore_rtl.hdl.board.memory import BeatSplitter, BurstServer, memory_beats
from neuroncore_rtl.hdl.board.registers import BoardRegisters
from neuroncore_rtl.hdl.board.sdram import SdramController, sdram_words
from neuroncore_rtl.hdl.board.sdram_chip import SdramChip, SdramPins
from neuroncore_rtl.hdl.board.uart import UartReceiver, UartTransmitter
from neuroncore_rtl.hdl.core import Core
from neuroncore_rtl.hdl.core_ports import axi_id_bits
from neuroncore_rtl.hdl.memory.axi import AxiPort
from neuroncore_rtl.hdl.primitives.fifo import Fifo
from neuroncore_rtl.hdl.queue.errors import CoreError
from neuroncore_rtl.hdl.verilog.hierarchy import shared
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS

__all__ = ["LEDS", "Board", "Machine"]

LEDS = 4
"""LEDs, from bit 0: memory is ready, the core works, its program has ended, it has reported an error."""

CORE_SIGNALS = {
    "start": In(1),
    "boot_address": In(HBM_ADDRESS_BITS),
    "done": Out(1),
    "exit_code": Out(32),
    "error": Out(CoreError),
    "quiet": Out(1),
    "console": Out(stream.Signature(8, always_ready=True)),
}
"""Ports of the core that the board's registers use."""


def link_port(config: Config | None) -> AxiPort:
    """Return the memory port of the host link and the core; 8 bytes per beat if there is no core."""
    return AxiPort(config.hbm_bytes, axi_id_bits(config)) if config else AxiPort(8, 1)


class Machine(wiring.Component):
    """The part of the board that the host resets: the core and the AXI side of its memory.

    The SDRAM controller is outside, so that refreshes continue during a reset.

    Arguments:
        config: the core's parameters; None: no core.
        chip: the SDRAM chip.

    Ports:
        link: memory port of the host link.
        words, read: see `hdl.board.sdram.SdramController`.
        start, boot_address, done, exit_code, error, quiet, console: ports of the core.
    """

    def __init__(self, config: Config | None, chip: SdramChip):
        self.config = config
        self.chip = chip
        words = {
            "words": Out(stream.Signature(sdram_words(chip))),
            "read": In(stream.Signature(chip.width, always_ready=True)),
        }
        super().__init__({"link": In(link_port(config))} | words | CORE_SIGNALS)

    def elaborate(self, platform):
        m = Module()
        config, port = self.config, self.link.signature
        ports = config.hbm_ports if config else 0
        m.submodules.server = server = BurstServer(port.size, port.id_bits, ports + 1, self.chip.bytes)
        m.submodules.splitter = splitter = BeatSplitter(port.size, self.chip)
        wiring.connect(m, wiring.flipped(self.link), server.managers[ports])
        # One entry decouples the managers from the chip's row timing: the splitter takes several cycles per beat.
        m.submodules.beat = beat = Fifo(memory_beats(port.size), depth=1)
        wiring.connect(m, server.beats, beat.i)
        wiring.connect(m, beat.o, splitter.beats)
        wiring.connect(m, splitter.answers, server.answers)
        wiring.connect(m, splitter.words, wiring.flipped(self.words))
        wiring.connect(m, wiring.flipped(self.read), splitter.read)
        if config is None:
            m.d.comb += self.quiet.eq(1)
            return m
        core = shared(m, "core", "core", lambda: Core(config), platform)
        for number in range(ports):
            wiring.connect(m, core.axi[number], server.managers[number])
        wiring.connect(m, core.console, wiring.flipped(self.console))
        m.d.comb += [core.start.eq(self.start), core.boot_address.eq(self.boot_address)]
        m.d.comb += [getattr(self, name).eq(getattr(core, name)) for name in ("done", "exit_code", "error")]
        m.d.sync += self.quiet.eq(core.quiet)  # registered: it arrives late in a cycle
        return m


class Board(wiring.Component):
    """A core, its memory, and the UART link to its host.

    Arguments:
        config: the core's parameters; None: no core, only memory, to try a board.
        chip, clock_hz, start_ns: see `hdl.board.sdram.SdramController`.
        divisor: clock cycles of a UART bit.
        patience: cycles without a byte that end a frame; see `hdl.board.host_link.HostLink`.

    Ports:
        rx, tx: UART wires.
        pins: pins of the SDRAM chip.
        leds: see `LEDS`.
    """

    def __init__(
        self,
        config: Config | None,
        chip: SdramChip,
        clock_hz: int,
        divisor: int,
        patience: int,
        start_ns: int | None = None,
    ):
        self.config = config
        self.chip = chip
        self.clock_hz = clock_hz
        self.divisor = divisor
        self.patience = patience
        self.start_ns = start_ns
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1), "pins": Out(SdramPins(chip)), "leds": Out(LEDS)})

    def elaborate(self, platform):
        m = Module()
        config, port = self.config, link_port(self.config)
        machine = Machine(config, self.chip)
        m.submodules.machine = DomainRenamer("machine")(machine)
        m.submodules.sdram = sdram = SdramController(self.chip, self.clock_hz, self.start_ns)
        m.submodules.receiver = receiver = UartReceiver(self.divisor)
        m.submodules.transmitter = transmitter = UartTransmitter(self.divisor)
        m.submodules.link = link = HostLink(port.size, port.id_bits, self.patience)
        shape = (config.rows, config.columns) if config else (0, 0)
        m.submodules.registers = registers = BoardRegisters(port.size | shape[0] << 8 | shape[1] << 20)
        m.domains.machine = domain = ClockDomain(local=True)
        m.d.comb += [domain.clk.eq(ClockSignal()), domain.rst.eq(ResetSignal() | registers.reset)]

        wiring.connect(m, receiver.o, link.i)
        wiring.connect(m, link.o, transmitter.i)
        wiring.connect(m, link.bus, registers.bus)
        wiring.connect(m, link.axi, machine.link)
        wiring.connect(m, machine.words, sdram.words)
        wiring.connect(m, sdram.read, machine.read)
        wiring.connect(m, sdram.pins, wiring.flipped(self.pins))
        wiring.connect(m, machine.console, registers.console)
        m.d.comb += [
            receiver.wire.eq(self.rx),
            self.tx.eq(transmitter.wire),
            link.broken.eq(receiver.broken),
            link.restart.eq(registers.reset),
            registers.memory_ready.eq(sdram.ready),
            machine.start.eq(registers.start),
            machine.boot_address.eq(registers.boot_address),
            *(getattr(registers, name).eq(getattr(machine, name)) for name in ("done", "exit_code", "error", "quiet")),
            self.leds.eq(Cat(sdram.ready, ~machine.quiet, machine.done, machine.error.valid)),
        ]
        return m

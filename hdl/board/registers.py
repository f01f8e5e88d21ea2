"""Board registers: the host's view of the core (`spec.host_link.BoardRegister`)."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.controller.bus import Bus
from neuroncore_rtl.hdl.queue.errors import CoreError
from neuroncore_rtl.hdl.queue.subordinate import hold_request
from neuroncore_rtl.spec.host_link import CONSOLE_BYTES, CONTROL_RESET, CONTROL_START, IDENTITY_WORD
from neuroncore_rtl.spec.host_link import BoardRegister as At
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS

__all__ = ["BoardRegisters"]


class BoardRegisters(wiring.Component):
    """Board registers: start and reset the core, and record its outputs.

    Arguments:
        machine: value that the register `BoardRegister.MACHINE` returns.

    Ports:
        bus: bus of the host link; an access is answered two cycles after its request.
        reset: resets the core and its memory port.
        memory_ready: the memory is initialised.
        start, boot_address, done, exit_code, error, quiet, console: ports of the core.
    """

    def __init__(self, machine: int):
        self.machine = machine
        super().__init__(
            {
                "bus": In(Bus()),
                "reset": Out(1),
                "memory_ready": In(1),
                "start": Out(1),
                "boot_address": Out(HBM_ADDRESS_BITS),
                "done": In(1),
                "exit_code": In(32),
                "error": In(CoreError),
                "quiet": In(1),
                "console": In(stream.Signature(8, always_ready=True)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.console_bytes = console_bytes = memory.Memory(shape=8, depth=CONSOLE_BYTES, init=[])
        printing, reading = console_bytes.write_port(), console_bytes.read_port()
        request = hold_request(m, self.bus, self.bus.response)
        fetched = Signal()  # the read port's data, a byte of the console, are valid
        cycles, count, running = Signal(32), Signal(32), Signal()
        error = self.error
        registers = {
            At.IDENTITY: Const(IDENTITY_WORD, 32),
            At.CONTROL: Mux(self.reset, CONTROL_RESET, 0),
            At.STATUS: Cat(self.memory_ready, self.done, error.valid, self.quiet),
            At.BOOT_ADDRESS: self.boot_address,
            At.EXIT_CODE: self.exit_code,
            At.ERROR: Cat(Const(0, 8) | error.cause, error.queue),
            At.ERROR_ADDRESS: error.address,
            At.ERROR_DETAIL: error.detail,
            At.CYCLES: cycles,
            At.MACHINE: Const(self.machine, 32),
            At.CONSOLE_COUNT: count,
        }
        place = (request.address - At.CONSOLE) >> 2
        is_console = (request.address >= At.CONSOLE) & (place < CONSOLE_BYTES)
        m.d.comb += [
            self.bus.response.eq(request.valid & fetched),
            reading.addr.eq(place),
            printing.addr.eq(count),
            printing.data.eq(self.console.payload),
            printing.en.eq(self.console.valid & (count < CONSOLE_BYTES)),
        ]
        m.d.sync += [fetched.eq(request.valid & ~fetched), self.start.eq(0)]
        with m.Switch(request.address):
            for at, value in registers.items():
                with m.Case(at):
                    m.d.comb += self.bus.result.eq(value)
            with m.Default():
                m.d.comb += [self.bus.result.eq(reading.data), self.bus.error.eq(~is_console | request.write)]

        m.d.sync += [cycles.eq(cycles + running), count.eq(count + self.console.valid)]
        with m.If(self.start):
            m.d.sync += running.eq(1)
        with m.If(self.done | error.valid):
            m.d.sync += running.eq(0)
        with m.If(self.reset):
            m.d.sync += [running.eq(0), cycles.eq(0), count.eq(0)]
        with m.If(self.bus.response & request.write):
            with m.Switch(request.address):
                with m.Case(At.CONTROL):
                    m.d.sync += [
                        self.start.eq((request.data & CONTROL_START).any()),
                        self.reset.eq((request.data & CONTROL_RESET).any()),
                    ]
                with m.Case(At.BOOT_ADDRESS):
                    m.d.sync += self.boot_address.eq(request.data)
        return m

"""Host registers: start, observe and reset a core (`spec.host_map`)."""

from collections.abc import Callable
from dataclasses import dataclass

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.controller.bus import Bus
from neuroncore_rtl.hdl.core_ports import core_counters
from neuroncore_rtl.hdl.primitives.fifo import Fifo
from neuroncore_rtl.hdl.queue.errors import CoreError
from neuroncore_rtl.hdl.queue.subordinate import hold_request
from neuroncore_rtl.spec import host_map
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.host_map import HOST_ADDRESS_BITS, Effect, HostRegister, counter_offset, parameter_values
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS

__all__ = ["HostRegisters", "layout_places"]

OUTPUT_BYTES = 64
"""Bytes that the program may print before the host reads them."""

_WORD = (1 << 32) - 1


def layout_places(layout: data.Layout, path: str = "", offset: int = 0) -> list[tuple[str, int, int]]:
    """Return name, bit offset and width of each numeric field of a layout, including the fields of nested layouts."""
    places = []
    for key, field in layout:
        name = f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}".removeprefix(".")
        place = offset + field.offset
        try:
            places += layout_places(data.Layout.cast(field.shape), name, place)
        except TypeError:  # a number
            places.append((name, place, field.width))
    return places


@dataclass(frozen=True)
class _Place:
    """Entry of the register map.

    read: value that it reads as.
    write: adds the effect of a write to the module; None: a write is an error.
    mask: bits that can be written.
    refuse: condition that makes a write an error.
    taken: adds the side effect of a read to the module.
    """

    read: Value
    write: Callable[[], None] | None = None
    mask: int = 0
    refuse: ValueLike = 0
    taken: Callable[[], None] | None = None


class HostRegisters(wiring.Component):
    """Host registers: one request per cycle, answered in the next cycle.

    Arguments:
        config: the machine's parameters.

    Ports:
        bus: bus of the host; addresses are the map's offsets.
        interrupt: a source is pending and enabled, one cycle late; set until it is cleared.
        start, boot_address, host_interrupt, done, exit_code, error, quiet, console, counters: see
            `hdl.core.Core`. `boot_address` always has the registers' value.
        reset: a pulse: the host requests a reset of the core.
        resetting: that reset is active, from the cycle after `reset` on; it clears the registers' state of the last
            run.
    """

    def __init__(self, config: Config):
        self.config = config
        super().__init__(
            {
                "bus": In(Bus()),
                "interrupt": Out(1),
                "start": Out(1),
                "boot_address": Out(HBM_ADDRESS_BITS),
                "host_interrupt": Out(1),
                "reset": Out(1),
                "resetting": In(1),
                "done": In(1),
                "exit_code": In(32),
                "error": In(CoreError),
                "quiet": In(1),
                "console": In(stream.Signature(8, always_ready=True)),
                "counters": In(core_counters(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        answered, upper = Signal(), Signal(32)
        request = hold_request(m, self.bus, answered)
        m.d.comb += answered.eq(request.valid)
        self._data = request.data
        table = self._control(m) | self._outcome(m, upper) | self._constants()
        with m.If(request.valid):
            with m.If(request.address[HOST_ADDRESS_BITS:].any() | ~request.mask.all()):
                m.d.comb += self.bus.error.eq(1)
            with m.Else():
                with m.Switch(request.address[2:HOST_ADDRESS_BITS]):
                    for offset, place in table.items():
                        with m.Case(offset >> 2):
                            self._access(m, request.write, place)
                    self._counters(m, request.write, upper)
                    with m.Default():
                        m.d.comb += self.bus.error.eq(1)
        return m

    def _access(self, m: Module, write: Value, place: _Place) -> None:
        with m.If(~write):
            m.d.comb += self.bus.result.eq(place.read)
            if place.taken is not None:
                place.taken()
        if place.write is None:
            with m.Else():
                m.d.comb += self.bus.error.eq(1)
            return
        with m.Elif((self._data & (~place.mask & _WORD)).any() | place.refuse):
            m.d.comb += self.bus.error.eq(1)
        with m.Else():
            place.write()

    def _control(self, m: Module) -> dict[int, _Place]:
        """Return the register map's entries for control, status and boot address."""
        started, low, high = Signal(), Signal(32), Signal(HBM_ADDRESS_BITS - 32)
        control, wanted = host_map.HOST_CONTROL, self._data
        m.d.comb += self.boot_address.eq(Cat(low, high))
        with m.If(self.resetting):
            m.d.sync += started.eq(0)
        with m.Elif(self.start):
            m.d.sync += started.eq(1)

        def act():
            for name, port in (("START", self.start), ("RESET", self.reset), ("INTERRUPT", self.host_interrupt)):
                m.d.comb += port.eq((wanted & control.bit(name)).any())

        starts, resets = ((wanted & control.bit(name)).any() for name in ("START", "RESET"))
        status = Cat(started, self.done, self.error.valid, self.quiet, self.resetting)
        assert len(status) == len(host_map.STATUS.fields)
        too_late = starts & (started | self.resetting | resets)
        self._started = started
        return {
            control.offset: _Place(Const(0), act, control.mask, too_late),
            host_map.STATUS.offset: _Place(status),
            host_map.BOOT_LOW.offset: self._storage(m, host_map.BOOT_LOW, low),
            host_map.BOOT_HIGH.offset: self._storage(m, host_map.BOOT_HIGH, high),
        }

    def _outcome(self, m: Module, upper: Signal) -> dict[int, _Place]:
        """Return the register map's entries for the result of a run: how it ended, its output and its duration."""
        output, cycles, lost = Fifo(8, depth=OUTPUT_BYTES), Signal(64), Signal()
        m.submodules.output = output
        over = self.done | self.error.valid
        with m.If(self._started & ~over):
            m.d.sync += cycles.eq(cycles + 1)
        m.d.comb += [
            output.i.payload.eq(self.console.payload),
            output.i.valid.eq(self.console.valid),
            output.o.ready.eq(self.resetting),
        ]
        with m.If(self.console.valid & ~output.i.ready):
            m.d.sync += lost.eq(1)

        def take():
            m.d.comb += output.o.ready.eq(1)
            m.d.sync += lost.eq(self.console.valid & ~output.i.ready)

        def keep():
            m.d.sync += upper.eq(cycles[32:])

        interrupts = self._interrupts(m)
        with m.If(self.resetting):
            m.d.sync += [cycles.eq(0), lost.eq(0)]
        byte = Mux(output.o.valid, output.o.payload, 0)
        error = self.error
        readable = {
            host_map.EXIT_CODE: self.exit_code,
            host_map.HOST_ERROR_CAUSE: error.cause,
            host_map.HOST_ERROR_QUEUE: error.queue,
            host_map.HOST_ERROR_LOW: error.address[:32],
            host_map.HOST_ERROR_HIGH: error.address[32:],
            host_map.HOST_ERROR_DETAIL: error.detail,
            host_map.CYCLES_HIGH: upper,
        }
        return {
            **interrupts,
            **{register.offset: _Place(value) for register, value in readable.items()},
            host_map.CYCLES_LOW.offset: _Place(cycles[:32], taken=keep),
            host_map.OUTPUT.offset: _Place(Cat(byte, output.o.valid, lost), taken=take),
        }

    def _interrupts(self, m: Module) -> dict[int, _Place]:
        """Return the register map's entries for the interrupt; drive `interrupt`."""
        enable, pending, cleared = (Signal(len(host_map.SOURCES)) for _ in range(3))
        ended = Cat(self.done, self.error.valid)
        before = Signal.like(ended)
        m.d.sync += [
            before.eq(ended),
            pending.eq(pending & ~cleared | Cat(ended & ~before, self.console.valid)),
            self.interrupt.eq((pending & enable).any()),
        ]
        with m.If(self.resetting):
            m.d.sync += [pending.eq(0), before.eq(0)]

        def clear():
            m.d.comb += cleared.eq(self._data)

        status = host_map.INTERRUPT_STATUS
        return {
            host_map.HOST_INTERRUPT_ENABLE.offset: self._storage(m, host_map.HOST_INTERRUPT_ENABLE, enable),
            status.offset: _Place(pending, clear, status.mask),
        }

    def _storage(self, m: Module, register: HostRegister, held: Signal) -> _Place:
        """Return the register map's entry for a register that reads as the last written value."""
        assert register.effect == Effect.KEEP and register.mask == (1 << len(held)) - 1

        def write():
            m.d.sync += held.eq(self._data)

        return _Place(held, write, register.mask)

    def _constants(self) -> dict[int, _Place]:
        parameters = parameter_values(self.config)
        words = {
            host_map.IDENTITY.offset: host_map.HOST_MAGIC,
            host_map.VERSION.offset: host_map.HOST_VERSION,
            host_map.PARAMETER_COUNT.offset: len(parameters),
        }
        words |= {host_map.PARAMETER_WORDS + 4 * n: value for n, value in enumerate(parameters.values())}
        return {offset: _Place(Const(value, 32)) for offset, value in words.items()}

    def _counters(self, m: Module, write: Value, upper: Signal) -> None:
        """Add two words per counter to the register map. A read of the lower word latches the upper word."""
        places = layout_places(core_counters(self.config))
        assert counter_offset(len(places)) <= 1 << HOST_ADDRESS_BITS, "all counters must have an offset"
        counters = Value.cast(self.counters)
        for number, (_, first, width) in enumerate(places):
            counter = counters[first : first + width]

            def keep(counter=counter):
                m.d.sync += upper.eq(counter[32:])

            for half, place in enumerate((_Place(counter[:32], taken=keep), _Place(upper))):
                with m.Case((counter_offset(number) >> 2) + half):
                    self._access(m, write, place)

"""Registers of the core (`spec.memory_map`): the controller's access to queues, semaphores and the host."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import ValueLike
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.controller.bus import Bus
from neuroncore_rtl.hdl.queue.errors import CoreError
from neuroncore_rtl.hdl.queue.prefetcher import PrefetchBlock
from neuroncore_rtl.hdl.queue.queue import QueueCounters
from neuroncore_rtl.hdl.queue.semaphores import SEMAPHORE_BITS, VALUE_BITS, SemaphoreAccess, UpdateOp
from neuroncore_rtl.hdl.queue.subordinate import hold_request
from neuroncore_rtl.spec import memory_map
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS, QUEUE_COUNTERS, RECORD_BYTES, queue_count
from neuroncore_rtl.spec.isa.engine import QUEUE_BLOCKS
from neuroncore_rtl.spec.link import CORE_BITS

__all__ = ["Registers"]

_OFFSET_BITS = 16
"""Width of a register's offset from `REGISTERS`."""

_ALIGNMENT_BITS = RECORD_BYTES.bit_length() - 1
"""Number of low bits of a record's address that are 0."""

_WATCHDOG_LIMIT = 100_000
_WATCH_VALUE = (1 << VALUE_BITS) - 1
"""Reset values of the registers."""

_SEMAPHORE_OPS = {
    memory_map.SEMAPHORES: UpdateOp.SET,
    memory_map.SEMAPHORE_ADD: UpdateOp.ADD,
    memory_map.SEMAPHORE_SUBTRACT: UpdateOp.SUBTRACT,
}
"""Update that a write to each semaphore address range makes."""


@dataclass
class _Register:
    """Register of the core.

    read: value that it reads as; None: a read is an error.
    write: adds the effect of a write to the module; None: a write is an error.
    mask: bits that the register can hold.
    """

    read: ValueLike | None
    write: Callable[[], None] | None = None
    mask: int = -1


def _ones(value: Value) -> int:
    return (1 << len(value)) - 1


class Registers(wiring.Component):
    """Registers on the controller's bus: one request per cycle, answered in the next cycle.

    A semaphore access can stall until it is granted, a doorbell until the queue has a free entry.

    An access is refused with an error, and nothing is written, if
    - the register does not exist, cannot be read, or cannot be written,
    - the access is not of a whole word,
    - the register cannot hold the value, such as an address that is no multiple of RECORD_BYTES,
    - a semaphore would drop below 0 or exceed its largest value.

    Arguments:
        config: the machine's parameters.

    Ports:
        bus: the controller's bus.
        blocks, places, retired_count, rung, counters: one per queue; see `hdl.queue.queue.Queue`.
        semaphore, watch_semaphore, watch_value, watch_reached: see `hdl.queue.semaphores.Semaphores`.
        core_number: number of this core in its instance; constant, 0 for a single core.
        error: first error of the core.
        watchdog_limit: see `hdl.queue.watchdog.Watchdog`.
        exit_valid: the program has ended; set until reset.
        exit_code: exit code of the program, from its first write.
        console: bytes that the program prints, for the host.
        host_interrupt: a pulse makes INTERRUPT_HOST pending.
        external_interrupt: an interrupt source was pending and enabled one cycle ago.
    """

    def __init__(self, config: Config):
        self.config = config
        queues = queue_count(config)
        super().__init__(
            {
                "bus": In(Bus()),
                "blocks": Out(stream.Signature(PrefetchBlock)).array(queues),
                "places": In(range(QUEUE_BLOCKS + 1)).array(queues),
                "retired_count": In(32).array(queues),
                "rung": In(32).array(queues),
                "counters": In(QueueCounters).array(queues),
                "semaphore": Out(SemaphoreAccess()),
                "watch_semaphore": Out(SEMAPHORE_BITS),
                "watch_value": Out(VALUE_BITS, init=_WATCH_VALUE),
                "watch_reached": In(1),
                "core_number": In(CORE_BITS),
                "error": In(CoreError),
                "watchdog_limit": Out(32, init=_WATCHDOG_LIMIT),
                "exit_valid": Out(1),
                "exit_code": Out(32),
                "console": Out(stream.Signature(8, always_ready=True)),
                "host_interrupt": In(1),
                "external_interrupt": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        answered, refused = Signal(), Signal()
        request = hold_request(m, self.bus, answered)
        self._request, self._answered, self._refused = request, answered, refused
        self._answer = self._semaphores_answer(m)
        table = self._queue_registers(m) | self._machine_registers(m)
        m.d.comb += self.bus.error.eq(refused)
        inside = request.address[_OFFSET_BITS:] == memory_map.REGISTERS >> _OFFSET_BITS
        with m.If(request.valid):
            m.d.comb += answered.eq(1)
            with m.If(~inside | ~request.mask.all()):
                m.d.comb += refused.eq(1)
            with m.Else():
                with m.Switch(request.address[2:_OFFSET_BITS]):
                    for address, register in table.items():
                        with m.Case((address - memory_map.REGISTERS) >> 2):
                            self._access(m, register)
                    for first, op in _SEMAPHORE_OPS.items():
                        with m.Case(f"{(first - memory_map.REGISTERS) >> 10:06b}{'-' * SEMAPHORE_BITS}"):
                            self._semaphore(m, op)
                    with m.Default():
                        m.d.comb += refused.eq(1)
        return m

    def _access(self, m: Module, register: _Register):
        with m.If(~self._request.write):
            if register.read is None:
                m.d.comb += self._refused.eq(1)
            else:
                m.d.comb += self.bus.result.eq(register.read)
        if register.write is None:
            with m.Else():
                m.d.comb += self._refused.eq(1)
        else:
            with m.Elif((self._request.data & ~register.mask).any()):
                m.d.comb += self._refused.eq(1)
            with m.Else():
                register.write()

    def _semaphores_answer(self, m: Module):
        semaphore = self.semaphore
        answer = Signal(data.StructLayout({"given": 1, "refused": 1, "has": VALUE_BITS}), name="answer")
        taken = semaphore.valid & semaphore.ready
        if self.config.port_latency:
            m.d.sync += answer.given.eq(taken)
        else:
            m.d.comb += answer.given.eq(taken)
        m.d.comb += [answer.refused.eq(semaphore.refused), answer.has.eq(semaphore.has)]
        return answer

    def _semaphore(self, m: Module, op: UpdateOp):
        request, semaphore = self._request, self.semaphore
        unreadable = ~request.write & (op != UpdateOp.SET)
        with m.If(unreadable | (request.write & request.data[VALUE_BITS:].any())):
            m.d.comb += self._refused.eq(1)
        with m.Else():
            m.d.comb += [
                semaphore.valid.eq(~self._answer.given if self.config.port_latency else 1),
                semaphore.update.op.eq(Mux(request.write, op, UpdateOp.NONE)),
                semaphore.update.semaphore.eq(request.address[2:]),
                semaphore.update.value.eq(request.data),
                self._answered.eq(self._answer.given),
                self._refused.eq(self._answer.given & self._answer.refused),
                self.bus.result.eq(self._answer.has),
            ]

    def _queue_registers(self, m: Module) -> dict[int, _Register]:
        """Return the registers of the queues by address.

        The HBM addresses of the blocks are in two memories, which keep their contents in reset.
        """
        data = self._request.data
        halves = []
        for name, bits in (("low", 32 - _ALIGNMENT_BITS), ("high", HBM_ADDRESS_BITS - 32)):
            m.submodules[name] = half = memory.Memory(shape=bits, depth=len(self.blocks), init=[])
            write, read = half.write_port(), half.read_port(domain="comb")
            m.d.comb += [port.addr.eq(self._request.address[5:]) for port in (write, read)]
            halves.append((write, read))
        (write_low, low), (write_high, high) = halves
        m.d.comb += [write_low.data.eq(data[_ALIGNMENT_BITS:]), write_high.data.eq(data)]

        def enable(write):
            m.d.comb += write.en.eq(1)

        def ring(blocks):
            m.d.comb += [blocks.valid.eq(1), self._answered.eq(blocks.ready)]

        lower = Cat(Const(0, _ALIGNMENT_BITS), low.data)
        table = {}
        for queue, blocks in enumerate(self.blocks):
            m.d.comb += [blocks.payload.address.eq(Cat(lower, high.data)), blocks.payload.count.eq(data)]
            first = memory_map.QUEUES + queue * memory_map.QUEUE_STRIDE
            table |= {
                first + memory_map.QUEUE_LOW: _Register(lower, partial(enable, write_low), -RECORD_BYTES),
                first + memory_map.QUEUE_HIGH: _Register(high.data, partial(enable, write_high), _ones(high.data)),
                first + memory_map.QUEUE_START: _Register(None, partial(ring, blocks), _ones(blocks.payload.count)),
                first + memory_map.QUEUE_PLACES: _Register(self.places[queue]),
                first + memory_map.QUEUE_RETIRED: _Register(self.retired_count[queue]),
                first + memory_map.QUEUE_COUNT: _Register(self.rung[queue]),
            }
            first = memory_map.COUNTERS + queue * memory_map.COUNTER_STRIDE
            counters = self.counters[queue]
            table |= {first + 4 * n: _Register(counters[name][:32]) for n, name in enumerate(QUEUE_COUNTERS)}
        return table

    def _machine_registers(self, m: Module) -> dict[int, _Register]:
        data = self._request.data
        from_host, enabled = Signal(), Signal(3)
        pending = Cat(self.error.valid, from_host, self.watch_reached)
        m.d.sync += [self.console.valid.eq(0), self.external_interrupt.eq((pending & enabled).any())]

        def set_exit():
            with m.If(~self.exit_valid):
                m.d.sync += [self.exit_valid.eq(1), self.exit_code.eq(data)]

        def print_byte():
            m.d.sync += [self.console.valid.eq(1), self.console.payload.eq(data)]

        def take_back():
            with m.If((data & memory_map.INTERRUPT_HOST).any()):
                m.d.comb += taken_back.eq(1)

        taken_back = Signal()
        with m.If(self.host_interrupt):
            m.d.sync += from_host.eq(1)
        with m.Elif(taken_back):
            m.d.sync += from_host.eq(0)

        def plain(register):
            def write():
                m.d.sync += register.eq(data)

            return _Register(register, write, _ones(register))

        error = self.error
        return {
            memory_map.EXIT: _Register(None, set_exit),
            memory_map.CONSOLE: _Register(None, print_byte, _ones(self.console.payload)),
            memory_map.INTERRUPT_PENDING: _Register(pending, take_back, _ones(pending)),
            memory_map.INTERRUPT_ENABLE: plain(enabled),
            memory_map.WATCH_SEMAPHORE: plain(self.watch_semaphore),
            memory_map.WATCH_VALUE: plain(self.watch_value),
            memory_map.WATCHDOG_LIMIT: plain(self.watchdog_limit),
            memory_map.ERROR_CAUSE: _Register(error.cause),
            memory_map.ERROR_QUEUE: _Register(error.queue),
            memory_map.ERROR_LOW: _Register(error.address[:32]),
            memory_map.ERROR_HIGH: _Register(error.address[32:]),
            memory_map.ERROR_DETAIL: _Register(error.detail),
            memory_map.CORE_NUMBER: _Register(self.core_number),
            memory_map.CORE_COUNT: _Register(self.config.cores),
        }

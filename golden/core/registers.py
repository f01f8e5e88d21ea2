"""Registers of the core in the controller's address space."""

from neuroncore_rtl.golden.controller import AccessFault
from neuroncore_rtl.golden.core.errors import CoreError
from neuroncore_rtl.golden.core.machine import Machine
from neuroncore_rtl.spec import memory_map as at
from neuroncore_rtl.spec.config import SEMAPHORE_COUNT
from neuroncore_rtl.spec.isa import HBM_ADDRESS_BITS, QUEUE_COUNTERS, RECORD_BYTES, UpdateOp
from neuroncore_rtl.spec.isa.record import SEMAPHORE_MAX

__all__ = ["Registers", "Stall"]

WORD = 0xFFFF_FFFF
COUNT_MAX = 0xFFFF

_NO_ERROR = CoreError(cause=0)
_SEMAPHORE_OPS = {
    at.SEMAPHORES: UpdateOp.SET,
    at.SEMAPHORE_ADD: UpdateOp.ADD,
    at.SEMAPHORE_SUBTRACT: UpdateOp.SUBTRACT,
}
_SOURCES = at.INTERRUPT_ERROR | at.INTERRUPT_HOST | at.INTERRUPT_SEMAPHORE
_HELD = {
    at.EXIT: WORD,
    at.CONSOLE: 0xFF,
    at.INTERRUPT_PENDING: _SOURCES,
    at.INTERRUPT_ENABLE: _SOURCES,
    at.WATCH_SEMAPHORE: SEMAPHORE_COUNT - 1,
    at.WATCH_VALUE: SEMAPHORE_MAX,
    at.WATCHDOG_LIMIT: WORD,
}
"""Writable registers that exist once, and their valid bits."""

_HELD_BY_QUEUE = {
    at.QUEUE_LOW: WORD & -RECORD_BYTES,
    at.QUEUE_HIGH: (1 << HBM_ADDRESS_BITS - 32) - 1,
    at.QUEUE_START: COUNT_MAX,
}
"""Writable registers of each queue by offset, and their valid bits."""


class Stall(Exception):
    """A doorbell write must wait until its queue has a free slot for a block."""


class Registers:
    """Registers from address REGISTERS on; each access must be of a whole word.

    An access fails without effect if the register does not exist, does not permit this direction or cannot hold the
    value, or if a semaphore would overflow or underflow. Counters of cycles read 0.

    Attributes:
        exit_code: first value written to EXIT; None before.
        written: set by a write to any register, cleared by the core.
        moved: set by a write to a doorbell or semaphore, cleared by the core.
    """

    def __init__(self, machine: Machine):
        self._machine = machine
        self._halves = [{at.QUEUE_LOW: 0, at.QUEUE_HIGH: 0} for _ in machine.queues]
        self._enable = 0
        self._host = False
        self._watch_semaphore, self._watch_value = 0, SEMAPHORE_MAX
        self.exit_code: int | None = None
        self.console = bytearray()
        self.watchdog_limit = 100_000
        self.written = self.moved = False

    def raise_host_interrupt(self) -> None:
        """Make INTERRUPT_HOST pending, as the host does."""
        self._host = True

    @property
    def interrupt(self) -> bool:
        """True while the external interrupt is requested."""
        return bool(self._pending & self._enable)

    @property
    def _pending(self) -> int:
        error = at.INTERRUPT_ERROR if self._machine.errors.first else 0
        host = at.INTERRUPT_HOST if self._host else 0
        reached = self._machine.semaphores[self._watch_semaphore] >= self._watch_value
        return error | host | (at.INTERRUPT_SEMAPHORE if reached else 0)

    def load(self, address: int, size: int) -> int:
        """Return a register; see `golden.controller.Bus`."""
        _check(size == 4, address)
        if (place := self._within(address, at.QUEUES, at.QUEUE_STRIDE)) is not None:
            registers = self._queue_registers(place[0])
            address = place[1]
        elif (place := self._within(address, at.COUNTERS, at.COUNTER_STRIDE)) is not None:
            retired = self._machine.queues[place[0]].retired
            registers = {4 * n: retired if name == "records" else 0 for n, name in enumerate(QUEUE_COUNTERS)}
            address = place[1]
        elif (semaphore := _semaphore(address, at.SEMAPHORES)) is not None:
            return self._machine.semaphores[semaphore]
        else:
            registers = self._machine_registers()
        _check(address in registers, address)
        return registers[address] & WORD

    def store(self, address: int, size: int, value: int) -> None:
        """Write a register; raise Stall, without effect, at a doorbell without a free block slot."""
        _check(size == 4, address)
        if (place := self._within(address, at.QUEUES, at.QUEUE_STRIDE)) is not None:
            self._store_queue(*place, value)
        elif not self._store_semaphore(address, value):
            self._store_other(address, value)
        self.written = True

    def _within(self, address: int, first: int, stride: int) -> tuple[int, int] | None:
        queue, offset = divmod(address - first, stride)
        return (queue, offset) if 0 <= queue < len(self._halves) else None

    def _queue_registers(self, number: int) -> dict[int, int]:
        queue = self._machine.queues[number]
        return self._halves[number] | {
            at.QUEUE_PLACES: queue.places,
            at.QUEUE_RETIRED: queue.retired,
            at.QUEUE_COUNT: queue.rung,
        }

    def _machine_registers(self) -> dict[int, int]:
        error = self._machine.errors.first or _NO_ERROR
        return {
            at.INTERRUPT_PENDING: self._pending,
            at.INTERRUPT_ENABLE: self._enable,
            at.WATCH_SEMAPHORE: self._watch_semaphore,
            at.WATCH_VALUE: self._watch_value,
            at.WATCHDOG_LIMIT: self.watchdog_limit,
            at.ERROR_CAUSE: int(error.cause),
            at.ERROR_QUEUE: error.queue,
            at.ERROR_LOW: error.address,
            at.ERROR_HIGH: error.address >> 32,
            at.ERROR_DETAIL: error.detail,
            at.CORE_NUMBER: self._machine.number,
            at.CORE_COUNT: self._machine.config.cores,
        }

    def _store_queue(self, number: int, offset: int, value: int) -> None:
        _check(offset in _HELD_BY_QUEUE and not value & ~_HELD_BY_QUEUE[offset], offset)
        queue, halves = self._machine.queues[number], self._halves[number]
        if offset != at.QUEUE_START:
            halves[offset] = value
            return
        if not queue.places and self._machine.errors.first is None:
            raise Stall
        queue.start(halves[at.QUEUE_HIGH] << 32 | halves[at.QUEUE_LOW], value)
        self.moved = True

    def _store_semaphore(self, address: int, value: int) -> bool:
        for first, op in _SEMAPHORE_OPS.items():
            if (semaphore := _semaphore(address, first)) is not None:
                _check(value <= SEMAPHORE_MAX and self._machine.semaphores.update(semaphore, op, value), address)
                self.moved = True
                return True
        return False

    def _store_other(self, address: int, value: int) -> None:
        _check(address in _HELD and not value & ~_HELD[address], address)
        match address:
            case at.EXIT:
                self.exit_code = value if self.exit_code is None else self.exit_code
            case at.CONSOLE:
                self.console.append(value)
            case at.INTERRUPT_PENDING:
                self._host &= not value & at.INTERRUPT_HOST
            case at.INTERRUPT_ENABLE:
                self._enable = value
            case at.WATCH_SEMAPHORE:
                self._watch_semaphore = value
            case at.WATCH_VALUE:
                self._watch_value = value
            case at.WATCHDOG_LIMIT:
                self.watchdog_limit = value


def _check(allowed: bool, address: int) -> None:
    if not allowed:
        raise AccessFault(f"no register at {address:#x}, or it refuses the access")


def _semaphore(address: int, first: int) -> int | None:
    return (address - first) // 4 if 0 <= address - first < 4 * SEMAPHORE_COUNT else None

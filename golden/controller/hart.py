"""A hart: registers, pc, traps. One step is one instruction, or the entry into the handler of a trap."""

from typing import NamedTuple

from neuroncore_rtl.golden.controller.csr import ControlRegisters
from neuroncore_rtl.golden.controller.decode import decode_riscv
from neuroncore_rtl.golden.controller.memory import AccessFault, Bus, LocalMemory
from neuroncore_rtl.golden.controller.trap import Cause, Trap
from neuroncore_rtl.spec.memory_map import LOCAL_BASE

__all__ = ["Hart", "Retired"]


class Retired(NamedTuple):
    """A line of the trace: an instruction that retired or trapped, or an interrupt.

    Arguments:
        pc: of the instruction; at an interrupt, of the one that was not begun.
        instruction: its word; 0 at an interrupt and where nothing could be fetched.
        rd: the register that it wrote, 0 if none.
        value: what it wrote there, 0 if nothing.
        cause: mcause if it trapped, else None.
    """

    pc: int
    instruction: int
    rd: int
    value: int
    cause: int | None = None


class Hart:
    """RV32IM with Zicsr, Zicntr and Zifencei, machine mode only.

    Loads and stores to memory may have any address; one that crosses a word is done in two parts, the lower address
    first, and if the second part faults, the first part of a store stays written. Elsewhere they must be aligned.

    Arguments:
        memory: the program and its data.
        peripheral: what is at all other addresses; None if there is nothing.
        pc: where it starts.

    Attributes:
        x: the registers; x[0] stays 0, and one place more takes what is written to it.
        pc: of the next instruction.
        csr: its control and status registers; who steps the hart sets the interrupts and the counters of time there.
        waiting: whether it is in a wfi; `step` then waits until an interrupt that mie enables is pending.
    """

    def __init__(self, memory: LocalMemory, peripheral: Bus | None = None, *, pc: int = LOCAL_BASE):
        self.memory = memory
        self.peripheral = peripheral
        self.x = [0] * 33
        self.pc = pc
        self.csr = ControlRegisters()
        self.waiting = False

    def step(self) -> Retired | None:
        """Execute an instruction or enter a handler, and say what happened; None while it waits for an interrupt."""
        csr, pc = self.csr, self.pc
        if self.waiting:
            if not csr.wakes:
                return None
            self.waiting = False
        if csr.timer_interrupt or csr.external_interrupt:
            cause = csr.interrupt()
            if cause is not None:
                self.pc = csr.enter(cause, pc, 0)
                return Retired(pc, 0, 0, 0, cause)
        word = 0
        counts = csr.counts_instret
        try:
            word = self._fetch(pc)
            rd, execute = decode_riscv(word)
            self.pc = execute(self, pc) & 0xFFFF_FFFF
        except Trap as trap:
            self.pc = csr.enter(trap.cause, pc, trap.value)
            return Retired(pc, word, 0, 0, trap.cause)
        if counts and not csr.instret_written:
            csr.instret += 1
        csr.instret_written = False
        return Retired(pc, word, rd, self.x[rd])

    def _fetch(self, pc: int) -> int:
        try:
            return self.memory.load(pc, 4)
        except AccessFault:
            raise Trap(Cause.FETCH_FAULT, pc) from None

    def load(self, address: int, size: int) -> int:
        """Return 1, 2 or 4 bytes, as a load instruction reads them; raise its trap if it cannot."""
        if address & size - 1 and address < self.memory.base:
            raise Trap(Cause.LOAD_MISALIGNED, address)
        first = min(size, 4 - (address & 3))
        value = self._load_part(address, first)
        if first < size:
            value |= self._load_part(address + first & 0xFFFF_FFFF, size - first) << 8 * first
        return value

    def store(self, address: int, size: int, value: int) -> None:
        """Write 1, 2 or 4 bytes, as a store instruction does; raise its trap if it cannot."""
        if address & size - 1 and address < self.memory.base:
            raise Trap(Cause.STORE_MISALIGNED, address)
        first = min(size, 4 - (address & 3))
        self._store_part(address, first, value & (1 << 8 * first) - 1)
        if first < size:
            self._store_part(address + first & 0xFFFF_FFFF, size - first, value >> 8 * first)

    def _load_part(self, address: int, size: int) -> int:
        try:
            return self._bus(address).load(address, size)
        except AccessFault:
            raise Trap(Cause.LOAD_FAULT, address) from None

    def _store_part(self, address: int, size: int, value: int) -> None:
        try:
            self._bus(address).store(address, size, value)
        except AccessFault:
            raise Trap(Cause.STORE_FAULT, address) from None

    def _bus(self, address: int) -> Bus:
        memory = self.memory
        if self.peripheral is None or 0 <= address - memory.base < memory.size:
            return memory
        return self.peripheral

"""RISC-V hart: registers, pc, traps. A step is one instruction or the entry into a trap handler."""

from typing import NamedTuple

from neuroncore_rtl.golden.controller.csr import ControlRegisters
from neuroncore_rtl.golden.controller.decode import decode_riscv
from neuroncore_rtl.golden.controller.memory import AccessFault, Bus, LocalMemory
from neuroncore_rtl.golden.controller.trap import Cause, Trap
from neuroncore_rtl.spec.memory_map import LOCAL_BASE

__all__ = ["Hart", "Retired"]


class Retired(NamedTuple):
    """A line of the trace: an instruction that retired or trapped, or an interrupt.

    `pc` is the address of the instruction; for an interrupt, of the next instruction. `instruction` is 0 for an
    interrupt or a failed fetch. `rd` and `value` are the destination register and its new value, 0 if none. `cause` is
    mcause of a trap or interrupt, else None.
    """

    pc: int
    instruction: int
    rd: int
    value: int
    cause: int | None = None


class Hart:
    """RV32IM with Zicsr, Zicntr and Zifencei, machine mode only.

    Accesses to memory may be misaligned. One that crosses a word is done in two parts, the lower address first; if the
    second part of a store faults, the first stays written. Accesses to the peripheral, at all addresses outside of
    memory, must be aligned.

    Attributes:
        x: registers x[0] to x[31], and the `DISCARD` register x[32]; x[0] is 0.
        csr: control and status registers. The owner of the hart sets their interrupts and time counters.
        waiting: set by a wfi; `step` then returns None until an enabled interrupt is pending.
    """

    def __init__(self, memory: LocalMemory, peripheral: Bus | None = None, *, pc: int = LOCAL_BASE):
        self.memory = memory
        self.peripheral = peripheral
        self.x = [0] * 33
        self.pc = pc
        self.csr = ControlRegisters()
        self.waiting = False

    def step(self) -> Retired | None:
        """Execute an instruction or enter a handler, and return its trace line; None while waiting for an interrupt."""
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
        """Return 1, 2 or 4 bytes; raise the trap of a failed load instruction."""
        if address & size - 1 and address < self.memory.base:
            raise Trap(Cause.LOAD_MISALIGNED, address)
        first = min(size, 4 - (address & 3))
        value = self._load_part(address, first)
        if first < size:
            value |= self._load_part(address + first & 0xFFFF_FFFF, size - first) << 8 * first
        return value

    def store(self, address: int, size: int, value: int) -> None:
        """Write 1, 2 or 4 bytes; raise the trap of a failed store instruction."""
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

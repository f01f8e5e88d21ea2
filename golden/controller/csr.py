"""Control and status registers: read values and writable bits."""

from neuroncore_rtl.golden.controller.trap import INTERRUPT, Cause
from neuroncore_rtl.spec.riscv import Csr

__all__ = ["ControlRegisters", "UnknownRegister"]

WORD = 0xFFFF_FFFF

RV32IM = 1 << 30 | 1 << ord("I") - ord("A") | 1 << ord("M") - ord("A")
"""Value of misa: 32 bits wide, and a bit for each extension."""

GLOBAL_ENABLE, PREVIOUS_ENABLE, PREVIOUS_MODE = 1 << 3, 1 << 7, 3 << 11
"""MIE, MPIE and MPP of mstatus; MPP is always machine mode, the only one."""

SOURCES = 1 << (Cause.TIMER & ~INTERRUPT) | 1 << (Cause.EXTERNAL & ~INTERRUPT)
"""Implemented interrupts, as bits of mie and mip."""

INHIBIT_CYCLE, INHIBIT_INSTRET = 1 << 0, 1 << 2

_WRITABLE: dict[int, int] = {
    Csr.MSTATUS: GLOBAL_ENABLE | PREVIOUS_ENABLE,
    Csr.MIE: SOURCES,
    Csr.MTVEC: WORD & ~2,
    Csr.MCOUNTINHIBIT: INHIBIT_CYCLE | INHIBIT_INSTRET,
    Csr.MSCRATCH: WORD,
    Csr.MEPC: WORD & ~3,
    Csr.MCAUSE: WORD,
    Csr.MTVAL: WORD,
}
"""Registers that hold the written value, and their writable bits."""

_COUNTERS: dict[int, str] = {
    Csr.MCYCLE: "cycle",
    Csr.MINSTRET: "instret",
    Csr.CYCLE: "cycle",
    Csr.TIME: "time",
    Csr.INSTRET: "instret",
}
"""64-bit counters by the number of the lower half; the number of the upper half also has bit 7 set."""

_UNUSED_COUNTERS = [base + n for base in (0xB00, 0xB80, 0x320) for n in range(3, 32)]
"""mhpmcounter3 to 31, their upper halves, and mhpmevent3 to 31."""

_ZEROS = frozenset((Csr.MSTATUSH, Csr.MVENDORID, Csr.MARCHID, Csr.MIMPID, Csr.MHARTID, *_UNUSED_COUNTERS))
"""Registers that read 0 and ignore writes; from 0xF11: vendor, architecture, implementation, hart."""


class UnknownRegister(LookupError):
    """The register does not exist or cannot be written."""


class ControlRegisters:
    """Registers of a hart in machine mode.

    Attributes:
        cycle, instret, time: counters. The owner of the hart advances `cycle`, unless `cycle_inhibited`, and `time`.
        instret_written: whether the current instruction wrote `instret`; it is then not counted.
    """

    def __init__(self):
        self.values = dict.fromkeys(_WRITABLE, 0)
        self.cycle = self.instret = self.time = 0
        self.timer_interrupt = self.external_interrupt = False
        self.counts_instret = True
        self.instret_written = False

    def read(self, number: int) -> int:
        """Return a register's value; raise UnknownRegister if the register does not exist."""
        if number in self.values:
            value = self.values[number]
            return value | PREVIOUS_MODE if number == Csr.MSTATUS else value
        if number & ~0x80 in _COUNTERS:
            return getattr(self, _COUNTERS[number & ~0x80]) >> (32 if number & 0x80 else 0) & WORD
        if number == Csr.MIP:
            return self.pending
        if number == Csr.MISA:
            return RV32IM
        if number in _ZEROS:
            return 0
        raise UnknownRegister(number)

    def check_writable(self, number: int) -> None:
        """Raise UnknownRegister if an existing register cannot be written."""
        if number >> 10 == 0b11:
            raise UnknownRegister(number)

    def write(self, number: int, value: int) -> None:
        """Write an existing, writable register; its read-only bits ignore the value."""
        if number in self.values:
            self.values[number] = value & _WRITABLE[number]
            self.counts_instret = not self.values[Csr.MCOUNTINHIBIT] & INHIBIT_INSTRET
        elif number & ~0x80 in _COUNTERS:
            name, shift = _COUNTERS[number & ~0x80], 32 if number & 0x80 else 0
            setattr(self, name, getattr(self, name) & ~(WORD << shift) | value << shift)
            self.instret_written |= name == "instret"

    @property
    def pending(self) -> int:
        """Value of the register mip: the pending interrupts."""
        return self.timer_interrupt << 7 | self.external_interrupt << 11

    @property
    def cycle_inhibited(self) -> bool:
        """True while `cycle` does not count."""
        return bool(self.values[Csr.MCOUNTINHIBIT] & INHIBIT_CYCLE)

    @property
    def wakes(self) -> bool:
        """True if an interrupt enabled in mie is pending. It ends a wfi whatever mstatus contains."""
        return bool(self.pending & self.values[Csr.MIE])

    def interrupt(self) -> Cause | None:
        """Return the pending enabled interrupt of highest priority if interrupts are enabled in mstatus, else None."""
        enabled = self.pending & self.values[Csr.MIE]
        if not enabled or not self.values[Csr.MSTATUS] & GLOBAL_ENABLE:
            return None
        return Cause.EXTERNAL if enabled & 1 << 11 else Cause.TIMER

    def enter(self, cause: Cause, pc: int, value: int) -> int:
        """Update the registers for a trap at `pc`; return the address of the trap handler."""
        values = self.values
        was_enabled = bool(values[Csr.MSTATUS] & GLOBAL_ENABLE)
        values[Csr.MSTATUS] = PREVIOUS_ENABLE if was_enabled else 0
        values[Csr.MEPC], values[Csr.MCAUSE], values[Csr.MTVAL] = pc, int(cause), value
        base, vectored = values[Csr.MTVEC] & ~3, values[Csr.MTVEC] & 1
        return base + 4 * (cause & ~INTERRUPT) & WORD if vectored and cause & INTERRUPT else base

    def leave(self) -> int:
        """Restore mstatus, as mret does, and return mepc."""
        was_enabled = bool(self.values[Csr.MSTATUS] & PREVIOUS_ENABLE)
        self.values[Csr.MSTATUS] = PREVIOUS_ENABLE | (GLOBAL_ENABLE if was_enabled else 0)
        return self.values[Csr.MEPC]

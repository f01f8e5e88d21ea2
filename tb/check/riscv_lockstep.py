"""Lockstep comparison of the Cpu's trace with the golden hart, instruction by instruction.

The hart adopts values that depend on cycles from the trace: interrupts, and reads of the time counters and mip. They
must be plausible: an interrupt is pending and enabled, a possible interrupt is soon taken, and the time read lies
between the previous instruction and this one. An instruction that was recently overwritten may still be the old one,
unless a FENCE.I was executed since (Zifencei in the specification).
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from neuroncore_rtl.golden.controller import AccessFault, Hart, LocalMemory, Timer
from neuroncore_rtl.golden.controller.trap import INTERRUPT, Cause
from neuroncore_rtl.run.harness.riscv import Executable, TraceEntry
from neuroncore_rtl.spec.memory_map import CONSOLE, INTERRUPT_PENDING, TIMER_NOW

__all__ = ["LockstepComparison", "compare"]

TIME, MIP, MIE, MSTATUS = 0xC01, 0x344, 0x304, 0x300
UNPREDICTED = frozenset((0xB00, 0xB80, 0xC00, 0xC80))  # cycle and mcycle, both halves
WORD = 1 << 32  # number of values of a timer register, which is half of a 64-bit counter
FETCHED_AHEAD = 8  # stores after which an overwritten word can no longer be in the prefetch buffer
FENCE_I = 0x100F
PROMPT = 4  # instructions that may retire before a pending, enabled interrupt is taken


@dataclass(frozen=True)
class LockstepComparison:
    """Result of a comparison; the counts include a line that differs.

    `ended`: the golden hart wrote its exit code to the host. `memory`: the hart's memory at the end.
    """

    compared: int
    interrupts: int
    traps: int
    mismatch: str | None
    ended: bool
    memory: bytes


class _Memory(LocalMemory):
    """Memory with the host's answers to the program's requests."""

    def __init__(self, program: Executable):
        super().__init__(program.image, size=program.memory_bytes)
        self.program = program
        self.ended = False
        self.replaced: deque[tuple[int, int]] = deque(maxlen=FETCHED_AHEAD)
        """Addresses and old contents of words overwritten since FENCE.I."""

    def store(self, address: int, size: int, value: int) -> None:
        place = address & ~3
        if 0 <= place - self.base < self.size:
            self.replaced.append((place, self.load(place, 4)))
        super().store(address, size, value)
        if address != self.program.tohost or not value:
            return
        if not self._is_request(value):
            self.ended = True
        elif self.program.fromhost:
            super().store(self.program.fromhost, 4, 1)

    def _is_request(self, value: int) -> bool:
        """Return whether a word for the host is a request to write text (run/harness/riscv.v), not the exit code."""
        return value % 4 == 0 and self.base <= value < self.base + self.size and self.load(value, 4) == 64


class _FetchingHart(Hart):
    fetched: int | None = None

    def _fetch(self, pc: int) -> int:
        word, self.fetched = self.fetched, None
        return super()._fetch(pc) if word is None else word


class _Peripheral:
    def __init__(self, program: Executable):
        self.timer = Timer()
        self.tohost = program.tohost
        self.ended = False
        self.external = 0
        self.read_time = False

    def load(self, address: int, size: int) -> int:
        if address not in (INTERRUPT_PENDING, CONSOLE, self.tohost):
            self.read_time = address == TIMER_NOW
            return self.timer.load(address, size)
        if size != 4:
            raise AccessFault
        return self.external if address == INTERRUPT_PENDING else 0

    def store(self, address: int, size: int, value: int) -> None:
        if address not in (INTERRUPT_PENDING, CONSOLE, self.tohost):
            self.timer.store(address, size, value)
        elif size != 4:
            raise AccessFault
        elif address == self.tohost:
            self.ended = True


class _Lockstep:
    def __init__(self, program: Executable):
        self.memory = _Memory(program)
        self.peripheral = _Peripheral(program)
        self.hart = _FetchingHart(self.memory, self.peripheral)
        self.time = 0
        self.possible = 0

    def follow(self, entry: TraceEntry) -> str | None:
        """Execute the golden hart's next step and compare it with the traced `entry`; return the difference or None."""
        csr, timer = self.hart.csr, self.peripheral.timer
        timer.now = csr.time = entry.time
        self.peripheral.external = entry.external
        pending = {Cause.TIMER: timer.pending, Cause.EXTERNAL: bool(entry.external)}
        taken = entry.cause if entry.trap and entry.cause & INTERRUPT else None
        problem = self._check_interrupt(taken, pending)
        if problem:
            return problem
        csr.timer_interrupt, csr.external_interrupt = taken == Cause.TIMER, taken == Cause.EXTERNAL
        self.hart.waiting = False
        self.peripheral.read_time = False
        if taken is None and (entry.pc, entry.instruction) in self.memory.replaced:
            self.hart.fetched = entry.instruction
        found = self._adopt(self.hart.step(), entry)
        if found.instruction & 0x707F == FENCE_I:
            self.memory.replaced.clear()
        self.time = entry.time
        expected = (found.pc, found.cause, found.rd, found.value if found.rd else 0)
        traced = (entry.pc, entry.cause if entry.trap else None, entry.rd, entry.value if entry.rd else 0)
        same_word = found.instruction == entry.instruction or found.cause == Cause.FETCH_FAULT or taken is not None
        return None if expected == traced and same_word else f"golden {_describe(found, found.cause is not None)}"

    def _check_interrupt(self, taken: int | None, pending: dict[Cause, bool]) -> str | None:
        """Return an error if the Cpu takes an interrupt that is not pending, or takes none in time; else None."""
        csr = self.hart.csr
        enabled = [cause for cause, waits in pending.items() if waits and csr.read(MIE) >> (cause & 31) & 1]
        if taken is not None:
            self.possible = 0
            return None if pending.get(taken) else f"interrupt {taken:#x} was taken, but is not pending"
        if self.hart.waiting and not enabled:
            return "wfi ended, but no interrupt is pending"
        self.possible = self.possible + 1 if enabled and csr.read(MSTATUS) & 8 else 0
        return "an interrupt is pending and enabled, but was not taken" if self.possible > PROMPT else None

    def _adopt(self, found, entry: TraceEntry):
        """Return golden's step `found`, with the traced value if golden cannot predict it and it is plausible."""
        if found.cause is not None or not found.rd or found.value == entry.value or found.rd != entry.rd:
            return found
        register = found.instruction >> 20 if found.instruction & 0x7F == 0x73 else None
        reads_time = register == TIME or self.peripheral.read_time
        is_time = reads_time and self.time % WORD <= entry.value <= entry.time % WORD
        is_mip = register == MIP and not entry.value & ~0x880
        if not (is_time or is_mip or register in UNPREDICTED):
            return found
        self.hart.x[found.rd] = entry.value
        return found._replace(value=entry.value)


def _describe(step, trapped: bool) -> str:
    happened = f"trap {step.cause:#x}" if trapped else f"x{step.rd} = {step.value:08x}"
    return f"pc {step.pc:08x}, instruction {step.instruction:08x}, {happened}"


def compare(program: Executable, trace: Iterable[TraceEntry]) -> LockstepComparison:
    """Execute `program` on the golden hart and compare it with the trace, up to the first difference."""
    lockstep = _Lockstep(program)
    compared = interrupts = traps = 0
    mismatch = None
    for entry in trace:
        problem = lockstep.follow(entry)
        compared += 1
        interrupts += bool(entry.trap and entry.cause & INTERRUPT)
        traps += bool(entry.trap and not entry.cause & INTERRUPT)
        if problem:
            mismatch = f"line {compared} of the trace: RTL {_describe(entry, entry.trap)}; {problem}"
            break
    ended = lockstep.memory.ended or lockstep.peripheral.ended
    return LockstepComparison(compared, interrupts, traps, mismatch, ended, bytes(lockstep.memory.bytes))

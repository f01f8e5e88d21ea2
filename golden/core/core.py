"""Core: boots an image from HBM and runs it to the end of its program."""

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from neuroncore_rtl.golden.controller import AddressMap, Bus, Hart, LocalMemory, Timer
from neuroncore_rtl.golden.core.boot import BootFault, boot_program
from neuroncore_rtl.golden.core.errors import CoreError
from neuroncore_rtl.golden.core.machine import Machine
from neuroncore_rtl.golden.core.network import Network
from neuroncore_rtl.golden.core.registers import Registers, Stall
from neuroncore_rtl.golden.core.window import Window
from neuroncore_rtl.spec import memory_map as at
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Cause

__all__ = ["Core", "CoreOutcome"]

NEVER = (1 << 64) - 1
"""Reset value of the timer's compare register: no interrupt."""

SLICE = 500
"""Instructions after which a core of an instance yields to the others."""


@dataclass(frozen=True)
class CoreOutcome:
    """Result of a run; the memories are not copied.

    `exit_code` is None if the program has not ended, `error` the first reported error or None, `records` the (queue,
    HBM address) of every retired record in order, `console` the program's output, `loaded` the words that the program
    read from SBUF and PSUM, in order.
    """

    exit_code: int | None
    error: CoreError | None
    records: list[tuple[int, int]]
    console: bytes
    loaded: list[int]
    sbuf: np.ndarray
    psum: np.ndarray
    hbm: np.ndarray


class Core:
    """Untimed core. The controller executes until it writes a register; then the queues run as far as possible.

    The timer counts retired instructions. While the controller sleeps or stalls at a doorbell, the timer jumps to the
    next timer interrupt or watchdog report.

    `hbm`, uint8 [bytes], is used in place; accesses beyond it fail. `order`, `number` and `network` are those of
    `golden.core.machine.Machine`. `hart` is None before `run`, and after a failed boot.
    """

    def __init__(
        self,
        config: Config,
        hbm: np.ndarray,
        order: np.random.Generator | None = None,
        *,
        number: int = 0,
        network: Network | None = None,
    ):
        self.config = config
        self.machine = Machine(config, hbm, order, number, network)
        self.registers = Registers(self.machine)
        self.hart: Hart | None = None
        self._timer = Timer()
        self._loaded: list[int] = []
        self._stalled = False  # at a doorbell
        self._moved = 0  # time of the last change of a queue or semaphore

    def run(self, address: int = 0, instructions: int = 5_000_000) -> CoreOutcome:
        """Boot the image at `address` in the first call, and run until its program ends.

        It also returns if only the host can wake the controller, or after `instructions` instructions, so that infinite
        loops end. The next call continues the run.
        """
        steps = self.steps(address, instructions)
        time = next(steps, None)
        while time is not None:
            try:
                time = steps.send(time)
            except StopIteration:
                break
        return self.outcome()

    def steps(self, address: int = 0, instructions: int = 5_000_000) -> Generator[int, int, None]:
        """Run like `run`; whenever it stalls, yield the time of its next event, and receive the time to continue.

        The caller continues the core with the earliest time, so a core can wait for others until its watchdog reports.
        """
        if self.hart is None and not self._boot(address):
            return
        while self.registers.exit_code is None and instructions > 0:
            if self.config.cores > 1:
                yield self._timer.now
            if self.machine.run() or self.registers.moved:
                self._moved = self._timer.now
            self.registers.written = self.registers.moved = False
            deadline = self._moved + self.registers.watchdog_limit if self.machine.is_waiting else None
            if deadline is not None and self._timer.now >= deadline:
                self.machine.report_deadlock()
                continue
            most = instructions if deadline is None else min(instructions, deadline - self._timer.now)
            executed = self._execute(min(most, SLICE) if self.config.cores > 1 else most)
            instructions -= executed
            if not executed:
                wakes = self._wakes(deadline)
                if wakes is None:
                    break
                time = yield wakes
                self._advance(max(time - self._timer.now, 0))

    def _boot(self, address: int) -> bool:
        try:
            program = boot_program(self.machine.engines.hbm, address, self.config)
        except BootFault as fault:
            self.machine.errors.report(CoreError(Cause.BOOT, detail=fault.word))
            return False
        engines = self.machine.engines
        windows = (
            (at.SBUF_WINDOW, at.PSUM_WINDOW, engines.sbuf, at.SBUF_PITCH_BITS),
            (at.PSUM_WINDOW, at.REGISTERS, engines.psum, at.PSUM_PITCH_BITS),
        )
        places: list[tuple[int, int, Bus]]
        places = [(base, end - base, Window(memory, base, pitch, self._loaded)) for base, end, memory, pitch in windows]
        places.append((at.TIMER_COMPARE, at.TIMER_NOW + 8 - at.TIMER_COMPARE, self._timer))
        places.append((at.REGISTERS, at.LOCAL_BASE - at.REGISTERS, self.registers))
        self.hart = Hart(LocalMemory(program, size=self.config.local_bytes), AddressMap(places))
        self._csr = self.hart.csr
        return True

    def _execute(self, most: int) -> int:
        """Execute at most `most` instructions, until a register write, sleep or stall; return their number."""
        hart, timer, registers = self.hart, self._timer, self.registers
        assert hart is not None
        csr = hart.csr
        # A controller stalled at a doorbell is inside an instruction and takes no interrupt.
        csr.external_interrupt = registers.interrupt and not self._stalled
        for executed in range(most):
            csr.timer_interrupt = timer.now >= timer.compare and not self._stalled
            try:
                if hart.step() is None:
                    return executed
            except Stall:
                self._stalled = True
                return executed
            self._stalled = False
            self._advance(1)
            if registers.written:
                return executed + 1
        return most

    def _wakes(self, deadline: int | None) -> int | None:
        times = [] if deadline is None else [deadline]
        if not self._stalled and self._timer.now < self._timer.compare < NEVER:
            times.append(self._timer.compare)
        return min(times, default=None)

    def _advance(self, time: int) -> None:
        csr = self._csr
        self._timer.now += time
        csr.time = self._timer.now
        if not csr.cycle_inhibited:
            csr.cycle += time

    def outcome(self) -> CoreOutcome:
        """Return the result of the run up to now."""
        machine, engines = self.machine, self.machine.engines
        return CoreOutcome(
            exit_code=self.registers.exit_code,
            error=machine.errors.first,
            records=machine.trace,
            console=bytes(self.registers.console),
            loaded=self._loaded,
            sbuf=engines.sbuf,
            psum=engines.psum,
            hbm=engines.hbm,
        )

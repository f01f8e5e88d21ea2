"""CSRs of machine mode: traps, interrupts and counters (RISC-V privileged ISA 1.12)."""

from amaranth import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.spec.riscv import Csr

__all__ = ["Cause", "CsrFile"]


class Cause(enum.Enum, shape=unsigned(4)):
    """Codes of mcause: exceptions and interrupts.

    An interrupt's code is its bit in mie and mip; its mcause also has bit 31 set.
    """

    INSTRUCTION_MISALIGNED = 0
    INSTRUCTION_ACCESS = 1
    ILLEGAL = 2
    BREAKPOINT = 3
    LOAD_MISALIGNED = 4
    LOAD_ACCESS = 5
    STORE_MISALIGNED = 6
    STORE_ACCESS = 7
    ECALL = 11

    TIMER = 7
    EXTERNAL = 11


_HIGH = Csr.MCYCLEH - Csr.MCYCLE
"""Offset from the number of a counter's lower half to its upper half."""

_MIE, _MPIE = 3, 7
"""Positions of the writable bits of mstatus. MPP, above them, always reads as machine mode."""
_WRITE, _SET, _CLEAR = 1, 2, 3
"""Low bits of a CSR instruction's funct3, by operation."""
_EVENTS = range(29)
"""Performance counters 3 to 31, which exist and count nothing."""
_CONSTANTS = {
    Csr.MISA: 1 << 30 | 1 << 12 | 1 << 8,  # RV32, M, I
    Csr.MSTATUSH: 0,
    Csr.MVENDORID: 0,
    Csr.MARCHID: 0,
    Csr.MIMPID: 0,
    Csr.MHARTID: 0,
    **{base + event: 0 for base in (Csr.MHPMEVENT3, Csr.MHPMCOUNTER3, Csr.MHPMCOUNTER3 + _HIGH) for event in _EVENTS},
}
"""CSRs with a constant value, which ignore writes."""


class CsrFile(wiring.Component):
    """CSRs: combinational read, and write at the end of the cycle that commits the instruction.

    Writable bits: MIE and MPIE of mstatus; the timer and external bits of mie; mtvec except bit 1 (direct or vectored
    mode); mepc except its lower two bits; mscratch, mcause, mtval; mcycle, minstret; CY and IR of mcountinhibit. Other
    bits keep their value.

    A write to either half of a counter replaces its increment of that cycle (mcycle) or of that instruction (minstret).
    The instruction that writes mcountinhibit is counted according to the old value.

    Ports:
        number, operation, source: bits 20 to 31, funct3, and the rs1 field of a CSR instruction. Set and clear do not
            write if `source` is 0.
        operand: value of rs1, or the constant.
        commit: the CSR instruction takes effect at the end of this cycle.
        read: value of the CSR before the instruction takes effect.
        illegal: the CSR does not exist or must not be written.
        counted: the instruction will count in minstret when it retires, according to the current value of
            mcountinhibit.
        retire: an instruction that had `counted` set retires in this cycle.
        trap, trap_interrupt, trap_cause, trap_pc, trap_value: a trap is taken at the end of this cycle.
        trap_target: address of the trap's handler.
        leave: MRET takes effect at the end of this cycle.
        return_pc: address to which MRET returns.
        timer_interrupt, external_interrupt, time: inputs from outside the processor.
        interrupt: an interrupt is pending and enabled, and must be taken.
        interrupt_cause: cause of that interrupt, external before timer.
        wake: an interrupt is pending and enabled in mie, regardless of MIE in mstatus.
    """

    number: In(12)
    operation: In(3)
    operand: In(32)
    source: In(5)
    commit: In(1)
    read: Out(32)
    illegal: Out(1)
    counted: Out(1)
    retire: In(1)

    trap: In(1)
    trap_interrupt: In(1)
    trap_cause: In(Cause)
    trap_pc: In(32)
    trap_value: In(32)
    trap_target: Out(32)
    leave: In(1)
    return_pc: Out(32)

    timer_interrupt: In(1)
    external_interrupt: In(1)
    time: In(64)
    interrupt: Out(1)
    interrupt_cause: Out(Cause)
    wake: Out(1)

    def __init__(self):
        self.value, self.writes = Signal(32, name="value"), Signal(name="writes")
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        exists, wants = Signal(), Signal()
        value, writes = self.value, self.writes
        m.d.comb += [
            wants.eq((self.operation[:2] == _WRITE) | self.source.any()),
            self.illegal.eq(~exists | (wants & self.number[10:].all())),
            writes.eq(self.commit & wants & ~self.illegal),
        ]
        with m.Switch(self.operation[:2]):
            with m.Case(_SET):
                m.d.comb += value.eq(self.read | self.operand)
            with m.Case(_CLEAR):
                m.d.comb += value.eq(self.read & ~self.operand)
            with m.Default():
                m.d.comb += value.eq(self.operand)

        registers = self._trap_registers(m, value) | self._counters(m, value, writes)
        registers |= {number: (constant, []) for number, constant in _CONSTANTS.items()}
        with m.Switch(self.number):
            for number, (read, update) in registers.items():
                with m.Case(number):
                    m.d.comb += [self.read.eq(read), exists.eq(1)]
                    with m.If(writes):
                        m.d.sync += update
        return m

    def _trap_registers(self, m: Module, value) -> dict:
        """Add the CSRs of traps and interrupts.

        Return by CSR number a pair: the read value, and the assignments that write `value`.
        """
        enable, previous_enable = Signal(), Signal()
        timer_enable, external_enable = Signal(), Signal()
        vector, vectored = Signal(30), Signal()
        scratch, cause, trap_value = Signal(32), Signal(32), Signal(32)
        pc = Signal(30)

        timer, external = self.timer_interrupt & timer_enable, self.external_interrupt & external_enable
        m.d.comb += [
            self.wake.eq(timer | external),
            self.interrupt.eq(enable & self.wake),
            self.interrupt_cause.eq(Mux(external, Cause.EXTERNAL, Cause.TIMER)),
            self.return_pc.eq(Cat(Const(0, 2), pc)),
            self.trap_target.eq(Cat(Const(0, 2), vector + Mux(vectored & self.trap_interrupt, self.trap_cause, 0))),
        ]
        with m.If(self.leave):
            m.d.sync += [enable.eq(previous_enable), previous_enable.eq(1)]
        with m.If(self.trap):
            m.d.sync += [
                enable.eq(0),
                previous_enable.eq(enable),
                pc.eq(self.trap_pc[2:]),
                cause.eq(Cat(self.trap_cause, Const(0, 27), self.trap_interrupt)),
                trap_value.eq(self.trap_value),
            ]

        def at_interrupt_bits(timer_bit, external_bit):
            bits = [Const(0, 1)] * 32
            bits[Cause.TIMER.value], bits[Cause.EXTERNAL.value] = timer_bit, external_bit
            return Cat(*bits)

        status = Cat(Const(0, _MIE), enable, Const(0, _MPIE - _MIE - 1), previous_enable, Const(0, 3), Const(0b11, 2))
        return {
            Csr.MSTATUS: (status, [enable.eq(value[_MIE]), previous_enable.eq(value[_MPIE])]),
            Csr.MIE: (
                at_interrupt_bits(timer_enable, external_enable),
                [timer_enable.eq(value[Cause.TIMER.value]), external_enable.eq(value[Cause.EXTERNAL.value])],
            ),
            Csr.MIP: (at_interrupt_bits(self.timer_interrupt, self.external_interrupt), []),
            Csr.MTVEC: (Cat(vectored, Const(0, 1), vector), [vectored.eq(value[0]), vector.eq(value[2:])]),
            Csr.MSCRATCH: (scratch, [scratch.eq(value)]),
            Csr.MEPC: (self.return_pc, [pc.eq(value[2:])]),
            Csr.MCAUSE: (cause, [cause.eq(value)]),
            Csr.MTVAL: (trap_value, [trap_value.eq(value)]),
        }

    def _counters(self, m: Module, value, writes) -> dict:
        """Add the counter CSRs. Return by CSR number a pair: the read value, and the assignments that write `value`."""
        cycles, instructions = Signal(64), Signal(64)
        inhibit_cycles, inhibit_instructions = Signal(), Signal()
        is_instructions = (self.number == Csr.MINSTRET) | (self.number == Csr.MINSTRETH)
        m.d.comb += self.counted.eq(~inhibit_instructions & ~(writes & is_instructions))
        with m.If(~inhibit_cycles):
            m.d.sync += cycles.eq(cycles + 1)
        with m.If(self.retire):
            m.d.sync += instructions.eq(instructions + 1)
        registers = {
            Csr.MCOUNTINHIBIT: (
                Cat(inhibit_cycles, Const(0, 1), inhibit_instructions),
                [inhibit_cycles.eq(value[0]), inhibit_instructions.eq(value[2])],
            ),
            Csr.CYCLE: (cycles[:32], []),
            Csr.CYCLEH: (cycles[32:], []),
            Csr.TIME: (self.time[:32], []),
            Csr.TIMEH: (self.time[32:], []),
            Csr.INSTRET: (instructions[:32], []),
            Csr.INSTRETH: (instructions[32:], []),
        }
        # A write assigns the whole counter, so it overrides the increment.
        for number, counter in ((Csr.MCYCLE, cycles), (Csr.MINSTRET, instructions)):
            registers[number] = counter[:32], [counter.eq(Cat(value, counter[32:]))]
            registers[number + _HIGH] = counter[32:], [counter.eq(Cat(counter[:32], value))]
        return registers

"""Processor of the controller: RV32IM, machine mode, in order, three stages behind a prefetch queue."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from neuroncore_rtl.hdl.controller.access import MemoryAccess
from neuroncore_rtl.hdl.controller.alu import ControllerAlu
from neuroncore_rtl.hdl.controller.bus import Bus
from neuroncore_rtl.hdl.controller.csr import Cause, CsrFile
from neuroncore_rtl.hdl.controller.fetch import ControllerFetch
from neuroncore_rtl.hdl.controller.instruction import InstructionDecoder, Kind, OperandA, OperandB
from neuroncore_rtl.hdl.controller.muldiv import Divider, Multiplier
from neuroncore_rtl.hdl.controller.registers import RegisterFile
from neuroncore_rtl.hdl.controller.stages import EXECUTE, WRITE_BACK, End, Source, stage
from neuroncore_rtl.spec.memory_map import LOCAL_BASE

__all__ = ["Cpu"]


class Cpu(wiring.Component):
    """Processor: RV32IM_Zicsr_Zicntr_Zifencei, machine mode only, little endian; starts at LOCAL_BASE.

    Stages:
    - Decode (D) reads registers in the cycle in which the word arrives.
    - Execute (X) computes, resolves branches, requests loads and stores, and writes CSRs.
    - Write-back (W) waits for responses, writes the register, and takes traps.

    Results are forwarded from X and W to the operands of D. An instruction advances from X only when everything older
    ends without a trap. So traps are precise, and only instruction fetches are speculative.

    Cycles per instruction, with memories that answer in the next cycle:

    ==========================================  ====================================================================
    ALU, branch not taken, store, FENCE         1
    load, multiplication                        1, and 1 more if the next instruction reads the result
    load or store that crosses a word boundary  3
    branch taken, JAL, JALR, FENCE.I, MRET      2: the next word is dropped
    WFI                                         at least 2: the next instruction stalls
    CSR instruction                             3: it waits for all older instructions, the next one waits for it;
                                                2 after another CSR instruction
    division, remainder                         1 + `Divider.LATENCY`
    trap or interrupt                           3, plus the cycles of its handler's first instruction
    ==========================================  ====================================================================

    A redirection (branch taken, JAL, JALR, FENCE.I, MRET, trap) takes `fetch_latency` more cycles. Stalls and late
    responses of a bus add their delay; the prefetch queue hides part of the delay of fetches.

    Traps:
    - mtval is the address of the failing part for access faults and misaligned accesses, the target for a misaligned
      jump, the instruction for an illegal one, the pc for a breakpoint or a failed fetch, otherwise 0.
    - Loads and stores at or above LOCAL_BASE may have any alignment. Below it, where registers are, a misaligned one
      traps.
    - A store of two parts with a refused second part has written its first part.
    - Interrupts are taken between instructions, external before timer.

    Registers x1 to x31 keep their contents in reset.

    Arguments:
        fetch_latency: 0, or 1 to register each fetched word for a cycle before it is decoded, for a faster clock.

    Ports:
        fetch: reads of instructions, whole words; may stall and answer late.
        data: loads and stores; at most one request is outstanding; may stall and answer late.
        timer_interrupt, external_interrupt: interrupts of the timer and from outside; levels.
        time: value of the CSR `time`.
        trace_valid: an instruction retires, or is replaced by a trap.
        trace_trap: that instruction did not retire: it trapped, or an interrupt was taken before it.
        trace_pc, trace_instruction: address and word of that instruction; the word of a failed fetch is undefined.
        trace_cause: mcause of the trap.
        trace_rd, trace_value: the written register, 0 for none, and its value.
        waiting: the instruction WFI is waiting for an interrupt.
    """

    fetch: Out(Bus())
    data: Out(Bus())
    timer_interrupt: In(1)
    external_interrupt: In(1)
    time: In(64)
    trace_valid: Out(1)
    trace_pc: Out(32)
    trace_instruction: Out(32)
    trace_trap: Out(1)
    trace_cause: Out(32)
    trace_rd: Out(5)
    trace_value: Out(32)
    waiting: Out(1)

    _multiplier, _divider = Multiplier, Divider

    def __init__(self, fetch_latency: int = 0):
        self.fetch_latency = fetch_latency
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.fetch = fetch = ControllerFetch(self.fetch_latency)
        m.submodules.csr = csr = CsrFile()
        m.submodules.access = access = MemoryAccess()
        m.submodules.multiplier = multiplier = self._multiplier()
        wiring.connect(m, fetch.bus, wiring.flipped(self.fetch))
        wiring.connect(m, access.bus, wiring.flipped(self.data))
        m.d.comb += [
            csr.timer_interrupt.eq(self.timer_interrupt),
            csr.external_interrupt.eq(self.external_interrupt),
            csr.time.eq(self.time),
        ]

        x = stage("x", EXECUTE, leaves=1, is_access=1, address=32, result=32)
        w = stage("w", WRITE_BACK, waits=1, ends=1, traps=1, result=32)
        self._decode(m, x, w, fetch, csr)
        self._execute(m, x, w, fetch, csr, access, multiplier)
        self._write_back(m, w, csr, access, multiplier)
        self._observe(m, x, w, fetch, csr)
        return m

    def _observe(self, m: Module, x, w, fetch, csr):
        """Add logic that observes the pipeline. Empty here; `hdl.controller.rvfi.RvfiCpu` overrides it."""

    def _decode(self, m: Module, x, w, fetch, csr):
        m.submodules.decoder = decoder = InstructionDecoder()
        m.submodules.registers = registers = RegisterFile()
        self._decoder, self._registers = decoder, registers
        word = fetch.instruction
        rs1, rs2 = registers.value1, registers.value2
        unknown, unsettled = Signal(), Signal()
        self._enter = enter = Signal()
        m.d.comb += [
            decoder.instruction.eq(word),
            registers.rs1.eq(word[15:20]),
            registers.rs2.eq(word[20:25]),
            registers.execute.eq(Mux(x.valid, x.rd, 0)),
            registers.execute_value.eq(x.result),
            registers.write_back.eq(Mux(w.valid, w.rd, 0)),
            registers.write_back_value.eq(w.result),
            registers.write.eq(w.ends & ~w.traps),
            unknown.eq(
                ((x.kind == Kind.LOAD) | (x.kind == Kind.MULTIPLY))
                & ((decoder.reads_rs1 & registers.late1) | (decoder.reads_rs2 & registers.late2))
            ),
            # An interrupt before the next instruction can only be decided after a CSR or WFI instruction has finished.
            unsettled.eq(x.valid & ((x.kind == Kind.CSR) | (x.kind == Kind.WFI))),
            fetch.take.eq(fetch.valid & (x.leaves | ~x.valid) & ~w.waits & ~unknown & ~unsettled),
            enter.eq(fetch.take & ~fetch.redirect),
        ]

        with m.If(x.leaves | w.traps):
            m.d.sync += x.valid.eq(0)
        with m.If(enter):
            m.d.sync += [
                x.valid.eq(1),
                x.pc.eq(fetch.pc),
                x.instruction.eq(word),
                x.kind.eq(decoder.kind),
                x.interrupt.eq(csr.interrupt_cause),
                x.op.eq(decoder.op),
                x.base.eq(Mux(decoder.base_rs1, rs1, fetch.pc)),
                x.offset.eq(decoder.immediate),
                x.rd.eq(decoder.rd),
            ]
            with m.If(csr.interrupt):
                m.d.sync += x.kind.eq(Kind.INTERRUPT)
            with m.Elif(fetch.error):
                m.d.sync += x.kind.eq(Kind.FETCH_FAULT)
            with m.Switch(decoder.a):
                with m.Case(OperandA.RS1):
                    m.d.sync += x.a.eq(rs1)
                with m.Case(OperandA.PC):
                    m.d.sync += x.a.eq(fetch.pc)
                with m.Case(OperandA.ZERO):
                    m.d.sync += x.a.eq(0)
                with m.Case(OperandA.ZIMM):
                    m.d.sync += x.a.eq(word[15:20])
            with m.Switch(decoder.b):
                with m.Case(OperandB.RS2):
                    m.d.sync += x.b.eq(rs2)
                with m.Case(OperandB.IMMEDIATE):
                    m.d.sync += x.b.eq(decoder.immediate)
                with m.Default():
                    m.d.sync += x.b.eq(4)

    def _execute(self, m: Module, x, w, fetch, csr, access, multiplier):
        """Execute an instruction.

        It advances to write-back when it is ready and all older instructions have ended without a trap.
        """
        clear, refuses, taken = Signal(), Signal(), Signal()
        m.d.comb += [
            x.address.eq(x.base + x.offset),
            clear.eq(~w.waits & ~w.traps),
            refuses.eq(access.misaligned & (x.address < LOCAL_BASE)),
            access.valid.eq(x.valid & x.is_access & clear & ~refuses),
        ]
        alu, divider = self._compute(m, x, csr, access, multiplier)
        end = End.create()
        m.d.comb += x.result.eq(alu.result)
        with m.Switch(x.kind):
            with m.Case(Kind.LOAD, Kind.STORE):
                self._end_access(m, x, end, access, refuses)
            with m.Case(Kind.BRANCH, Kind.JUMP):
                m.d.comb += [taken.eq((x.kind == Kind.JUMP) | alu.holds), end.jumps.eq(taken & ~x.address[1])]
                end.trap(m, Cause.INSTRUCTION_MISALIGNED, Cat(Const(0, 1), x.address[1:]), taken & x.address[1])
            with m.Case(Kind.DIVIDE):
                m.d.comb += [end.ready.eq(divider.done), x.result.eq(divider.out)]
            with m.Case(Kind.CSR):
                # Wait until W is empty, so that all older instructions are counted.
                m.d.comb += [end.ready.eq(~w.valid), x.result.eq(csr.read)]
                # The same condition as `x.leaves` here, but available earlier in the cycle.
                m.d.comb += csr.commit.eq(x.valid & ~w.valid)
                end.trap(m, Cause.ILLEGAL, x.instruction, csr.illegal)
            with m.Case(Kind.MRET):
                m.d.comb += end.jumps.eq(1)
            with m.Case(Kind.WFI):
                m.d.comb += [end.ready.eq(csr.wake), self.waiting.eq(x.valid & clear & ~csr.wake)]
            for kind, cause, value in (
                (Kind.ILLEGAL, Cause.ILLEGAL, x.instruction),
                (Kind.FETCH_FAULT, Cause.INSTRUCTION_ACCESS, x.pc),
                (Kind.EBREAK, Cause.BREAKPOINT, x.pc),
                (Kind.ECALL, Cause.ECALL, None),
                (Kind.INTERRUPT, x.interrupt, None),
            ):
                with m.Case(kind):
                    end.trap(m, cause, value)
        m.d.comb += x.leaves.eq(x.valid & clear & end.ready)
        self._redirect(m, x, w, clear, end, fetch, csr)
        self._pass_on(m, x, w, end, csr)

    def _compute(self, m: Module, x, csr, access, multiplier):
        """Connect the operands of the execute stage's units; return the ALU and the divider."""
        m.submodules.alu = alu = ControllerAlu()
        m.submodules.divider = divider = self._divider()
        funct3 = x.instruction[12:15]
        m.d.comb += [
            x.is_access.eq((x.kind == Kind.LOAD) | (x.kind == Kind.STORE)),
            access.store.eq(x.kind == Kind.STORE),
            access.funct3.eq(funct3),
            access.address.eq(x.address),
            access.data.eq(x.b),
            alu.op.eq(x.op),
            alu.a.eq(x.a),
            alu.b.eq(x.b),
            alu.condition.eq(funct3),
            multiplier.enable.eq(x.valid & (x.kind == Kind.MULTIPLY)),
            multiplier.a.eq(x.a),
            multiplier.b.eq(x.b),
            multiplier.a_signed.eq(funct3 != 0b011),
            multiplier.b_signed.eq(~funct3[1]),
            multiplier.high.eq(funct3 != 0),
            divider.valid.eq(x.valid & (x.kind == Kind.DIVIDE)),
            divider.a.eq(x.a),
            divider.b.eq(x.b),
            divider.signed.eq(~funct3[0]),
            divider.remainder.eq(funct3[1]),
            divider.take.eq(x.leaves),
            csr.number.eq(x.instruction[20:]),
            csr.operation.eq(funct3),
            csr.operand.eq(x.a),
            csr.source.eq(x.instruction[15:20]),
            csr.leave.eq(x.leaves & (x.kind == Kind.MRET)),
        ]
        return alu, divider

    @staticmethod
    def _end_access(m: Module, x, end: End, access, refuses: Signal):
        """Set the outcome `end` of a load or store, which is ready when its last request is accepted."""
        m.d.comb += [
            end.ready.eq(access.done | refuses),
            end.traps.eq(access.refused | refuses),
            end.trap_value.eq(access.fault_address),
        ]
        with m.If(refuses):
            m.d.comb += end.cause.eq(Mux(access.store, Cause.STORE_MISALIGNED, Cause.LOAD_MISALIGNED))
        with m.Else():
            m.d.comb += end.cause.eq(Mux(access.store, Cause.STORE_ACCESS, Cause.LOAD_ACCESS))

    @staticmethod
    def _redirect(m: Module, x, w, clear: Signal, end: End, fetch, csr):
        # Jumps are always ready, so this path does not depend on the end of a load or store, which is late in a cycle.
        m.d.comb += fetch.redirect.eq(w.traps | (x.valid & clear & end.jumps))
        with m.If(w.traps):
            m.d.comb += fetch.target.eq(csr.trap_target)
        with m.Elif(x.kind == Kind.MRET):
            m.d.comb += fetch.target.eq(csr.return_pc)
        with m.Else():
            m.d.comb += fetch.target.eq(Cat(Const(0, 2), x.address[2:]))

    @staticmethod
    def _pass_on(m: Module, x, w, end: End, csr):
        """Load the registers of the write-back stage with the instruction that advances."""
        with m.If(w.ends):
            m.d.sync += w.valid.eq(0)
        with m.If(x.leaves):
            m.d.sync += [
                w.valid.eq(1),
                w.pc.eq(x.pc),
                w.instruction.eq(x.instruction),
                w.pending.eq(x.is_access & ~end.traps),
                w.failed.eq(end.traps),
                w.interrupt.eq(x.kind == Kind.INTERRUPT),
                w.cause.eq(end.cause),
                w.counted.eq(csr.counted),
                w.source.eq(Source.VALUE),
                w.rd.eq(x.rd),
                w.value.eq(Mux(end.traps | x.is_access, end.trap_value, x.result)),
            ]
            with m.If(x.kind == Kind.LOAD):
                m.d.sync += w.source.eq(Source.LOAD)
            with m.Elif(x.kind == Kind.MULTIPLY):
                m.d.sync += w.source.eq(Source.PRODUCT)

    def _write_back(self, m: Module, w, csr, access, multiplier):
        """Wait for the response of a load or store; then retire the instruction, or take its trap."""
        m.d.comb += [
            w.waits.eq(w.valid & w.pending & ~self.data.response),
            w.ends.eq(w.valid & ~w.waits),
            w.traps.eq(w.ends & (w.failed | (w.pending & self.data.error))),
            csr.retire.eq(w.ends & ~w.traps & w.counted),
            csr.trap.eq(w.traps),
            csr.trap_interrupt.eq(w.interrupt),
            csr.trap_cause.eq(w.cause),
            csr.trap_pc.eq(w.pc),
            csr.trap_value.eq(w.value),
            self.trace_valid.eq(w.ends),
            self.trace_pc.eq(w.pc),
            self.trace_instruction.eq(w.instruction),
            self.trace_trap.eq(w.traps),
            self.trace_cause.eq(Cat(w.cause, Const(0, 27), w.interrupt)),
            self.trace_rd.eq(Mux(w.traps, 0, w.rd)),
            self.trace_value.eq(w.result),
        ]
        with m.Switch(w.source):
            with m.Case(Source.LOAD):
                m.d.comb += w.result.eq(access.loaded)
            with m.Case(Source.PRODUCT):
                m.d.comb += w.result.eq(multiplier.out)
            with m.Default():
                m.d.comb += w.result.eq(w.value)

"""RISC-V Formal Interface (RVFI) of the controller's processor, for formal proofs only.

Names and semantics are those of github.com/YosysHQ/riscv-formal, with its extension for failing accesses
(RISCV_FORMAL_MEM_FAULT).
"""

from types import SimpleNamespace

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from neuroncore_rtl.hdl.controller.cpu import Cpu
from neuroncore_rtl.hdl.controller.csr import Cause
from neuroncore_rtl.hdl.controller.instruction import Kind
from neuroncore_rtl.spec.riscv import Csr

__all__ = ["RVFI_CSRS", "RvfiCpu", "RvfiPort"]

RVFI_CSRS = {
    "mscratch": (Csr.MSCRATCH,),
    "mcause": (Csr.MCAUSE,),
    "mtval": (Csr.MTVAL,),
    "mhartid": (Csr.MHARTID,),
    "mcycle": (Csr.MCYCLE, Csr.MCYCLEH),
    "minstret": (Csr.MINSTRET, Csr.MINSTRETH),
}
"""CSRs that the interface reports, and the numbers of their words."""

_MACHINE_MODE, _RV32 = 3, 1


class RvfiPort(wiring.Signature):
    """One channel of the RISC-V Formal Interface; the signal `rvfi_pc_rdata` is its member `pc_rdata`."""

    def __init__(self):
        words = "insn rs1_rdata rs2_rdata rd_wdata pc_rdata pc_wdata mem_addr mem_rdata mem_wdata".split()
        bits = "valid trap halt intr mem_fault".split()
        masks = "mem_rmask mem_wmask mem_fault_rmask mem_fault_wmask".split()
        csrs = {
            f"csr_{name}_{what}": 32 * len(numbers)
            for name, numbers in RVFI_CSRS.items()
            for what in ("rmask", "wmask", "rdata", "wdata")
        }
        widths = {
            "order": 64,
            **{"mode": 2, "ixl": 2},
            **dict.fromkeys(("rs1_addr", "rs2_addr", "rd_addr"), 5),
            **dict.fromkeys(bits, 1),
            **dict.fromkeys(words, 32),
            **dict.fromkeys(masks, 4),
            **csrs,
        }
        super().__init__({name: Out(width) for name, width in widths.items()})


class RvfiCpu(Cpu):
    """Processor with the RISC-V Formal Interface.

    - An interrupt is not an instruction; the first instruction of its handler has `intr` set, as after a trap.
    - Memory accesses are reported as seen on the bus `data`, from the lowest byte on, for any alignment. A failing
      access reports all of its bytes.
    - A failed fetch is reported as the instruction 0.
    - A CSR is reported when an instruction reads or writes it; mcause and mtval also when a trap does.

    Ports:
        rvfi: the interface.
    """

    rvfi: Out(RvfiPort())

    def _observe(self, m: Module, x, w, fetch, csr):
        rvfi = self.rvfi
        read = self._read_operands(m, x)
        memory = self._watch_bus(m, x)
        follow = {
            **read,
            "next_pc": Mux(fetch.redirect, fetch.target, x.pc + 4),
            "csr": csr.number,
            "csr_reads": (x.kind == Kind.CSR) & ~csr.illegal,
            "csr_read": csr.read,
            "csr_writes": csr.writes,
            "csr_write": csr.value,
        }
        at_end = SimpleNamespace()
        for name, value in follow.items():
            register = Signal(len(value), name=f"rvfi_w_{name}")
            with m.If(x.leaves):
                m.d.sync += register.eq(value)
            setattr(at_end, name, register)

        retires, traps = Signal(), Signal()
        handler = Signal()  # the next instruction is the first of a handler
        failed_fetch, failed_access = Signal(), Signal()
        m.d.comb += [
            retires.eq(w.ends & ~(w.traps & w.interrupt)),
            traps.eq(w.traps & ~w.interrupt),
            failed_fetch.eq(traps & (w.cause == Cause.INSTRUCTION_ACCESS)),
            failed_access.eq(traps & ((w.cause == Cause.LOAD_ACCESS) | (w.cause == Cause.STORE_ACCESS))),
            rvfi.valid.eq(retires),
            rvfi.insn.eq(Mux(failed_fetch, 0, w.instruction)),
            rvfi.trap.eq(traps),
            rvfi.intr.eq(handler),
            rvfi.mode.eq(_MACHINE_MODE),
            rvfi.ixl.eq(_RV32),
            rvfi.rs1_addr.eq(at_end.rs1),
            rvfi.rs2_addr.eq(at_end.rs2),
            rvfi.rs1_rdata.eq(at_end.rs1_value),
            rvfi.rs2_rdata.eq(at_end.rs2_value),
            rvfi.rd_addr.eq(self.trace_rd),
            rvfi.rd_wdata.eq(Mux(self.trace_rd.any(), self.trace_value, 0)),
            rvfi.pc_rdata.eq(w.pc),
            rvfi.pc_wdata.eq(Mux(w.traps, csr.trap_target, at_end.next_pc)),
        ]
        m.d.sync += rvfi.order.eq(rvfi.order + retires)
        with m.If(w.traps):
            m.d.sync += handler.eq(1)
        with m.Elif(retires):
            m.d.sync += handler.eq(0)
        self._tell_memory(m, w, memory, failed_fetch, failed_access)
        self._tell_csrs(m, w, at_end, traps)

    def _read_operands(self, m: Module, x) -> dict[str, Signal]:
        """Record the source register values of an instruction when it enters the execute stage."""
        decoder, registers = self._decoder, self._registers
        kept = {}
        for name, reads in (("rs1", decoder.reads_rs1), ("rs2", decoder.reads_rs2)):
            number, value = Signal(5, name=f"rvfi_{name}"), Signal(32, name=f"rvfi_{name}_value")
            with m.If(self._enter):
                m.d.sync += [
                    number.eq(Mux(reads, getattr(registers, name), 0)),
                    value.eq(Mux(reads, getattr(registers, f"value{name[-1]}"), 0)),
                ]
            kept |= {name: number, f"{name}_value": value}
        return kept

    def _watch_bus(self, m: Module, x) -> SimpleNamespace:
        """Record the requests of an instruction and their responses.

        Both words of an access are combined into eight bytes, starting at the first word's address.
        """
        bus = self.data
        second = Signal()  # the instruction in the execute stage has already requested its first word
        write, mask, asked, answered = Signal(), Signal(8), Signal(64), Signal(64)
        address = Signal(32)
        upper = Signal()  # the outstanding request is for a second word
        with m.If(bus.valid & bus.ready):
            m.d.sync += [upper.eq(second), second.eq(1), write.eq(bus.write)]
            with m.If(second):
                m.d.sync += [mask[4:].eq(bus.mask), asked[32:].eq(bus.data)]
            with m.Else():
                m.d.sync += [address.eq(bus.address), mask.eq(bus.mask), asked.eq(bus.data)]
        with m.If(x.leaves):
            m.d.sync += second.eq(0)
        with m.If(bus.response):
            m.d.sync += answered.eq(Mux(upper, Cat(answered[:32], bus.result), bus.result))
        now = Signal(64)
        m.d.comb += now.eq(Mux(upper, Cat(answered[:32], bus.result), bus.result))
        return SimpleNamespace(write=write, mask=mask, asked=asked, answered=now, address=address)

    def _tell_memory(self, m: Module, w, memory, failed_fetch, failed_access) -> None:
        """Report the memory access of the retiring instruction; byte 0 of the report is the lowest accessed byte."""
        rvfi = self.rvfi
        offset, size, place = Signal(2), Signal(4), Signal(32)
        accessed = w.ends & w.pending & ~w.traps
        is_store = w.cause == Cause.STORE_ACCESS
        for byte in reversed(range(4)):
            with m.If(memory.mask[byte]):
                m.d.comb += offset.eq(byte)
        with m.Switch(w.instruction[12:14]):
            for code, mask in enumerate((0b0001, 0b0011, 0b1111)):
                with m.Case(code):
                    m.d.comb += size.eq(mask)
        mask = (memory.mask >> offset)[:4]
        m.d.comb += [
            place.eq(memory.address + offset),
            rvfi.mem_addr.eq(Mux(accessed | failed_access, place, 0)),
            rvfi.mem_rmask.eq(Mux(accessed & ~memory.write, mask, 0)),
            rvfi.mem_wmask.eq(Mux(accessed & memory.write, mask, 0)),
            rvfi.mem_rdata.eq(memory.answered >> (offset << 3)),
            rvfi.mem_wdata.eq(memory.asked >> (offset << 3)),
            rvfi.mem_fault.eq(failed_fetch | failed_access),
            rvfi.mem_fault_rmask.eq(Mux(failed_access & ~is_store, size, 0)),
            rvfi.mem_fault_wmask.eq(Mux(failed_access & is_store, size, 0)),
        ]

    def _tell_csrs(self, m: Module, w, at_end, traps) -> None:
        """Report the CSRs that a CSR instruction or a trap reads and writes."""
        trapped = {"mcause": self.trace_cause, "mtval": w.value}
        for name, numbers in RVFI_CSRS.items():
            rmask, wmask, rdata, wdata = (
                getattr(self.rvfi, f"csr_{name}_{what}") for what in ("rmask", "wmask", "rdata", "wdata")
            )
            for place, number in enumerate(numbers):
                word = slice(32 * place, 32 * place + 32)
                here = at_end.csr_reads & (at_end.csr == number) & ~traps
                m.d.comb += [
                    rmask[word].eq(here.replicate(32)),
                    rdata[word].eq(at_end.csr_read),
                    wmask[word].eq((here & at_end.csr_writes).replicate(32)),
                    wdata[word].eq(at_end.csr_write),
                ]
            if name in trapped:
                with m.If(traps):
                    m.d.comb += [wmask.eq(-1), wdata.eq(trapped[name])]

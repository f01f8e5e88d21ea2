"""riscv-formal's checks (github.com/YosysHQ/riscv-formal), from a checkout, on the controller's processor.

Each check is bounded: for any answers of the memories since reset and any initial registers, the instruction that
retires in the last cycle is right. riscv-formal defines the checks and the instructions' semantics; this module selects
the checks and sets their depths.

Solvers cannot handle multiplication and division, so riscv-formal replaces them (RISCV_FORMAL_ALTOPS): the proofs cover
how the pipeline transports operands and results, but not the arithmetic. Source: "Alternative arithmetic operations" in
riscv-formal's description of its interface.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from amaranth import Module, Mux, Signal
from amaranth.back import rtlil

from neuroncore_rtl.hdl.controller.muldiv import Divider, Multiplier
from neuroncore_rtl.hdl.controller.rvfi import RVFI_CSRS, RvfiCpu, RvfiPort
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.spec.memory_map import LOCAL_BASE
from neuroncore_rtl.spec.riscv import BRANCHES, IMMEDIATE_OPERATIONS, LOADS, REGISTER_OPERATIONS, SHIFTS, STORES
from neuroncore_rtl.tb.proofs.solver import SolverVerdict, solve

__all__ = ["PROVED_INSTRUCTIONS", "Check", "checkout", "checks", "run_check"]

DEPTH = 10  # cycles from reset to the checked cycle. The first instruction retires in cycle 5 at the earliest.
PATIENCE = 1  # most cycles for which a bus refuses a request or delays an answer; such a bus is called fair
TRIGGER, SOON = 6, 24  # after a retirement in cycle TRIGGER, the next one follows within SOON cycles on fair buses
ACCESSES = (*LOADS, *STORES)
PROVED_INSTRUCTIONS = tuple(
    sorted({"lui", "auipc", "jal", "jalr", *BRANCHES, *IMMEDIATE_OPERATIONS, *SHIFTS, *REGISTER_OPERATIONS, *ACCESSES})
)

NO_CSRS = {"0x306": "rw", "0x180": "rw", "0x7c0": "rw", "0xc00": "w", "0xc02": "w", "0xf11": "w", "0xfff": "rw"}
"""CSRs, and the accesses that must trap in machine mode: absent registers ("rw") and writes of read-only ones ("w")."""

MUL, MULH, MULHSU, MULHU = 0x5876_063E, 0xF658_3FB7, 0xECFB_E137, 0x949C_E5E8
DIV, DIVU, REM, REMU = 0x7F85_29EC, 0x10E8_FD70, 0x8DA6_8FA5, 0x3138_D0E1  # lower 32 bits of the published masks

SCRIPT = """
read_rtlil cpu.il
read_verilog -sv -formal check.sv
prep -flatten -nordff -top rvfi_testbench
memory_map
setattr -unset init w:*cpu.registers.words* w:*cpu.registers.words?0]* %d
setundef -undriven -anyseq
"""
"""Yosys script; it removes the initial values of the registers x1 to x31, so that they may have any contents."""


class AlternativeMultiplier(Multiplier):
    """Replacement with the multiplier's ports and latency."""

    def elaborate(self, platform):
        m = Module()
        product = Signal(32)
        m.d.comb += product.eq((self.a + self.b) ^ Mux(self.a_signed, MULH, MULHU))
        with m.If(~self.high):
            m.d.comb += product.eq((self.a + self.b) ^ MUL)
        with m.Elif(self.a_signed & ~self.b_signed):
            m.d.comb += product.eq((self.a - self.b) ^ MULHSU)
        with m.If(self.enable):
            m.d.sync += self.out.eq(product)
        return m


class AlternativeDivider(Divider):
    """Replacement with the divider's ports and a shorter latency."""

    LATENCY = 2

    def elaborate(self, platform):
        m = Module()
        cycle = Signal(range(self.LATENCY + 1))
        a, b = Signal(32), Signal(32)
        mask = Mux(self.remainder, Mux(self.signed, REM, REMU), Mux(self.signed, DIV, DIVU))
        m.d.comb += [self.done.eq(cycle == self.LATENCY), self.out.eq((a - b) ^ mask)]
        with m.If(~self.valid | self.take):
            m.d.sync += cycle.eq(0)
        with m.Elif(~self.done):
            m.d.sync += [cycle.eq(cycle + 1), a.eq(self.a), b.eq(self.b)]
        return m


class AlternativeCpu(RvfiCpu):
    """The processor with both replacements."""

    _multiplier, _divider = AlternativeMultiplier, AlternativeDivider


@dataclass(frozen=True)
class Check:
    """One check: `module` is its file and module in the checkout, without rvfi_ and _check.

    The check observes from cycle `start` and asserts its property in cycle `depth`. `trigger` is the cycle of the event
    that the property follows, None without such an event. `defines` has macros in addition to those of all checks;
    `model` is an instruction with a file in the checkout.
    """

    name: str
    module: str
    start: int = 1
    depth: int = DEPTH
    trigger: int | None = None
    defines: dict[str, object] = field(default_factory=dict)
    model: str | None = None


def checks(depth: int = DEPTH) -> Iterator[Check]:
    """Yield all checks; memory below LOCAL_BASE, where misaligned accesses trap, is checked separately."""
    low, placed = {"RISCV_FORMAL_ALIGNED_MEM": ""}, {"RISCV_FORMAL_ASSUME": ""}
    for name in PROVED_INSTRUCTIONS:
        yield Check(f"insn_{name}", "insn", depth=depth, model=name, defines=placed if name in ACCESSES else {})
    for name in ACCESSES:
        yield Check(f"insn_{name}_aligned", "insn", depth=depth, model=name, defines=placed | low)
    for name in ("reg", "pc_fwd", "pc_bwd", "causal", "ill", "fault"):
        yield Check(name, name, depth=depth)
    yield Check("unique", "unique", trigger=TRIGGER, depth=depth)
    yield Check("liveness", "liveness", trigger=TRIGGER, depth=TRIGGER + SOON, defines={"RISCV_FORMAL_FAIRNESS": ""})
    yield Check("hang", "hang", depth=TRIGGER + SOON, defines={"RISCV_FORMAL_FAIRNESS": ""})
    bus = {"RISCV_FORMAL_BUS": "", "RISCV_FORMAL_NBUS": 2, "RISCV_FORMAL_BUSLEN": 32}
    for name in ("bus_imem", "bus_imem_fault"):
        yield Check(name, name, depth=depth, defines=bus)
    for name in ("bus_dmem", "bus_dmem_fault"):
        yield Check(name, name, depth=depth, defines=bus | low)
    yield from _csr_checks(depth)


def _csr_checks(depth: int) -> Iterator[Check]:
    for name in ("mscratch", "mcause", "mtval", "mcycle", "minstret"):
        wide = {"RISCV_FORMAL_CSRWH": ""} if len(RVFI_CSRS[name]) > 1 else {}
        yield Check(f"csrw_{name}", "csrw", depth=depth, defines={"RISCV_FORMAL_CSRW_NAME": name} | wide)
    for number, access in NO_CSRS.items():
        modes = {"RISCV_FORMAL_ILL_MMODE": "", **{f"RISCV_FORMAL_ILL_{_WORDS[a]}": "" for a in access}}
        address = {"RISCV_FORMAL_ILL_CSR_ADDR": f"12'h{number[2:]}"}
        yield Check(f"csr_ill_{number[2:]}", "csr_ill", depth=depth, defines=address | modes)
    for name, rule in (("mscratch", "any"), ("mhartid", "const")):
        constant = {"RISCV_FORMAL_CSRC_CONSTVAL": "rdata_shadow"} if rule == "const" else {}
        about = {"RISCV_FORMAL_CSRC_NAME": name}
        yield Check(f"csrc_{rule}_{name}", f"csrc_{rule}", depth=depth, defines=about | constant)
    for name in ("mcycle", "minstret"):
        about = {"RISCV_FORMAL_CSRC_NAME": name}
        yield Check(f"csrc_upcnt_{name}", "csrc_upcnt", depth=depth, defines=about)


_WORDS = {"r": "READ", "w": "WRITE"}


def checkout(path: str) -> Path:
    """Return the folder of a checkout of riscv-formal; UsageError if it is not one."""
    folder = Path(path).expanduser()
    if not (folder / "checks" / "rvfi_insn_check.sv").is_file():
        rule = "a checkout of riscv-formal, with the file checks/rvfi_insn_check.sv"
        raise UsageError(f"RISCV_FORMAL must be {rule}, not {path!r}")
    return folder


def run_check(check: Check, folder: Path, timeout: float) -> SolverVerdict:
    """Return whether the processor passes a check; vacuous checks raise as in `tb.proofs.solver.solve`."""
    files: dict[str, str | Path] = {file.name: file for file in (folder / "checks").glob("rvfi_*.*v*")}
    included = ["rvfi_channel.sv", "rvfi_testbench.sv", f"rvfi_{check.module}_check.sv"]
    if check.model:
        files[f"insn_{check.model}.v"] = folder / "insns" / f"insn_{check.model}.v"
        included.append(f"insn_{check.model}.v")
    macros = (f"`define {name} {value}".rstrip() for name, value in _macros(check).items())
    files |= {
        "cpu.il": processor(),
        "riscv.sv": Path(__file__).with_suffix(".sv"),
        "assume_stmts.vh": Path(__file__).with_name("riscv_place.vh"),
        "check.sv": "\n".join([*macros, *(f'`include "{name}"' for name in ("rvfi_macros.vh", *included, "riscv.sv"))]),
    }
    return solve(files, SCRIPT, check.depth + 1, first=check.depth, timeout=timeout)


@cache
def processor() -> str:
    return rtlil.convert(AlternativeCpu(), "controller_cpu", emit_src=False)


def _macros(check: Check) -> dict[str, object]:
    members = RvfiPort().members
    shifted = {name for name in members if name.startswith("mem_") and name != "mem_fault"}
    macros = {
        "RISCV_FORMAL": "",
        "RISCV_FORMAL_NRET": 1,
        "RISCV_FORMAL_XLEN": 32,
        "RISCV_FORMAL_ILEN": 32,
        "RISCV_FORMAL_CHANNEL_IDX": 0,
        "RISCV_FORMAL_MEM_FAULT": "",
        "RISCV_FORMAL_ALTOPS": "",
        "RISCV_FORMAL_RESET_CYCLES": check.start,
        "RISCV_FORMAL_CHECK_CYCLE": check.depth,
        "RISCV_FORMAL_CHECKER": f"rvfi_{check.module}_check",
        **{f"RISCV_FORMAL_CSR_{name.upper()}": "" for name in RVFI_CSRS},
        "LOCAL_BASE": f"32'd{LOCAL_BASE}",
        "PATIENCE": PATIENCE,
        "PORTS": ", ".join(f".rvfi__{name}(rvfi_{name})" for name in members if name not in shifted),
    }
    if check.trigger is not None:
        macros["RISCV_FORMAL_TRIG_CYCLE"] = check.trigger
    if check.model:
        macros["RISCV_FORMAL_INSN_MODEL"] = f"rvfi_insn_{check.model}"
    return macros | check.defines

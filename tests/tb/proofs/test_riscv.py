"""Integration of riscv-formal; `make formal UNIT=riscv` runs its checks."""

import os

import pytest

from neuroncore_rtl.hdl.controller import alu, cpu, rvfi
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.tb.proofs.riscv import PROVED_INSTRUCTIONS, Check, checkout, checks, processor, run_check
from tests.tb.proofs.mutants import change


def test_instructions_are_those_of_rv32im_and_checks_have_names_of_their_own():
    assert len(PROVED_INSTRUCTIONS) == 45
    assert {"mulhsu", "remu", "jalr", "sra", "lui"} <= set(PROVED_INSTRUCTIONS)
    names = [check.name for check in checks()]
    assert len(set(names)) == len(names) > 80


def test_machine_has_no_interface():
    """Only the processor for proofs has the ports of riscv-formal's interface."""
    assert set(rvfi.RvfiCpu.__annotations__) == {"rvfi"} and "rvfi" not in cpu.Cpu.__annotations__
    assert {"valid", "order", "insn", "trap", "pc_wdata", "mem_rmask"} <= set(rvfi.RvfiPort().members)


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(UsageError, match="RISCV_FORMAL must be a checkout of riscv-formal"):
        checkout(str(tmp_path))


CHECKOUT = os.environ.get("RISCV_FORMAL")


@pytest.mark.slow
@pytest.mark.skipif(not CHECKOUT, reason="RISCV_FORMAL names no checkout of riscv-formal")
@pytest.mark.parametrize("broken", [False, True])
def test_broken_instruction_is_found(broken, monkeypatch):
    if broken:
        change(monkeypatch, alu.ControllerAlu.elaborate, "AluOp.XOR: self.a ^ self.b", "AluOp.XOR: self.a | self.b")
    processor.cache_clear()
    (check,) = (check for check in checks() if check.name == "insn_xor")
    assert isinstance(check, Check) and run_check(check, checkout(CHECKOUT), timeout=1800).holds != broken
    processor.cache_clear()

import pytest

from neuroncore_rtl.hdl.controller.muldiv import Divider
from neuroncore_rtl.run.harness.riscv import CpuDevice
from tests.hdl.controller.programs import run

CYCLES = {
    "add x3, x4, x5": 1, "add x3, x4, x5\n add x6, x3, x3": 2, "lui x3, 5": 1, "beq x0, x30, end": 1, "fence": 1,
    "sw x3, 0(x30)": 1, "sw x3, 0(x30)\n lw x4, 0(x30)\n sb x3, 5(x30)": 3, "lw x3, 0(x30)": 1,
    "lw x3, 0(x30)\n lw x4, 0(x30)": 2, "lw x3, 0(x30)\n add x4, x5, x6": 2, "lw x3, 0(x30)\n add x4, x5, x3": 3,
    "lw x3, 0(x30)\n sw x3, 0(x30)": 3, "lw x3, 0(x30)\n nop\n add x4, x3, x3": 3, "lw x3, 0(x30)\n lui x4, 0x18": 2,
    "mul x3, x4, x5": 1, "mul x3, x4, x5\n mul x6, x4, x5": 2, "mul x3, x4, x5\n mul x6, x3, x5": 3,
    "beq x0, x0, after": 2, "jal x3, after": 2, "jalr x3, 0(x29)": 2, "fence.i": 2, "mret": 2, "lw x3, 1(x30)": 3,
    "lh x3, 1(x30)": 1, "sh x3, 3(x30)": 3, "div x3, x4, x5": 1 + Divider.LATENCY,
    "remu x3, x4, x5\n addi x3, x3, 1\n divu x3, x4, x5": 2 * (1 + Divider.LATENCY) + 1, "csrrs x3, mscratch, x0": 3,
    "csrrs x3, mscratch, x0\n csrrw x0, mscratch, x3": 5, "wfi": 2, "ecall": 3,
}  # fmt: skip

REDIRECTED = {"beq x0, x0, after", "jal x3, after", "jalr x3, 0(x29)", "fence.i", "mret", "ecall"}
"""Instruction sequences (bodies) after which the words that follow are fetched again."""


@pytest.mark.parametrize("fetch_latency", [0, 1])
def test_cycles(fetch_latency):
    """Each body is between two NOPs; a jump leads to the second one, and a WFI finds an interrupt."""
    text = "li x1, TIMER_COMPARE; sw x0, 4(x1); sw x0, 0(x1); li x2, 0x80; csrrw x0, mie, x2"
    text += "; li x30, LOCAL_BASE + 0x1000"
    for number, body in enumerate(CYCLES):
        text += f"""
        la x29, after{number}; csrrw x0, mepc, x29; csrrw x0, mtvec, x29; nop; nop
before{number}: nop
        {body.replace("after", f"after{number}")}
after{number}: nop
        """
    result = run(text, device=CpuDevice(fetch_latency=fetch_latency))
    times = {entry.pc: entry.time for entry in result.trace}
    for number, (body, cycles) in enumerate(CYCLES.items()):
        before, after = (times[result.labels[f"{name}{number}"]] for name in ("before", "after"))
        assert after - before - 1 == cycles + fetch_latency * (body in REDIRECTED), body


def test_stalled_fetches_and_branches_keep_their_order():
    loop = "li x3, 50; again: addi x4, x4, 3; addi x3, x3, -1; xor x5, x5, x4; bnez x3, again; mul x6, x4, x5"
    late, direct = (run(loop, device=CpuDevice(fetch_latency=latency), stall=128) for latency in (1, 0))
    assert all(late.written(register) == direct.written(register) for register in range(1, 32))
    assert direct.written(4)[-1] == 150

"""The stall table of the Cpu, and that stalls of the buses change nothing else."""

from itertools import product

import pytest

from neuroncore_rtl.hdl.controller.cpu import Cpu
from neuroncore_rtl.hdl.controller.muldiv import Divider
from neuroncore_rtl.spec.memory_map import LOCAL_BASE
from tests.hdl.controller.machine import DEVICE, LINES, run

CYCLES = {
    "add x3, x4, x5": 1,
    "add x3, x4, x5\n add x6, x3, x3": 2,
    "lui x3, 5": 1,
    "beq x0, x30, end": 1,
    "fence": 1,
    "sw x3, 0(x30)": 1,
    "sw x3, 0(x30)\n lw x4, 0(x30)\n sb x3, 5(x30)": 3,
    "lw x3, 0(x30)": 1,
    "lw x3, 0(x30)\n lw x4, 0(x30)": 2,
    "lw x3, 0(x30)\n add x4, x5, x6": 2,
    "lw x3, 0(x30)\n add x4, x5, x3": 3,
    "lw x3, 0(x30)\n sw x3, 0(x30)": 3,
    "lw x3, 0(x30)\n nop\n add x4, x3, x3": 3,
    "lw x3, 0(x30)\n lui x4, 0x18": 2,
    "mul x3, x4, x5": 1,
    "mul x3, x4, x5\n mul x6, x4, x5": 2,
    "mul x3, x4, x5\n mul x6, x3, x5": 3,
    "beq x0, x0, 8": 2,
    "jal x3, 8": 2,
    "jalr x3, 0(x29)": 2,
    "fence.i": 2,
    "mret": 2,
    "lw x3, 1(x30)": 3,
    "lh x3, 1(x30)": 1,
    "sh x3, 3(x30)": 3,
    "div x3, x4, x5": 1 + Divider.LATENCY,
    "remu x3, x4, x5\n addi x3, x3, 1\n divu x3, x4, x5": 2 * (1 + Divider.LATENCY) + 1,
    "csrrs x3, mscratch, x0": 3,
    "csrrs x3, mscratch, x0\n csrrw x0, mscratch, x3": 5,
    "wfi": 2,
    "ecall": 3,
}


@pytest.mark.parametrize("body, cycles", CYCLES.items())
def test_cycles(body, cycles):
    """Between two NOPs. What jumps, jumps there in any case: to the second one."""
    count = body.count("\n") + 1
    after = LOCAL_BASE + 4 * (16 + count)
    body = body.replace(", 8", f", {after}")
    result = run(
        f"""
        li x30, {LOCAL_BASE + 0x1000}; li x29, {after}
        li x1, {LINES}; li x2, 1; sw x2, 0(x1)
        li x2, 0x80; csrrw x0, mie, x2; csrrw x0, mepc, x29; csrrw x0, mtvec, x29
        nop; nop
        {body}
        nop
        """
    )
    place = next(place for place, entry in enumerate(result.trace) if entry.pc == after)
    assert result.cycles[place] - result.cycles[place - count - 1] - 1 == cycles


def test_straight_line_runs_at_a_word_per_cycle():
    result = run("nop;" * 40)
    assert result.cycles == list(range(result.cycles[0], result.cycles[0] + len(result.cycles)))


MIXTURE = f"""
        li x30, {DEVICE}; li x29, {LOCAL_BASE + 0x1000}
        li x5, 1; li x6, 0x89ABCDEF
loop:   sw x6, 1(x29); lb x7, 4(x29); lhu x8, 3(x29); lw x9, 2(x29)
        sw x9, 0(x30); lw x10, 0(x30); sb x10, 3(x30); lh x11, 2(x30)
        mulh x12, x10, x6; div x13, x12, x5; rem x14, x6, x13; add x6, x6, x14
        jal x15, over; addi x6, x6, 1
over:   lw x16, 2(x30)       # misaligned: trap
        csrrw x17, mscratch, x6; auipc x18, 1
        lw x19, 0x400(x30)   # nothing there: trap
        bltu x17, x6, next; xor x6, x6, x18
next:   addi x5, x5, -1; bge x5, x0, loop
        csrrs x20, minstret, x0
        jal x0, end
handler: csrrs x21, mepc, x0; csrrs x22, mcause, x0
        addi x21, x21, 4; csrrw x0, mepc, x21; mret
"""


def test_stalls_change_nothing_but_time():
    plain = run(MIXTURE)
    assert len(plain.traps) == 4
    for seed, stall in product(range(3), (0.2, 0.7)):
        stalled = run(MIXTURE, stall=stall, seed=seed)
        assert stalled.trace == plain.trace and stalled.memory == plain.memory
        assert stalled.cycles[-1] > plain.cycles[-1]


def test_a_processor_that_forgets_to_wait_is_noticed(monkeypatch):
    """A write-back stage that takes any cycle for the response goes wrong when it is late."""
    original = Cpu._write_back

    def hasty(self, m, w, *units):
        original(self, m, w, *units)
        m.d.comb += w.waits.eq(0)

    expected = run(MIXTURE).trace
    monkeypatch.setattr(Cpu, "_write_back", hasty)
    with pytest.raises(AssertionError):
        assert run(MIXTURE, stall=0.5).trace == expected

"""Timer and external interrupt: when they are taken, where they lead, and what WFI makes of them."""

import pytest

from neuroncore_rtl.spec.memory_map import LOCAL_BASE
from tests.hdl.controller.machine import LINES, run

TIMER, EXTERNAL, ECALL = 0x8000_0007, 0x8000_000B, 11
TIMER_LINE, EXTERNAL_LINE = 1, 2

SETUP = f"li x30, {LINES}"


def test_interrupt_waits_for_its_enables():
    """mip shows it at once; mie and then mstatus let it through, between two instructions."""
    result = run(
        f"""
        {SETUP}
        li x2, {TIMER_LINE}; sw x2, 0(x30)
        nop; nop; csrrs x3, mip, x0
        li x4, 0x80; csrrsi x0, mstatus, 8; csrrs x5, mie, x4
        addi x6, x0, 1
handler: csrrs x20, mcause, x0; csrrs x21, mepc, x0; csrrs x22, mtval, x0; csrrs x23, mstatus, x0
        """
    )
    assert (result.registers[3], result.registers[6]) == (0x80, 0)
    assert result.registers[20:24] == [TIMER, LOCAL_BASE + 4 * 15, 0, 0x1880]
    assert result.traps == [(4 * 15, TIMER)]


@pytest.mark.parametrize("event, cause", [(1, TIMER), (2, EXTERNAL), (3, EXTERNAL), (0, ECALL)])
@pytest.mark.parametrize("vectored", [False, True])
def test_external_goes_first_and_vectors_lead_apart(event, cause, vectored):
    """In vectored mode an interrupt leads further into the handler; an exception never does."""
    slots = 12
    result = run(
        f"""
        {SETUP}
        csrrsi x0, mtvec, {int(vectored)}
        li x2, 0x880; csrrw x0, mie, x2
        li x2, {event}; sw x2, 0(x30)
        csrrsi x0, mstatus, 8; nop; ecall
handler: {"addi x20, x20, 1; " * slots}
        """
    )
    assert result.traps[0][1] == cause
    assert result.registers[20] == (slots - (cause & 15) if vectored and cause != ECALL else slots)


@pytest.mark.parametrize("stall", [0, 0.5])
def test_nothing_is_lost_or_done_twice(stall):
    """Interrupts fall anywhere into a loop of everything; its results are those that it has without."""
    loop = f"""
        li x5, 12; li x6, 0; li x7, {LOCAL_BASE + 0x1001}; li x9, 1
loop:   add x6, x6, x5; sw x6, 0(x7); lw x8, 0(x7)
        mul x9, x9, x8; addi x9, x9, 3; divu x10, x9, x5; add x6, x6, x10
        csrrw x11, mscratch, x6; add x6, x6, x11
        addi x5, x5, -1; bne x5, x0, loop
        jal x0, end
handler: addi x20, x20, 1
        li x21, {61 << 8 | EXTERNAL_LINE}; sw x0, 0(x30); sw x21, 0(x30)
        mret
    """
    enable = f"li x2, 0x880; csrrw x0, mie, x2; li x2, {53 << 8 | TIMER_LINE}; sw x2, 0(x30); csrrsi x0, mstatus, 8"
    plain = run(f"{SETUP}; {loop}", stall=stall, seed=6)
    result = run(f"{SETUP}; {enable}; {loop}", stall=stall, seed=7)
    assert result.registers[20] == len(result.traps) > 5
    assert result.registers[5:12] == plain.registers[5:12]
    assert plain.registers[20] == 0


@pytest.mark.parametrize("enable", [0, 8])
def test_wfi_waits_for_an_enabled_interrupt(enable):
    """Whatever mstatus says; there, the interrupt is taken behind the WFI, or not at all."""
    delay = 60
    result = run(
        f"""
        {SETUP}
        li x2, 0x800; csrrw x0, mie, x2; csrrsi x0, mstatus, {enable}
        li x2, {TIMER_LINE}; sw x2, 0(x30)  # not enabled
        li x2, {delay << 8 | EXTERNAL_LINE | TIMER_LINE}; sw x2, 0(x30)
        wfi
        addi x6, x0, 1; jal x0, end
handler: csrrs x20, mcause, x0; csrrs x21, mepc, x0
        """
    )
    wfi = LOCAL_BASE + 4 * 15
    assert result.waited == delay
    assert [entry.trap for entry in result.trace if entry.pc == wfi] == [False]
    assert result.registers[6] == (not enable)
    assert result.registers[20:22] == ([EXTERNAL, wfi + 4] if enable else [0, 0])


def test_line_that_falls_again_is_no_interrupt_later():
    result = run(
        f"""
        {SETUP}
        li x2, 0x880; csrrw x0, mie, x2
        li x2, {EXTERNAL_LINE}; sw x2, 0(x30); sw x0, 0(x30); nop
        csrrsi x0, mstatus, 8; nop; nop
handler:
        """
    )
    assert not result.traps

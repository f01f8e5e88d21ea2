"""Jumps, traps, returns and interrupts to places that differ in one bit, in memory and far from it."""

import pytest

from neuroncore_rtl.spec.memory_map import LOCAL_BASE
from tests.hdl.controller.programs import run

MASK = (1 << 32) - 4

FAR = [place & MASK for bit in range(20, 32) for place in (LOCAL_BASE ^ 1 << bit, ~(LOCAL_BASE ^ 1 << bit))]
"""Where nothing can be fetched."""

NEAR = [LOCAL_BASE + (0x80000 ^ 1 << bit) for bit in range(6, 19)] + [
    LOCAL_BASE + 0xFFF00 - (1 << bit) for bit in (7, 10, 15)
]
"""Where there is code: two instructions that do nothing, and a jump to x27."""

CODE = (0x0000_0013, 0x0000_0013, 0x000D_8067)

VECTORS = {0: 0, 7: 28, 11: 44}
"""By the cause of an interrupt, how far behind mtvec's base it leads; 0 stands for an exception."""


@pytest.mark.parametrize("stall", [0, 128])
def test_what_cannot_be_fetched_traps_there(stall):
    """By a jump and by a return from a trap; the handler goes on behind."""
    text = ""
    for number, place in enumerate(FAR):
        for way in ("jalr x0, 0(x28)", "csrrw x0, mepc, x28; mret"):
            label = f"back{number}{way[0]}"
            text += f"la x29, {label}; li x28, {place}; {way}\n{label}:\n"
    text += """
        j end
handler: csrrs x20, mepc, x0; csrrs x21, mtval, x0; csrrw x0, mepc, x29; mret
    """
    result = run(text, stall=stall)
    expected = [place for place in FAR for _ in range(2)]
    assert result.traps == [(place, 1) for place in expected]
    for register in (20, 21):
        assert [entry.value for entry in result.trace if entry.rd == register] == expected


@pytest.mark.parametrize("stall", [0, 128])
def test_code_and_handlers_at_places_that_differ_in_a_bit(stall):
    """A jump, an exception and both interrupts lead to each; with both interrupts the external one is first. Of
    vectors an exception knows nothing."""
    text = "li x5, TIMER_COMPARE; li x6, -1; li x7, INTERRUPT_PENDING; li x8, 1; li x2, 0x880; csrrw x0, mie, x2\n"
    text += "".join(f"li x{10 + n}, {word}\n" for n, word in enumerate(CODE))
    for number, place in enumerate(NEAR):
        text += f"li x28, {place}\n"
        for offset in VECTORS.values():
            text += "".join(f"sw x{10 + n}, {offset + 4 * n}(x28)\n" for n in range(len(CODE)))
        text += f"""
        fence.i; csrrw x0, mtvec, x28
        la x27, jumped{number}; jalr x0, 0(x28)
jumped{number}: la x27, caught{number}; ecall
caught{number}: csrrsi x28, mtvec, 1; la x27, vectored{number}; ecall
vectored{number}: la x27, first{number}
        sw x8, 0(x7); sw x0, 4(x5); sw x0, 0(x5); csrrsi x0, mstatus, 8; nop; nop
first{number}: csrrs x20, mcause, x0; sw x0, 0(x7); la x27, second{number}
        csrrsi x0, mstatus, 8; nop; nop
second{number}: csrrs x20, mcause, x0; sw x6, 4(x5)
        """
    result = run(text, stall=stall)
    interrupt = 1 << 31
    assert [entry.value for entry in result.trace if entry.rd == 20] == [interrupt | 11, interrupt | 7] * len(NEAR)
    ran = [entry.pc for entry in result.trace]
    for place in NEAR:
        times = {0: 3, 28: 1, 44: 1}
        assert all(ran.count(place + offset + 4 * n) == times[offset] for offset in times for n in range(len(CODE)))

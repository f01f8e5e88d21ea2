from collections import Counter
from itertools import product

import pytest

from neuroncore_rtl.spec.memory_map import LOCAL_BASE
from tests.hdl.controller.programs import run

MASK = (1 << 32) - 4
FAR = [address & MASK for bit in range(20, 32) for address in (LOCAL_BASE ^ 1 << bit, ~(LOCAL_BASE ^ 1 << bit))]
NEAR = [LOCAL_BASE + (0x80000 ^ 1 << bit) for bit in range(6, 19)]
NEAR += [LOCAL_BASE + 0xFFF00 - (1 << bit) for bit in (7, 10, 15)]
"""Addresses of code: two NOPs and a jump to x27."""

CODE = (0x0000_0013, 0x0000_0013, 0x000D_8067)

VECTORS = {0: 0, 7: 28, 11: 44}
"""Offset from the base of mtvec by the cause of an interrupt; 0 stands for an exception."""


@pytest.mark.parametrize("stall", [0, 128])
def test_a_fetch_without_memory_traps_at_its_address(stall):
    text = ""
    for number, (address, way) in enumerate(product(FAR, ("jalr x0, 0(x28)", "csrrw x0, mepc, x28; mret"))):
        text += f"la x29, back{number}; li x28, {address}; {way}\nback{number}:\n"
    text += """
        j end
handler: csrrs x20, mepc, x0; csrrs x21, mtval, x0; csrrw x0, mepc, x29; mret
    """
    result = run(text, stall=stall)
    expected = [address for address in FAR for _ in range(2)]
    assert result.traps == [(address, 1) for address in expected]
    assert result.written(20) == result.written(21) == expected


@pytest.mark.parametrize("stall", [0, 128])
def test_code_and_handlers_at_addresses_that_differ_in_a_bit(stall):
    text = "li x5, TIMER_COMPARE; li x6, -1; li x7, INTERRUPT_PENDING; li x8, 1; li x2, 0x880; csrrw x0, mie, x2\n"
    text += "".join(f"li x{10 + n}, {word}\n" for n, word in enumerate(CODE))
    for number, address in enumerate(NEAR):
        text += f"li x28, {address}\n"
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
    assert result.written(20) == [1 << 31 | 11, 1 << 31 | 7] * len(NEAR)
    ran = Counter(entry.pc for entry in result.trace)
    for address, (offset, times), n in product(NEAR, {0: 3, 28: 1, 44: 1}.items(), range(len(CODE))):
        assert ran[address + offset + 4 * n] == times

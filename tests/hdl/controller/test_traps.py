import pytest

from neuroncore_rtl.spec.memory_map import LOCAL_BASE, TIMER_COMPARE
from tests.hdl.controller.programs import TOP, run

EXCEPTIONS = {
    "csrrs x6, 0x7C0, x0": (2, 0x7C002373),
    "csrrwi x0, 0xC00, 0": (2, 0xC0005073),
    "csrrsi x6, mhartid, 1": (2, 0xF140E373),
    "lhu x6, 3(x5)": (4, TIMER_COMPARE + 3),
    "lw x6, -2(x8)": (4, LOCAL_BASE - 2),
    "lw x6, 1(x7)": (5, TOP + 1),
    "lw x6, -2(x7)": (5, TOP),
    "lh x6, -1(x7)": (5, TOP),
    "sw x5, 2(x7)": (7, TOP + 2),
}
"""mcause and mtval by instruction; x5 is TIMER_COMPARE, x7 the end of the memory, and x8 its start."""


@pytest.mark.parametrize("stall", [0, 128])
def test_exceptions(stall):
    bodies = "\n".join(f"place{number}: {body}" for number, body in enumerate(EXCEPTIONS))
    result = run(
        f"""
        li x5, TIMER_COMPARE; li x7, {TOP}; li x8, LOCAL_BASE
        {bodies}
        j end
handler: csrrs x20, mcause, x0; csrrs x21, mtval, x0; csrrs x22, mstatus, x0
        csrrs x23, mepc, x0; addi x23, x23, 4; csrrw x0, mepc, x23; mret
        """,
        stall=stall,
    )
    causes, values, states = (result.written(rd) for rd in (20, 21, 22))
    assert dict(zip(EXCEPTIONS, zip(causes, values, strict=True), strict=True)) == EXCEPTIONS
    assert result.traps == [(result.labels[f"place{number}"], cause) for number, cause in enumerate(causes)]
    assert set(states) == {0x1800} and not result.written(6)


def test_line_that_falls_again_is_no_interrupt_later():
    result = run(
        """
        li x5, TIMER_COMPARE; li x6, -1; li x7, INTERRUPT_PENDING; li x8, 1
        li x2, 0x880; csrrw x0, mie, x2
        sw x8, 0(x7); sw x0, 4(x5); sw x0, 0(x5); nop; csrrs x20, mip, x0
        sw x0, 0(x7); sw x6, 4(x5); nop; csrrs x21, mip, x0
        csrrsi x0, mstatus, 8; nop; nop
        j end
handler: addi x22, x0, 1
        """
    )
    assert (result.written(20), result.written(21), result.traps) == ([0x880], [0], [])

"""Every exception: what its registers say, and that nothing behind it takes effect."""

import pytest

from neuroncore_rtl.spec.memory_map import LOCAL_BASE, LOCAL_BYTES
from tests.hdl.controller.assembler import assemble
from tests.hdl.controller.machine import DEVICE, run

START = LOCAL_BASE + 4 * 5
"""Where the body of a test begins."""
TOP = LOCAL_BASE + LOCAL_BYTES
HOLE = 0x5000_0000
"""Where nothing is."""


def trapped(body: str, stall: float = 0.0):
    """Run instructions the last of which traps."""
    result = run(
        f"""
        li x30, {DEVICE}
        {body}
        li x29, 1; sw x30, 0(x30); csrrw x0, mscratch, x30; mul x28, x30, x30
        jal x0, end
handler: csrrs x20, mcause, x0; csrrs x21, mepc, x0; csrrs x22, mtval, x0; csrrs x23, mstatus, x0
        csrrs x24, mscratch, x0; csrrs x25, minstret, x0; addi x26, x6, 0
        """,
        stall=stall,
        seed=5,
    )
    # Nothing of what is behind, neither in registers nor in memory.
    assert result.registers[24] == result.registers[28] == result.registers[29] == 0
    assert DEVICE not in result.memory
    (place,) = (place for place, entry in enumerate(result.trace) if entry.trap)
    # The five before this one, and those before the trap; which has not retired.
    assert result.registers[25] == place + 5
    return result


@pytest.mark.parametrize(
    "body, cause, offset, value",
    [
        ("li x5, 0x80000102\n jalr x6, 1(x5)", 0, 8, 0x80000102),
        (".word 0x0020036F # jal x6, 2 further", 0, 0, START + 2),
        (".word 0x00000163 # beq x0, x0, 2 further", 0, 0, START + 2),
        (".word 0", 2, 0, 0),
        (".word 0xFFFFFFFF", 2, 0, 0xFFFFFFFF),
        ("csrrs x6, 0x7C0, x0", 2, 0, 0x7C002373),
        ("csrrw x6, 0xF14, x0", 2, 0, 0xF1401373),
        ("csrrwi x0, cycle, 0", 2, 0, 0xC0005073),
        ("csrrsi x6, mhartid, 1", 2, 0, 0xF140E373),
        ("ebreak", 3, 0, START),
        ("ecall", 11, 0, 0),
        (f"li x5, {DEVICE + 1}\n lh x6, 0(x5)", 4, 8, DEVICE + 1),
        (f"li x5, {DEVICE + 2}\n lw x6, 0(x5)", 4, 8, DEVICE + 2),
        (f"li x5, {DEVICE + 3}\n lhu x6, 0(x5)", 4, 8, DEVICE + 3),
        (f"li x5, {LOCAL_BASE - 2}\n lw x6, 0(x5)", 4, 8, LOCAL_BASE - 2),
        (f"li x5, {HOLE}\n lw x6, 8(x5)", 5, 8, HOLE + 8),
        (f"li x5, {HOLE}\n lbu x6, 3(x5)", 5, 8, HOLE + 3),
        (f"li x5, {TOP}\n lw x6, 1(x5)", 5, 8, TOP + 1),
        (f"li x5, {TOP}\n lw x6, -2(x5)", 5, 8, TOP),
        (f"li x5, {TOP}\n lh x6, -1(x5)", 5, 8, TOP),
        (f"li x5, {DEVICE + 1}\n sh x5, 0(x5)", 6, 8, DEVICE + 1),
        (f"li x5, {DEVICE + 1}\n sw x5, 0(x5)", 6, 8, DEVICE + 1),
        (f"li x5, {HOLE}\n sb x5, 3(x5)", 7, 8, HOLE + 3),
        (f"li x5, {TOP}\n sw x5, 2(x5)", 7, 8, TOP + 2),
        (f"li x5, {TOP}\n sw x5, -3(x5)", 7, 8, TOP),
    ],
)
@pytest.mark.parametrize("stall", [0, 0.5])
def test_exception(body, cause, offset, value, stall):
    result = trapped(body, stall)
    (entry,) = (entry for entry in result.trace if entry.trap)
    assert (entry.pc, entry.cause, entry.rd) == (START + offset, cause, 0)
    assert entry.instruction == assemble(body, START)[-1]
    assert result.registers[20:24] == [cause, START + offset, value, 0x1800]
    assert result.registers[26] == 0


@pytest.mark.parametrize("target", [HOLE, TOP, 0, 0xFFFFFFFC])
def test_fetch_from_where_no_memory_is(target):
    result = trapped(f"li x5, {target}\n jalr x6, 0(x5)")
    assert result.registers[20:24] == [1, target, target, 0x1800]
    assert result.registers[26] == START + 12


def test_store_of_two_parts_has_written_the_first():
    result = trapped(f"li x5, {TOP}\n li x7, 0x44332211\n sw x7, -1(x5)")
    assert result.memory[TOP - 4] == 0x11000000
    assert result.registers[20:23] == [7, START + 16, TOP]


def test_return_continues_and_restores_the_interrupt_enable():
    result = run(
        """
        csrrsi x0, mstatus, 8; ecall
        csrrs x12, mstatus, x0; jal x0, end
handler: csrrs x10, mstatus, x0
        csrrs x11, mepc, x0; addi x11, x11, 4; csrrw x0, mepc, x11; mret
        """
    )
    assert (result.registers[10], result.registers[12]) == (0x1880, 0x1888)


def test_program_changes_itself():
    """FENCE.I makes a store visible to instructions that were fetched before."""
    result = run(
        """
        li x1, changed
        li x2, 0x00100293; sw x2, 0(x1); fence.i  # addi x5, x0, 1
changed: addi x5, x0, 0
        """
    )
    assert result.registers[5] == 1

"""Registers of machine mode, as programs see them."""

import pytest

from tests.hdl.controller.machine import run

ONES = 0xFFFF_FFFF
EVERYTHING = ("mstatus", "misa", "mie", "mtvec", "mstatush", "mcountinhibit", "mhpmevent3", "0x33F", "mscratch", "mepc",
              "mcause", "mtval", "mip", "mhpmcounter3", "0xB1F", "0xB83", "0xB9F")  # fmt: skip
WRITABLE = {"mstatus": 0x88, "mie": 0x880, "mtvec": ONES - 2, "mcountinhibit": 5, "mscratch": ONES, "mepc": ONES - 3,
            "mcause": ONES, "mtval": ONES}  # fmt: skip
CONSTANT = {"mstatus": 0x1800, "misa": 0x4000_1100}


def values(body: str) -> list[int]:
    """Run instructions; return what those wrote that have a destination, x1 aside."""
    result = run(body)
    assert not result.traps
    return [entry.value for entry in result.trace if 1 < entry.rd < 31]


@pytest.mark.parametrize("csr", EVERYTHING)
def test_reset_write_set_and_clear(csr):
    writable, constant = WRITABLE.get(csr, 0), CONSTANT.get(csr, 0)
    pattern = 0xA5A5_5AA7
    reads = values(
        f"""
        li x1, -1; csrrw x2, {csr}, x1; csrrw x3, {csr}, x0
        li x1, {pattern}; csrrs x4, {csr}, x1; csrrs x5, {csr}, x0
        csrrwi x6, {csr}, 31; csrrc x7, {csr}, x1; csrrci x8, {csr}, 8; csrrsi x9, {csr}, 6
        csrrw x10, {csr}, x1; csrrw x0, {csr}, x0
        """
    )
    written = [0, ONES, 0, pattern, pattern, 31, 31 & ~pattern, 31 & ~pattern & ~8, 31 & ~pattern & ~8 | 6]
    assert reads == [value & writable | constant for value in written]


@pytest.mark.parametrize("csr", ["mvendorid", "marchid", "mimpid", "mhartid"])
def test_identity(csr):
    assert values(f"csrrs x2, {csr}, x0\n csrrci x3, {csr}, 0") == [0, 0]


def test_destination_x0_of_a_csr_write():
    assert values("csrrwi x0, mscratch, 5\n csrrw x2, mscratch, x0\n addi x3, x0, 0") == [5, 0]


def test_instructions_are_counted_and_the_count_can_be_set():
    reads = values(
        """
        nop; csrrs x2, minstret, x0; csrrs x3, instret, x0
        li x1, -2; csrrw x0, minstret, x1   # does not count itself
        csrrs x4, minstret, x0; nop; csrrs x5, minstret, x0; csrrs x6, minstreth, x0
        csrrwi x0, minstreth, 7; csrrs x7, instret, x0; csrrs x8, instreth, x0
        """
    )
    assert reads == [1, 2, ONES - 1, 0, 1, 2, 7]


def test_cycles_and_time():
    """CSR instructions follow each other in two cycles."""
    reads = values(
        """
        csrrs x2, mcycle, x0; csrrs x3, cycle, x0
        csrrs x4, time, x0; csrrs x5, time, x0; csrrs x6, timeh, x0
        csrrwi x0, mcycleh, 9; csrrwi x0, mcycle, 0; csrrs x7, cycle, x0; csrrs x8, cycleh, x0
        """
    )
    assert reads[1] - reads[0] == reads[3] - reads[2] == 2
    assert reads[4:] == [5, 1, 9]

from itertools import chain, islice, pairwise, product

import pytest

from neuroncore_rtl.hdl.controller.csr import Cause
from neuroncore_rtl.spec.riscv import Csr
from tests.hdl.controller.programs import run

SEED = 1986
ONES = 0xFFFF_FFFF
EVERYTHING = ("mstatus", "misa", "mie", "mtvec", "mstatush", "mcountinhibit", "mhpmevent3", "0x33F", "mscratch", "mepc",
              "mcause", "mtval", "mip", "mhpmcounter3", "0xB1F", "0xB83", "0xB9F")  # fmt: skip
WRITABLE = {"mstatus": 0x88, "mie": 0x880, "mtvec": ONES - 2, "mcountinhibit": 5, "mscratch": ONES, "mepc": ONES - 3,
            "mcause": ONES, "mtval": ONES}  # fmt: skip
CONSTANT = {"mstatus": 0x1800, "misa": 0x4000_1100}


def values(body: str) -> list[int]:
    result = run(body)
    assert not result.traps
    return [entry.value for entry in result.trace if 1 < entry.rd < 31]


def test_reset_write_set_and_clear():
    pattern = 0xA5A5_5AA7
    text = f"""
        li x1, -1; csrrw x2, CSR, x1; csrrw x2, CSR, x0
        li x1, {pattern}; csrrs x2, CSR, x1; csrrs x2, CSR, x0
        csrrwi x2, CSR, 31; csrrc x2, CSR, x1; csrrci x2, CSR, 8; csrrsi x2, CSR, 6
        csrrw x2, CSR, x1; csrrw x0, CSR, x0
    """
    reads = iter(values("".join(text.replace("CSR", csr) for csr in EVERYTHING)))
    written = [0, ONES, 0, pattern, pattern, 31, 31 & ~pattern, 31 & ~pattern & ~8, 31 & ~pattern & ~8 | 6]
    for csr in EVERYTHING:
        writable, constant = WRITABLE.get(csr, 0), CONSTANT.get(csr, 0)
        assert list(islice(reads, len(written))) == [value & writable | constant for value in written], csr
    assert next(reads, None) is None


IDENTITY = ("mvendorid", "marchid", "mimpid", "mhartid")
TIMES = [0, ONES, *(1 << bit for bit in range(32))]
EVENTS = [base + event for base in (Csr.MHPMEVENT3, Csr.MHPMCOUNTER3, Csr.MHPMCOUNTER3 + 0x80) for event in range(29)]

READS = {
    "identity": ("\n".join(f"csrrs x2, {csr}, x0; csrrci x3, {csr}, 0" for csr in IDENTITY), [0] * 8),
    "destination x0 of a write": ("csrrwi x0, mscratch, 5\n csrrw x2, mscratch, x0\n addi x3, x0, 0", [5, 0]),
    "no event is counted": (
        "".join(f"csrrwi x0, {number}, 31; csrrs x2, {number}, x0\n" for number in EVENTS),
        [0] * 87,
    ),
    "the upper half of the time is 0 unless it is set": (
        "li x31, TIMER_NOW; csrrs x2, timeh, x0\n"
        + "".join(f"li x1, {word}; sw x1, 4(x31); csrrs x2, timeh, x0\n" for word in TIMES),
        [0, *TIMES],
    ),
    "instructions are counted except the one that writes the count": (
        """
        nop; csrrs x2, minstret, x0; csrrs x3, instret, x0
        li x1, -2; csrrw x0, minstret, x1
        csrrs x4, minstret, x0; nop; csrrs x5, minstret, x0; csrrs x6, minstreth, x0
        csrrwi x0, minstreth, 7; csrrs x7, instret, x0; csrrs x8, instreth, x0
        """,
        [1, 2, ONES - 1, 0, 1, 2, 7],
    ),
}
"""Programs, and the values that they read."""


@pytest.mark.parametrize(("body", "reads"), READS.values(), ids=READS)
def test_values_read(body, reads):
    assert values(body) == reads


def test_cycles_and_time_count_two_per_csr_instruction():
    reads = values(
        """
        csrrs x2, mcycle, x0; csrrs x3, cycle, x0
        csrrs x4, time, x0; csrrs x5, time, x0
        csrrwi x0, mcycleh, 9; csrrwi x0, mcycle, 0; csrrs x7, cycle, x0; csrrs x8, cycleh, x0
        """
    )
    assert reads[1] - reads[0] == reads[3] - reads[2] == 2
    assert reads[4:] == [1, 9]


def test_set_and_clear_with_all_pairs_of_bits(rng):
    pairs = list(pairwise(rng.integers(1 << 32, size=32).tolist()))
    text = "".join(
        f"li x1, {old}; csrrw x0, mscratch, x1; li x1, {new}; csrr{way} x2, mscratch, x1; csrrs x2, mscratch, x0\n"
        for way, (old, new) in product("sc", pairs)
    )
    reads = [(old, old | new) for old, new in pairs] + [(old, old & ~new) for old, new in pairs]
    assert values(text) == list(chain(*reads))


@pytest.mark.parametrize("counter", ["minstret", "mcycle"])
def test_counts_of_64_bits_with_carries_into_every_bit(counter):
    highs = [0, ONES, 0x5555_5555, 0xAAAA_AAAA, *((1 << bit) - 1 for bit in range(1, 32))]
    counts = list(product(highs, (0x5555_5555, 0xAAAA_AAAA, ONES - 1)))
    text = "".join(
        f"""
        li x1, {high}; csrrw x0, {counter}h, x1; li x1, {low}; csrrw x0, {counter}, x1
        nop; nop; nop; csrrs x2, {counter}h, x0; csrrs x3, {counter}, x0
        """
        for high, low in counts
    )
    reads = iter(values(text))
    (difference,) = {((next(reads) - high) << 32) + next(reads) - low & (1 << 64) - 1 for high, low in counts}
    assert 3 < difference < 20


def test_numbers_one_bit_away_from_a_register_are_illegal():
    known = {int(register) for register in Csr} | set(EVENTS)
    neighbours = sorted({number ^ 1 << bit for number in known for bit in range(12)} - known)
    assert len(neighbours) > 250
    skip = "handler: csrrs x29, mepc, x0; addi x29, x29, 4; csrrw x0, mepc, x29; mret"
    result = run("\n".join(["j begin", skip, "begin:", *(f"csrrs x2, {number}, x0" for number in neighbours)]))
    assert [cause for _, cause in result.traps] == [Cause.ILLEGAL.value] * len(neighbours)

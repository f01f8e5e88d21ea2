"""Random programs for the controller: every kind of instruction and trap, with interrupts at random times.

They always end. Control flow is forward, except for counted loops. A handler skips the trapping instruction and sets
the timer again. Instructions that must stay together, such as an address and a jump to it, are one item; branches
target the start of an item.

Registers: x0 to x23 are general. x24 and x25 hold values for mtvec: the trap handler with bit 1 set, and the vector
table with bit 0 set. x26 and x27 are reserved for the handler. x28: end of memory. x29: data. x30: loop counter. x31:
return address after a fetch fault.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from neuroncore_rtl.spec.memory_map import INTERRUPT_PENDING, LOCAL_BASE, TIMER_COMPARE, TIMER_NOW
from neuroncore_rtl.spec.riscv import Csr, Opcode, System
from neuroncore_rtl.tb.stimulus.riscv_encoding import b_type, i_type, j_type, load_constant, r_type, s_type, u_type

__all__ = ["DATA", "TOHOST", "RandomProgram", "random_riscv_program"]

DATA = LOCAL_BASE + 0x8_0000  # middle of the bytes that loads and stores reach
TOHOST = LOCAL_BASE + 0x9_0000  # address of the final write
DATA_BYTES = 0x1000

ANYTIME = (
    *(Csr.MSTATUS, Csr.MIE, Csr.MSCRATCH, Csr.MEPC, Csr.MCAUSE, Csr.MTVAL, Csr.MIP),
    *(0x301, 0x310, 0x320, 0xB00, 0xB02, 0xB80, 0xB82, 0xB03, 0xB1F, 0xB83, 0x323, 0x33F, 0xC00, 0xC01, 0xC02, 0xC80),
    *(0xC81, 0xC82, 0xF11, 0xF12, 0xF13, 0xF14),
)
"""CSRs that a program may write at any time, with or without success: all existing CSRs except mtvec."""

SPECIAL = (0, 1, 2, 3, 0xFFFF_FFFF, 0xFFFF_FFFE, 0x8000_0000, 0x8000_0001, 0x7FFF_FFFF, 0xFFFF_8000, 0xFF, 31, 32)

ILLEGAL_FUNCT3 = {
    Opcode.LOAD: (3, 6, 7), Opcode.STORE: (3, 4, 5, 6, 7), Opcode.BRANCH: (2, 3), Opcode.JALR: (1, 2, 3, 4, 5, 6, 7),
    Opcode.OP: tuple(range(8)), Opcode.OP_IMM: (1, 5), Opcode.MISC_MEM: (2, 3, 4, 5, 6, 7), Opcode.SYSTEM: (0, 4),
}  # fmt: skip
"""By opcode, the values of funct3 that are illegal, always or with most values of the other fields."""

FREE = 24  # registers below this number are general
Item = list[int | Callable[[int, Sequence[int]], int]]
"""An instruction is a word, or the function that makes it from its item's number and the addresses of all items."""


@dataclass(frozen=True)
class RandomProgram:
    """A program in memory from LOCAL_BASE; `body` has the offsets of its items."""

    image: bytes
    items: int
    body: tuple[int, int]


def random_riscv_program(rng: np.random.Generator, items: int, *, memory_bytes: int) -> RandomProgram:
    """Return a program that ends with a write of 1 to `TOHOST`."""
    handler, table = _handler(rng)
    prologue = _prologue(rng, LOCAL_BASE + 4, LOCAL_BASE + 4 * (1 + len(handler)), memory_bytes)
    writer = _Writer(rng)
    body = [writer.item() for _ in range(items)]
    first = 1 + len(handler) + len(table)
    addresses, address = [], LOCAL_BASE + 4 * (first + len(prologue))
    for item in body:
        addresses.append(address)
        address += 4 * len(item)
    # Branches of the last items need targets after the body.
    addresses += [address] * 64
    words = [j_type(Opcode.JAL, 0, 4 * first), *handler, *table, *prologue]
    for number, item in enumerate(body):
        words += [word(number, addresses) if callable(word) else word for word in item]
    behind = 4 * len(words)
    # The padding ensures that the processor does not prefetch from beyond the program.
    words += [_csr(Csr.MSTATUS, 7, 0, 8), *load_constant(1, TOHOST), *load_constant(2, 1)]
    words += [s_type(Opcode.STORE, 2, 1, 2, 0), j_type(Opcode.JAL, 0, 0)]
    code = b"".join(word.to_bytes(4, "little") for word in words)
    start = DATA - LOCAL_BASE - DATA_BYTES // 2
    if len(code) > start:
        raise ValueError(f"a program must have at most {start} bytes, not {len(code)}")
    body_of = 4 * (first + len(prologue)), behind
    return RandomProgram(code.ljust(start, b"\0") + rng.bytes(DATA_BYTES), items, body_of)


def _csr(number: int, funct3: int, rd: int, source: int) -> int:
    return i_type(Opcode.SYSTEM, rd, funct3, source, number)


def _handler(rng: np.random.Generator) -> tuple[list[int], list[int]]:
    mret = System.MRET
    pause = int(rng.integers(300, 2000))
    timer = [
        u_type(Opcode.LUI, 27, TIMER_NOW + 0x800), i_type(Opcode.LOAD, 26, 2, 27, TIMER_NOW),
        i_type(Opcode.OP_IMM, 26, 0, 26, pause),
        u_type(Opcode.LUI, 27, TIMER_COMPARE), s_type(Opcode.STORE, 2, 27, 26, TIMER_COMPARE), mret,
    ]  # fmt: skip
    external = [u_type(Opcode.LUI, 27, INTERRUPT_PENDING), s_type(Opcode.STORE, 2, 27, 0, INTERRUPT_PENDING), mret]
    step = [_csr(Csr.MEPC, 2, 27, 0), i_type(Opcode.OP_IMM, 27, 0, 27, 4), _csr(Csr.MEPC, 1, 0, 27), mret]
    recover = [_csr(Csr.MEPC, 1, 0, 31), mret]
    interrupt = [
        r_type(Opcode.OP, 26, 0, 26, 26, 0),  # twice the cause: shifts out the interrupt bit
        i_type(Opcode.OP_IMM, 26, 0, 26, -22),
        b_type(Opcode.BRANCH, 0, 26, 0, 4 * (1 + len(timer))),
    ]
    known = b_type(Opcode.BRANCH, 1, 26, 0, 4 * (1 + len(recover)))
    exception = [_csr(Csr.MTVAL, 2, 27, 0), i_type(Opcode.OP_IMM, 26, 0, 26, -1), known, *recover, *step]
    handler = [_csr(Csr.MCAUSE, 2, 26, 0), b_type(Opcode.BRANCH, 4, 26, 0, 4 * (1 + len(exception)))]
    handler += [*exception, *interrupt, *timer, *external]
    table = [j_type(Opcode.JAL, 0, -4 * (len(handler) + n)) for n in range(12)]
    return handler, table


def _prologue(rng: np.random.Generator, handler: int, table: int, memory_bytes: int) -> list[int]:
    words = []
    for register in range(1, FREE):
        words += load_constant(register, _value(rng))
    for register, value in ((24, handler | 2), (25, table | 1), (28, LOCAL_BASE + memory_bytes), (29, DATA)):
        words += load_constant(register, value)
    words += [*load_constant(30, 0), *load_constant(31, handler), _csr(Csr.MTVEC, 1, 0, 24)]
    words += [*load_constant(27, TIMER_COMPARE), s_type(Opcode.STORE, 2, 27, 0, 4)]
    words += [*load_constant(26, 500), s_type(Opcode.STORE, 2, 27, 26, 0)]
    words += [*load_constant(26, 0x880), _csr(Csr.MIE, 1, 0, 26), _csr(Csr.MSTATUS, 6, 0, 8)]
    return words


def _value(rng: np.random.Generator) -> int:
    return int(rng.choice(SPECIAL)) if rng.random() < 0.4 else int(rng.integers(1 << 32))


class _Writer:
    """Generator of items; each method returns one."""

    def __init__(self, rng: np.random.Generator):
        self.rng = rng
        self.kinds = (
            (self.compute, 40), (self.constant, 6), (self.memory, 22), (self.branch, 10), (self.jump, 5),
            (self.jump_register, 4), (self.loop, 2), (self.csr, 8), (self.counter, 1), (self.vector, 1),
            (self.environment, 2), (self.illegal, 3), (self.sleep, 0.5), (self.leave, 1), (self.bad_fetch, 1),
            (self.last_word, 1), (self.fence, 1), (self.modify, 1), (self.peripheral, 2), (self.corner, 3),
        )  # fmt: skip
        weights = np.array([weight for _, weight in self.kinds], float)
        self.weights = weights / weights.sum()

    def item(self) -> Item:
        return self.kinds[self.rng.choice(len(self.kinds), p=self.weights)][0]()

    def free(self) -> int:
        return int(self.rng.integers(FREE))

    def any(self) -> int:
        return int(self.rng.integers(32))

    def immediate(self) -> int:
        return int(self.rng.choice((-2048, -1, 0, 1, 2047))) if self.rng.random() < 0.2 else self.below(-2048, 2048)

    def below(self, first: int, end: int) -> int:
        return int(self.rng.integers(first, end))

    def compute(self) -> Item:
        rng, rd, rs1, rs2 = self.rng, self.free(), self.any(), self.any()
        match self.below(0, 8):
            case 0 | 1:
                funct3, funct7 = self.below(0, 8), 0
                if funct3 in (0, 5) and rng.random() < 0.5:
                    funct7 = 0x20
                return [r_type(Opcode.OP, rd, funct3, rs1, rs2, funct7)]
            case 2 | 3 | 4:
                return [r_type(Opcode.OP, rd, self.below(0, 8), rs1, rs2, 1)]
            case 5:
                return [i_type(Opcode.OP_IMM, rd, int(rng.choice((0, 2, 3, 4, 6, 7))), rs1, self.immediate())]
            case 6:
                funct3 = int(rng.choice((1, 5)))
                funct7 = 0x20 if funct3 == 5 and rng.random() < 0.5 else 0
                return [r_type(Opcode.OP_IMM, rd, funct3, rs1, self.below(0, 32), funct7)]
            case _:
                return [u_type(int(rng.choice((Opcode.LUI, Opcode.AUIPC))), rd, self.below(0, 1 << 32))]

    def constant(self) -> Item:
        return [*load_constant(self.below(1, FREE), _value(self.rng))]

    def corner(self) -> Item:
        """Return an operation on special values, such as the smallest integer and -1, any integer and 0, equal ones."""
        rng = self.rng
        rs1, rs2 = (int(n) for n in rng.choice(np.arange(1, FREE), 2, replace=False))
        first, second = (int(n) for n in rng.choice(SPECIAL, 2))
        kind = rng.random()
        if kind < 0.25:
            first, second = 1 << 31, (1 << 32) - 1
        elif kind < 0.5:
            second = first if kind < 0.4 else 0
        funct7 = 1 if rng.random() < 0.75 else 0
        word = r_type(Opcode.OP, self.free(), self.below(0, 8), rs1, rs2, funct7)
        return [*load_constant(rs1, first), *load_constant(rs2, second), word]

    def memory(self) -> Item:
        """Return a load or store: mostly of data, at any byte; sometimes across memory's end, or at no memory."""
        where = self.rng.random()
        if where < 0.9:
            base, offset = 29, self.below(-2048, 2040)
        elif where < 0.95:
            base, offset = 28, self.below(-8, 8)
        else:
            base, offset = 0, self.immediate()
        if self.rng.random() < 0.5:
            return [i_type(Opcode.LOAD, self.free(), int(self.rng.choice((0, 1, 2, 4, 5))), base, offset)]
        return [s_type(Opcode.STORE, self.below(0, 3), base, self.any(), offset)]

    def peripheral(self) -> Item:
        """Return an access to the timer registers, whole, in part, or misaligned."""
        rd, part = self.below(1, FREE), int(self.rng.choice((0, 1, 4, 5)))
        compare = int(self.rng.choice((TIMER_COMPARE, TIMER_COMPARE + 4)))
        address, word = (
            (TIMER_NOW, i_type(Opcode.LOAD, rd, 2, rd, 0)),
            (compare, i_type(Opcode.LOAD, rd, 2, rd, 0)),
            (compare, i_type(Opcode.LOAD, rd, part, rd, 2)),
            (INTERRUPT_PENDING, i_type(Opcode.LOAD, rd, part, rd, 0)),
            (TIMER_NOW, i_type(Opcode.LOAD, rd, int(self.rng.choice((1, 2, 5))), rd, 1)),
            (TIMER_COMPARE, s_type(Opcode.STORE, self.below(0, 2), rd, self.any(), 0)),
            (TIMER_COMPARE, s_type(Opcode.STORE, self.below(1, 3), rd, self.any(), 1)),
        )[self.below(0, 7)]
        return [*load_constant(rd, address), word]

    def branch(self) -> Item:
        funct3 = int(self.rng.choice((0, 1, 4, 5, 6, 7)))
        rs1, rs2, skip, odd = self.any(), self.any(), self.below(1, 9), 2 * int(self.rng.random() < 0.05)
        return [lambda n, at: b_type(Opcode.BRANCH, funct3, rs1, rs2, at[n + skip] - at[n] + odd)]

    def jump(self) -> Item:
        rd, skip, odd = self.free(), self.below(1, 9), 2 * int(self.rng.random() < 0.05)
        return [lambda n, at: j_type(Opcode.JAL, rd, at[n + skip] - at[n] + odd)]

    def jump_register(self) -> Item:
        rd, base, skip = self.free(), self.below(1, FREE), self.below(1, 9)
        # Bit 0 of a target is ignored; bit 1 must not be set.
        odd = int(self.rng.choice((0, 1, 2, 3), p=(0.7, 0.2, 0.05, 0.05)))
        here = u_type(Opcode.AUIPC, base, 0)
        return [here, lambda n, at: i_type(Opcode.JALR, rd, 0, base, at[n + skip] - at[n] + odd)]

    def loop(self) -> Item:
        parts = [self.compute() if self.rng.random() < 0.6 else self.memory() for _ in range(self.below(1, 6))]
        body = [word for part in parts for word in part]
        count = i_type(Opcode.OP_IMM, 30, 0, 0, self.below(1, 6))
        down = i_type(Opcode.OP_IMM, 30, 0, 30, -1)
        return [count, *body, down, b_type(Opcode.BRANCH, 1, 30, 0, -4 * (len(body) + 1))]

    def csr(self) -> Item:
        number = self.below(0, 1 << 12) if self.rng.random() < 0.1 else int(self.rng.choice(ANYTIME))
        funct3 = int(self.rng.choice((1, 2, 3, 5, 6, 7)))
        source = 0 if self.rng.random() < 0.3 else self.any()
        if number == Csr.MTVEC:
            funct3, source = 2, 0
        return [_csr(number, funct3, self.free(), source)]

    def counter(self) -> Item:
        number = int(self.rng.choice((0xB00, 0xB02, 0xC00, 0xC01, 0xC02))) + 0x80 * self.below(0, 2)
        return [_csr(number, 2, self.below(1, FREE), 0)]

    def vector(self) -> Item:
        return [_csr(Csr.MTVEC, 1, self.free(), int(self.rng.choice((24, 25))))]

    def environment(self) -> Item:
        return [int(self.rng.choice((System.ECALL, System.EBREAK)))]

    def illegal(self) -> Item:
        bits = self.below(0, 1 << 32)
        opcode = int(self.rng.choice((*ILLEGAL_FUNCT3, *(n for n in range(128) if n & 3 != 3))))
        funct3 = ILLEGAL_FUNCT3.get(opcode, tuple(range(8)))
        word = bits & ~0x707F | int(self.rng.choice(funct3)) << 12 | opcode
        if opcode in (Opcode.OP, Opcode.OP_IMM):
            word |= 1 << 28  # funct7 is neither 0, 1 nor 0x20
        if opcode == Opcode.SYSTEM:
            word |= 1 << 7  # the privileged operations have no destination
        return [word]

    def sleep(self) -> Item:
        rd = self.below(1, FREE)
        # The sign extension of 0x880 also sets bits that mie does not have. Without the timer the program might not
        # wake.
        sources = int(self.rng.choice((0x80, 0x880)))
        return [i_type(Opcode.OP_IMM, rd, 0, 0, sources), _csr(Csr.MIE, 2, 0, rd), System.WFI]

    def leave(self) -> Item:
        """Return an mret to the instruction after it, with MPIE set or cleared."""
        rd = self.below(1, FREE)
        funct3 = int(self.rng.choice((2, 3)))
        before = _csr(Csr.MSTATUS, 7, 0, 8), i_type(Opcode.OP_IMM, rd, 0, 0, 0x80), _csr(Csr.MSTATUS, funct3, 0, rd)
        behind = u_type(Opcode.AUIPC, rd, 0), i_type(Opcode.OP_IMM, rd, 0, rd, 16)
        return [*before, *behind, _csr(Csr.MEPC, 1, 0, rd), System.MRET]

    def _back(self, jump: int, *before: int) -> Item:
        """Return a jump, with the next item's address in x31: a return, or the handler of a fault, continues there."""
        return [*before, u_type(Opcode.AUIPC, 31, 0), i_type(Opcode.OP_IMM, 31, 0, 31, 12), jump]

    def bad_fetch(self) -> Item:
        base, offset = (0, 4 * self.below(-512, 512)) if self.rng.random() < 0.5 else (28, 4 * self.below(0, 512))
        return self._back(i_type(Opcode.JALR, self.free(), 0, base, offset))

    def last_word(self) -> Item:
        """Return a call of a return instruction in the last word of memory: the word after it cannot be fetched."""
        rd = self.below(1, FREE)
        back = load_constant(rd, i_type(Opcode.JALR, 0, 0, 31, 0))
        stored = s_type(Opcode.STORE, 2, 28, rd, -4), i_type(Opcode.MISC_MEM, 0, 1, 0, 0)
        return self._back(i_type(Opcode.JALR, self.free(), 0, 28, -4), *back, *stored)

    def fence(self) -> Item:
        return [i_type(Opcode.MISC_MEM, self.any(), self.below(0, 2), self.any(), self.immediate())]

    def modify(self) -> Item:
        rd, base = (int(n) for n in self.rng.choice(np.arange(1, FREE), 2, replace=False))
        written = i_type(Opcode.OP_IMM, self.free(), 0, self.any(), self.immediate())
        stored = u_type(Opcode.AUIPC, base, 0), s_type(Opcode.STORE, 2, base, rd, 12)
        fence, replaced = i_type(Opcode.MISC_MEM, 0, 1, 0, 0), i_type(Opcode.OP_IMM, 0, 0, 0, 0)
        return [*load_constant(rd, written), *stored, fence, replaced]

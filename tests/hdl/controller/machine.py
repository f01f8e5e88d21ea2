"""Runs programs on the Cpu alone, in Amaranth's simulator, between memories that may stall and answer late."""

import random
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from neuroncore_rtl.hdl.controller.cpu import Cpu
from neuroncore_rtl.spec.memory_map import LOCAL_BASE, LOCAL_BYTES, REGISTERS
from tests.hdl.controller.assembler import assemble, framed
from tests.hdl.simulation import drive, simulate

__all__ = ["DEVICE", "LINES", "Entry", "Run", "run"]

DEVICE = REGISTERS
"""Words outside the local memory that can be read and written."""
LINES = REGISTERS + 0x200
"""Written: bit 0 is the timer interrupt, bit 1 the external one, from as many cycles later on as bits 8 to 31 say."""
_END = REGISTERS + 0x204
_WORDS = (range(LOCAL_BASE, LOCAL_BASE + LOCAL_BYTES, 4), range(DEVICE, DEVICE + 0x100, 4))


class Entry(NamedTuple):
    """An entry of the trace; cause is 0 without a trap, value without a destination."""

    pc: int
    instruction: int
    trap: bool
    cause: int
    rd: int
    value: int


@dataclass
class Run:
    """What a program did: its trace, the cycle of each entry, words of memory by address, registers by number."""

    trace: list[Entry] = field(default_factory=list)
    cycles: list[int] = field(default_factory=list)
    memory: dict[int, int] = field(default_factory=dict)
    registers: list[int] = field(default_factory=lambda: [0] * 32)
    waited: int = 0

    @property
    def traps(self) -> list[tuple[int, int]]:
        """Pc, as an offset, and cause of each trap."""
        return [(entry.pc - LOCAL_BASE, entry.cause) for entry in self.trace if entry.trap]


class _Memory:
    """The memory's side of one bus: at most four requests wait for their responses."""

    def __init__(self, bus, access, stall: float, rng: random.Random):
        self.bus, self.access, self.stall, self.rng = bus, access, stall, rng
        self.answers = deque()
        self.ready = False
        self.kept = None

    def drive(self, ctx) -> None:
        """Before a cycle: respond or not, be ready or not."""
        held = self.rng.random() < self.stall
        response = bool(self.answers) and not held
        result, error = self.answers.popleft() if response else (self.rng.getrandbits(32), self.rng.getrandbits(1))
        self.ready = len(self.answers) < 4 and self.rng.random() >= self.stall
        drive(ctx, self.bus, response=response, result=result, error=error, ready=self.ready)

    def observe(self, ctx) -> None:
        """In a cycle: take the request that is there."""
        names = ("valid", "address", "write", "mask", "data")
        request = {name: ctx.get(getattr(self.bus, name)) for name in names}
        assert self.kept is None or request == self.kept, "a request must stay until it is taken"
        self.kept = request if request["valid"] and not self.ready else None
        if request["valid"] and self.ready:
            assert request["address"] % 4 == 0
            self.answers.append(self.access(*(request[name] for name in names[1:])))


def run(program: str, *, stall: float = 0, seed: int = 0, limit: int = 20_000) -> Run:
    """Assemble a program and run it to its end.

    Arguments:
        program: its text; it is :func:`framed`.
        stall: how likely either bus refuses a request, and how likely it holds back a response, in a cycle.
        seed: of the stalls.
        limit: cycles that are more than enough.
    """
    cpu, rng, result = Cpu(), random.Random(seed), Run()
    memory = result.memory
    memory |= {LOCAL_BASE + 4 * place: word for place, word in enumerate(assemble(framed(program, _END)))}
    lines, ended, cycle = {}, False, 0

    def access(address: int, write: int, mask: int, data: int) -> tuple[int, int]:
        nonlocal ended
        if write and address == LINES:
            lines[cycle + 1 + (data >> 8)] = data & 3
        elif write and address == _END:
            ended = True
        elif any(address in words for words in _WORDS):
            word = memory.get(address, 0)
            if not write:
                return word, 0
            bits = sum(0xFF << 8 * byte for byte in range(4) if mask >> byte & 1)
            memory[address] = word & ~bits | data & bits
        else:
            return rng.getrandbits(32), 1
        return rng.getrandbits(32), 0

    async def bench(ctx):
        nonlocal cycle
        sides = (_Memory(cpu.fetch, access, stall, rng), _Memory(cpu.data, access, stall, rng))
        for cycle in range(limit):
            if cycle in lines:
                drive(ctx, cpu, timer_interrupt=lines[cycle] & 1, external_interrupt=lines[cycle] >> 1)
            ctx.set(cpu.time, 0x5_0000_0000 + cycle)
            for side in sides:
                side.drive(ctx)
            await ctx.delay(1e-7)
            for side in sides:
                side.observe(ctx)
            result.waited += ctx.get(cpu.waiting)
            if ctx.get(cpu.trace_valid):
                entry = Entry(*(ctx.get(getattr(cpu, f"trace_{name}")) for name in Entry._fields))
                entry = entry._replace(cause=entry.trap and entry.cause, value=entry.rd and entry.value)
                result.trace.append(entry)
                result.cycles.append(cycle)
                if entry.rd:
                    result.registers[entry.rd] = entry.value
            if ended and not sides[1].answers:
                return
            await ctx.tick()
        raise AssertionError(f"the program did not end in {limit} cycles")

    simulate(cpu, bench)
    return result

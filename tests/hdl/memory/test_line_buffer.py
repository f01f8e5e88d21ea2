"""Lines whose banks are busy: others go ahead of them, none of its own bank does, and nobody is forgotten."""

from collections import deque

import pytest

from neuroncore_rtl.hdl.memory.line_buffer import LineBuffer
from neuroncore_rtl.hdl.memory.port import OnChipStorage
from neuroncore_rtl.hdl.memory.sbuf_block import Geometry
from neuroncore_rtl.spec.config import PRESETS
from tests.hdl.simulation import drive, simulated

GEOMETRY = Geometry.of(PRESETS["tiny"])
SBUF_BANKS, LINE_BYTES = GEOMETRY.banks, GEOMETRY.line_bytes
WRITERS = 3
SIZE = 16
CYCLES = 1500


class Lines:
    """Drives a buffer cycle by cycle, and keeps what it has taken and not written, oldest first."""

    def __init__(self, ctx, buffer):
        self.ctx, self.buffer = ctx, buffer
        self.number, self.offered, self.held, self.order = 0, None, deque(), []

    def line(self, bank, psum=False, writer=0):
        """Return a line like no other."""
        self.number += 1
        return {
            "storage": OnChipStorage.PSUM if psum else OnChipStorage.SBUF,
            "partition": self.number % 1024,
            "address": bank * LINE_BYTES + self.number % (LINE_BYTES // SIZE) * SIZE,
            "data": self.number,
            "mask": 1 + self.number % 0xFFFF,
            "writer": writer,
        }

    @staticmethod
    def bank_of(line):
        return "psum" if line["storage"] == OnChipStorage.PSUM else line["address"] // LINE_BYTES % SBUF_BANKS

    def offer(self, line):
        """Offer a line in the next cycles, until it is taken."""
        self.offered = line
        values = {name: value for name, value in (line or {}).items() if name != "writer"}
        drive(self.ctx, self.buffer.i, valid=line is not None, **values)
        self.ctx.set(self.buffer.writer, line["writer"] if line else 0)

    async def step(self, busy=(), served=True):
        """Go on by a cycle, in which engines write some banks; return what asked, and whether the offer was taken."""
        ctx, buffer = self.ctx, self.buffer
        ctx.set(buffer.busy, sum(1 << bank for bank in busy))
        pending = [*self.held, *([self.offered] if self.offered else [])]
        lines = [*self.held] if buffer.latency else pending
        assert ctx.get(buffer.o.valid) == bool(lines)
        found = None
        if lines:
            data = ctx.get(buffer.o.data)
            (found,) = (line for line in lines if line["data"] == data)
            assert all(ctx.get(getattr(buffer.o, name)) == value for name, value in found.items() if name != "writer")
            older = lines[: lines.index(found)]
            assert self.bank_of(found) not in map(self.bank_of, older), "lines of a bank keep their order"
        asked = 0 if found is None or self.bank_of(found) == "psum" else 1 << self.bank_of(found)
        assert ctx.get(buffer.after) == ctx.get(buffer.busy) | asked
        wanted = bool(found) and served and self.bank_of(found) not in busy
        ctx.set(buffer.o.ready, wanted)
        taken = self.offered is not None and bool(ctx.get(buffer.i.ready))
        left = [line for line in pending if not (wanted and line is found)]
        assert len(left) <= buffer.LINES + (self.offered is not None and not taken)
        left_writers = {line["writer"] for line in left}
        assert ctx.get(buffer.written) == sum(1 << n for n in range(WRITERS) if n not in left_writers)
        if wanted:
            self.order.append(found)
        self.held = deque(line for line in left if taken or line is not self.offered)
        await ctx.tick()
        if taken:
            self.offer(None)
        return found, taken


@pytest.mark.parametrize("share", [0.2, 0.6, 0.95])
@simulated(lambda: LineBuffer(SIZE, WRITERS, GEOMETRY))
async def test_every_line_is_written_once_and_those_of_a_bank_in_order(ctx, buffer, share, rng):
    lines, given = Lines(ctx, buffer), []
    for cycle in range(CYCLES):
        if lines.offered is None and rng.random() < 0.8:
            lines.offer(lines.line(int(rng.integers(SBUF_BANKS)), rng.random() < 0.1, int(rng.integers(WRITERS))))
            given.append(lines.offered)
        busy = [bank for bank in range(SBUF_BANKS) if rng.random() < share]
        if cycle % 100 > 60:
            busy = [bank for bank in busy if bank > 1]
        await lines.step(busy, rng.random() < 0.9)
    while lines.held or lines.offered:
        await lines.step()
    assert len(lines.order) == len(given) > CYCLES / 4
    assert sorted(line["data"] for line in lines.order) == [line["data"] for line in given]
    assert lines.order != given
    for bank in {lines.bank_of(line) for line in given}:
        assert [line for line in lines.order if lines.bank_of(line) == bank] == [
            line for line in given if lines.bank_of(line) == bank
        ]


@simulated(lambda: LineBuffer(SIZE, WRITERS, GEOMETRY, latency=1))
async def test_with_a_latency_lines_go_in_order_and_none_in_the_cycle_in_which_it_comes(ctx, buffer, rng):
    lines, given, waited = Lines(ctx, buffer), [], 0
    for _ in range(CYCLES):
        if lines.offered is None and rng.random() < 0.8:
            lines.offer(lines.line(int(rng.integers(SBUF_BANKS)), rng.random() < 0.1, int(rng.integers(WRITERS))))
            given.append(lines.offered)
        full = len(lines.held) == buffer.LINES
        _, taken = await lines.step([bank for bank in range(SBUF_BANKS) if rng.random() < 0.4], rng.random() < 0.9)
        assert not (full and taken)
        waited += full
    while lines.held or lines.offered:
        await lines.step()
    assert lines.order == given and len(given) > CYCLES / 4 and waited > 20


@simulated(lambda: LineBuffer(SIZE, WRITERS, GEOMETRY))
async def test_a_bank_that_an_engine_has_holds_up_nobody_until_the_buffer_is_full(ctx, buffer):
    """A line a cycle comes in, and one goes out but for those that wait; in the cycle in which it comes if it may."""
    lines = Lines(ctx, buffer)
    for number in range(SBUF_BANKS * buffer.LINES):
        lines.offer(offered := lines.line(number % SBUF_BANKS))
        found, taken = await lines.step(busy=[0])
        assert taken and (found is offered or number % SBUF_BANKS == 0)
    assert len(lines.held) == buffer.LINES
    lines.offer(lines.line(0))
    assert not (await lines.step(busy=[0]))[1]
    # A line that goes makes room for the one that comes.
    assert (await lines.step())[1] and len(lines.held) == buffer.LINES


@simulated(lambda: LineBuffer(SIZE, WRITERS, GEOMETRY))
async def test_a_line_waits_for_few_others(ctx, buffer):
    lines = Lines(ctx, buffer)
    lines.offer(first := lines.line(0))
    await lines.step(busy=[0])
    for _ in range(buffer.AHEAD):
        lines.offer(lines.line(1))
        found, _ = await lines.step(busy=[0])
        assert found is not first
    for _ in range(3):
        lines.offer(lines.offered or lines.line(1))
        assert (await lines.step(busy=[0]))[0] is first
    assert (await lines.step())[0] is first

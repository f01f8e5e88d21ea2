from collections import deque
from functools import partial

import pytest

from neuroncore_rtl.hdl.memory import line_buffer, sbuf_block
from neuroncore_rtl.hdl.memory.port import OnChipStorage
from neuroncore_rtl.spec.config import PRESETS
from tests.hdl.simulation import drive, expect, simulated

GEOMETRY = sbuf_block.Geometry.of(PRESETS["tiny"])
SBUF_BANKS, LINE_BYTES = GEOMETRY.banks, GEOMETRY.line_bytes
WRITERS = 3
SIZE = 16
CYCLES = 1500


class Lines:
    def __init__(self, ctx, buffer):
        self.ctx, self.buffer = ctx, buffer
        self.number, self.offered, self.held, self.order = 0, None, deque(), []

    def line(self, bank, psum=False, writer=0):
        """Return a line with contents that no other line has."""
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
        self.offered, values = line, dict(line or {"writer": 0})
        drive(self.ctx, self.buffer, writer=values.pop("writer"))
        drive(self.ctx, self.buffer.i, valid=line is not None, **values)

    async def step(self, busy=(), served=True):
        """Return the line on offer, and whether the input was accepted; engines write the banks `busy`."""
        ctx, buffer = self.ctx, self.buffer
        ctx.set(buffer.busy, sum(1 << bank for bank in busy))
        pending = [*self.held, *([self.offered] if self.offered else [])]
        lines = [*self.held] if buffer.latency else pending
        assert ctx.get(buffer.o.valid) == bool(lines)
        found = None
        if lines:
            (found,) = (line for line in lines if line["data"] == ctx.get(buffer.o.data))
            expect(ctx, buffer.o, **{name: value for name, value in found.items() if name != "writer"})
            older = lines[: lines.index(found)]
            assert self.bank_of(found) not in map(self.bank_of, older), "lines of a bank keep their order"
        requested = 0 if found is None or self.bank_of(found) == "psum" else 1 << self.bank_of(found)
        assert ctx.get(buffer.after) == ctx.get(buffer.busy) | requested
        wanted = bool(found) and served and self.bank_of(found) not in busy
        ctx.set(buffer.o.ready, wanted)
        taken = self.offered is not None and bool(ctx.get(buffer.i.ready))
        remaining = [line for line in pending if not (wanted and line is found)]
        assert len(remaining) <= buffer.LINES + (self.offered is not None and not taken)
        remaining_writers = {line["writer"] for line in remaining}
        assert ctx.get(buffer.written) == sum(1 << n for n in range(WRITERS) if n not in remaining_writers)
        if wanted:
            self.order.append(found)
        self.held = deque(line for line in remaining if taken or line is not self.offered)
        await ctx.tick()
        if taken:
            self.offer(None)
        return found, taken


@pytest.mark.parametrize(("share", "latency"), [(0.2, 0), (0.6, 0), (0.95, 0), (0.4, 1)])
@simulated(lambda latency: line_buffer.LineBuffer(SIZE, WRITERS, GEOMETRY, latency=latency))
async def test_every_line_is_written_once_and_those_of_a_bank_in_order(ctx, buffer, share, latency, rng):
    lines, given, full = Lines(ctx, buffer), [], 0
    for cycle in range(CYCLES):
        if lines.offered is None and rng.random() < 0.8:
            lines.offer(lines.line(int(rng.integers(SBUF_BANKS)), rng.random() < 0.1, int(rng.integers(WRITERS))))
            given.append(lines.offered)
        busy = [bank for bank in range(SBUF_BANKS) if rng.random() < share and (bank > 1 or cycle % 100 <= 60)]
        is_full = len(lines.held) == buffer.LINES
        _, taken = await lines.step(busy, rng.random() < 0.9)
        assert not (latency and is_full and taken)
        full += is_full
    while lines.held or lines.offered:
        await lines.step()
    assert (lines.order == given) == bool(latency) and len(given) > CYCLES / 4 and full > 20 * latency
    by_bank = partial(sorted, key=lambda line: str(lines.bank_of(line)))
    assert by_bank(lines.order) == by_bank(given)


@simulated(lambda: line_buffer.LineBuffer(SIZE, WRITERS, GEOMETRY))
async def test_a_busy_bank_blocks_no_other_until_the_buffer_is_full(ctx, buffer):
    # One line arrives per cycle; it is written in the same cycle unless its bank is busy.
    lines = Lines(ctx, buffer)
    for number in range(SBUF_BANKS * buffer.LINES):
        lines.offer(offered := lines.line(number % SBUF_BANKS))
        found, taken = await lines.step(busy=[0])
        assert taken and (found is offered or number % SBUF_BANKS == 0)
    assert len(lines.held) == buffer.LINES
    lines.offer(lines.line(0))
    assert not (await lines.step(busy=[0]))[1]
    assert (await lines.step())[1] and len(lines.held) == buffer.LINES


@simulated(lambda: line_buffer.LineBuffer(SIZE, WRITERS, GEOMETRY))
async def test_few_lines_pass_a_blocked_line(ctx, buffer):
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

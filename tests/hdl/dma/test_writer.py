from functools import partial

import pytest

from neuroncore_rtl.hdl.dma.writer import HbmWriter
from neuroncore_rtl.spec.isa import Storage
from tests.hdl.dma.chunks import BASES, SPAN, any_chunk, beats_of
from tests.hdl.memory.axi_memory import serve_writes
from tests.hdl.simulation import WARM_UP, drive, simulate

SIZE, CHUNKS = 8, 200


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(("stall", "held"), [(0, ()), (0.1, ("aw",)), (0.6, ()), (0.1, ("aw", "w"))])
def test_beats_are_written_when_their_bytes_are_present_and_addresses_after_the_last_beat(base, stall, held, rng):
    dut, chunks = HbmWriter(SIZE), [any_chunk(rng, SIZE, base) for _ in range(CHUNKS)]
    contents = [rng.bytes(chunk["bytes"]) for chunk in chunks]
    content, memory = b"".join(contents), bytearray(rng.bytes(SPAN))
    expected, lines, bursts = bytearray(memory), [], []
    for chunk, own in zip(chunks, contents, strict=True):
        address = chunk["address"]
        if chunk["storage"] == Storage.HBM:
            expected[address - base : address - base + len(own)] = own
        else:
            mask = (1 << len(own)) - 1 << address % SIZE
            word = int.from_bytes(own, "little") << 8 * (address % SIZE)
            lines.append((chunk["storage"], chunk["partition"], address // SIZE * SIZE, word, mask))
    beats = [(chunk, *beat) for chunk in chunks for beat in beats_of(chunk, SIZE)]
    completed, addressed, written, given = [], [], [], []  # cycles of bursts, of their addresses and last beats; lines

    async def bench(ctx):
        taken = level = cycle = used = number = 0
        valid = quiet = False
        while not quiet:
            chunk, offset, count, last = beats[taken] if taken < len(beats) else ({}, 0, SIZE, False)
            stop = rng.random() < stall / 4
            level = min(level + (2 * SIZE if rng.random() >= stall else int(rng.integers(3))), 2 * SIZE)
            level = min(level, len(content) - used)
            drive(ctx, dut.ring, level=level, data=int(rng.integers(1 << 63)))
            drive(ctx, dut.i, valid=bool(chunk), payload=chunk)
            room, line_ready = (rng.random() >= stall for _ in range(2))
            drive(ctx, dut, stop=stop, room=room, **{"line.ready": line_ready})
            await ctx.delay(1e-9)
            takes, free = ctx.get(dut.ring.take), ctx.get(dut.free)
            assert takes == (bool(chunk) and level >= count and free and not stop)
            assert not chunk or (ctx.get(dut.ring.offset), ctx.get(dut.ring.count)) == (offset, count)
            assert not chunk or ctx.get(dut.hungry) == (level < count)
            assert ctx.get(dut.i.ready) == (takes and last) and ctx.get(dut.idle) == (not valid)
            assert stall or free
            if takes:
                word = int.from_bytes(content[used : used + count], "little") << 8 * offset
                noise = int(rng.integers(1 << 63)) & ~((1 << 8 * count) - 1 << 8 * offset)
                ctx.set(dut.ring.data, word | noise)
                used, level, taken = used + count, level - count, taken + 1
            line = dut.line
            if ctx.get(line.valid & line.ready):
                mask = ctx.get(line.mask)
                kept = sum(0xFF << 8 * n for n in range(SIZE) if mask >> n & 1)
                where = Storage(ctx.get(line.storage).value), ctx.get(line.partition), ctx.get(line.address)
                given.append((*where, ctx.get(line.data) & kept, mask))
            completed.extend([cycle] * ctx.get(dut.burst))
            assert not ctx.get(dut.axi.aw.valid) or len(addressed) < len(completed)
            assert not ctx.get(dut.axi.w.valid) or len(written) < len(completed)
            addressed.extend([cycle] * ctx.get(dut.axi.aw.valid & dut.axi.aw.ready))
            written.extend([cycle] * ctx.get(dut.axi.w.valid & dut.axi.w.ready & dut.axi.w.payload.last))
            if free:
                valid = bool(takes)
            await ctx.tick()
            number = number + 1 if taken == len(beats) and ctx.get(dut.idle) else 0
            cycle, quiet = cycle + 1, number > 50
            assert cycle < 100 * len(beats)

    options = {"base": base, "stall": stall, "seed": 2584, "hold": 300, "held": held}
    serve = partial(serve_writes, axi=dut.axi, memory=memory, bursts=bursts, **options)
    simulate(dut, bench, background=[serve], warm_up=WARM_UP)
    assert given == lines and memory == expected
    in_hbm = [chunk for chunk in chunks if chunk["storage"] == Storage.HBM]
    wanted = [(chunk["address"] // SIZE * SIZE, len(list(beats_of(chunk, SIZE)))) for chunk in in_hbm]
    assert [(start, length) for _, start, length in bursts] == wanted
    assert len(completed) == len(addressed) == len(written) == len(bursts)
    if not stall:
        assert {late - early for early, late in zip(completed, addressed, strict=True)} == {2}

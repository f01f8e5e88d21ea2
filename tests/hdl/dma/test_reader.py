from collections import deque
from itertools import product

import pytest

from neuroncore_rtl.hdl.dma import job, reader
from neuroncore_rtl.hdl.memory.port import LineRead
from neuroncore_rtl.spec.isa import Storage
from tests.hdl.dma.chunks import BASES, any_chunk, beats_of
from tests.hdl.simulation import WARM_UP, drive, expect, simulated, slow_if

SEED = 2311
SIZE, CHUNKS = 8, 300
ROOM = 32
CASES = list(product((0, 0.2, 0.7), BASES, (0, 1)))


@pytest.mark.parametrize(
    ("stall", "base", "latency"),
    slow_if(lambda stall, base, _: stall == 0.2 or (stall == 0) == (base == BASES[1]), CASES),
)
@simulated(lambda latency: reader.Reader(SIZE, ROOM, latency), warm_up=WARM_UP)
async def test_pieces_of_chunks_in_order_with_their_formats_and_errors(ctx, dut, stall, base, latency, rng):
    limit = 1 << job.Formats.as_shape().size
    chunks = [any_chunk(rng, SIZE, base) | {"formats": int(rng.integers(limit))} for _ in range(CHUNKS)]
    beats = [(chunk, *beat) for chunk in chunks for beat in beats_of(chunk, SIZE)]
    answers = [int(rng.choice((0, 0, 0, 0, 1, 2, 3))) for _ in beats]
    contents = [int.from_bytes(rng.bytes(SIZE), "little") for _ in beats]
    expected = [
        (content, offset, count, chunk["formats"], int(answer != 0 and chunk["storage"] == Storage.HBM))
        for (chunk, offset, count, _), content, answer in zip(beats, contents, answers, strict=True)
    ]
    found, given, cycle, deepest = [], 0, 0, 0
    beat = 0  # index of the first beat of the next chunk, and number of requested beats
    pending = deque()  # with a latency, accepted chunks on chip with no line request accepted yet
    owed, lines = deque(), deque([None] * LineRead.LATENCY[latency])
    while len(found) < len(expected) or cycle < 20:
        chunk = chunks[given] if given < len(chunks) else None
        numbers = list(range(beat, beat + len(list(beats_of(chunk, SIZE))))) if chunk else []
        plain = {name: chunk[name] for name in ("storage", "partition", "address", "bytes")} if chunk else {}
        drive(ctx, dut.i, valid=chunk is not None, payload=plain)
        drive(ctx, dut, formats=chunk["formats"] if chunk else 0)
        line_ready, ar_ready, ready = (rng.random() >= stall for _ in range(3))
        ready = ready and cycle % 300 > 100
        drive(ctx, dut, **{"line.ready": line_ready, "axi.ar.ready": ar_ready, "o.ready": ready})
        arrival = owed.popleft() if owed and rng.random() >= stall else None
        noise = {"data": int(rng.integers(1 << 63)), "resp": int(rng.integers(4))}
        answer = noise if arrival is None else {"data": contents[arrival], "resp": answers[arrival]}
        drive(ctx, dut.axi.r, valid=arrival is not None, payload=answer)
        line = lines.popleft()
        ctx.set(dut.line.data, int(rng.integers(1 << 63)) if line is None else contents[line])
        assert ctx.get(dut.axi.r.ready)
        burst, access = ctx.get(dut.axi.ar.valid & dut.axi.ar.ready), ctx.get(dut.line.valid & dut.line.ready)
        in_flight = beat - len(found)
        outstanding = any(n is not None for n in (line, *lines)), bool(owed) or arrival is not None
        hbm = chunk is not None and chunk["storage"] == Storage.HBM
        room = chunk is not None and ROOM - in_flight >= len(numbers)
        asks = room and not hbm and not outstanding[1]
        assert ctx.get(dut.axi.ar.valid) == (hbm and room and not outstanding[0] and not pending)
        assert ctx.get(dut.line.valid) == (bool(pending) if latency else asks)
        accepted = burst or asks and (len(pending) < 2 if latency else access)
        assert ctx.get(dut.i.ready) == accepted
        lines.append(None)
        request = pending[0] if pending else (chunk, numbers[:1])
        if burst:
            expect(ctx, dut.axi.ar.payload, addr=chunk["address"] // SIZE * SIZE, len=len(numbers) - 1)
            owed.extend(numbers)
        if asks and accepted and latency:
            pending.append((chunk, numbers[:1]))
        if access:
            of, [lines[-1]] = request
            if latency:
                pending.popleft()
            address, word = of["address"] % (1 << 18) // SIZE * SIZE, of["address"] % SIZE // 4
            expect(ctx, dut.line, storage=of["storage"], partition=of["partition"], address=address, word=word)
        expect(ctx, dut, busy=in_flight > 0, starved=outstanding[1] and not ctx.get(dut.o.valid))
        if accepted:
            given, beat = given + 1, numbers[-1] + 1
        deepest = max(deepest, beat - len(found))
        if ctx.get(dut.o.valid & dut.o.ready):
            piece = ctx.get(dut.o.payload)
            part, formats = piece.bytes, piece.formats.as_bits()
            found.append((part.data, part.offset, part.count, formats, piece.bad))
        await ctx.tick()
        cycle += 1
        assert cycle < 100 * len(beats)
    assert found == expected and deepest == ROOM

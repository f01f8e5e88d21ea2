"""DMA reader: chunks of both memories in any order, each memory with long latencies."""

from collections import deque
from itertools import product

import pytest

from neuroncore_rtl.hdl.dma.job import Formats
from neuroncore_rtl.hdl.dma.reader import Reader
from neuroncore_rtl.hdl.memory.port import LineRead
from neuroncore_rtl.spec.isa import Storage
from tests.hdl.dma.chunks import BASES, any_chunk, beats_of
from tests.hdl.simulation import WARM_UP, drive, simulated
from tests.hdl.slow import slow_if

SEED = 2311

SIZE, CHUNKS = 8, 300


def data_at(storage, address):
    return (address // SIZE * 2 + (storage == Storage.HBM)) * 0x9E3779B97F4A7C15 % (1 << 8 * SIZE)


@pytest.mark.parametrize("latency", [0, 1])
@pytest.mark.parametrize("patience", [1.0, 0.3, 0.05])
@simulated(lambda latency: Reader(SIZE, 32, latency))
async def test_pieces_keep_the_order_of_chunks_when_lines_are_slow(ctx, dut, latency, patience, rng):
    storages = [(Storage.SBUF, Storage.HBM)[n] for n in rng.integers(2, size=CHUNKS)]
    addresses = [int(rng.integers(1 << 14)) * SIZE for _ in range(CHUNKS)]
    found, sent = [], 0
    beats, lines = deque(), deque([None] * LineRead.LATENCY[latency])
    drive(ctx, dut.axi.ar, ready=1)
    drive(ctx, dut.o, ready=1)
    for _ in range(100 * CHUNKS):
        at = min(sent, CHUNKS - 1)
        payload = {"storage": storages[at], "partition": 0, "address": addresses[at], "bytes": SIZE}
        drive(ctx, dut.i, valid=sent < CHUNKS, payload=payload)
        ctx.set(dut.line.ready, int(rng.random() < patience))
        arrival = beats.popleft() if beats else None
        drive(ctx, dut.axi.r, valid=arrival is not None, payload={"data": arrival or 0, "last": 1, "resp": 0})
        ctx.set(dut.line.data, lines.popleft() or 0)
        await ctx.delay(1e-9)
        taken = ctx.get(dut.line.valid & dut.line.ready)
        lines.append(data_at(Storage.SBUF, ctx.get(dut.line.address)) if taken else None)
        if ctx.get(dut.axi.ar.valid):
            beats.append(data_at(Storage.HBM, ctx.get(dut.axi.ar.payload.addr)))
        if ctx.get(dut.o.valid):
            found.append(ctx.get(dut.o.payload.bytes.data))
        sent += ctx.get(dut.i.valid & dut.i.ready)
        await ctx.tick()
        if len(found) == CHUNKS:
            break
    assert found == [data_at(*where) for where in zip(storages, addresses, strict=True)]
    await ctx.tick()
    assert not ctx.get(dut.busy)


ROOM = 32


@pytest.mark.parametrize(
    ("stall", "base"),
    slow_if(lambda *case: case not in ((0, BASES[0]), (0.7, BASES[1])), product((0, 0.2, 0.7), BASES)),
)
@simulated(lambda: Reader(SIZE, ROOM), warm_up=WARM_UP)
async def test_pieces_of_chunks_with_their_formats_and_errors(ctx, dut, stall, base, rng):
    # HBM and the lines stall, and the buffer fills up.
    chunks = [
        any_chunk(rng, SIZE, base) | {"formats": int(rng.integers(1 << Formats.as_shape().size))} for _ in range(CHUNKS)
    ]
    beats = [(chunk, *beat) for chunk in chunks for beat in beats_of(chunk, SIZE)]
    answers = [int(rng.choice((0, 0, 0, 0, 1, 2, 3))) for _ in beats]
    contents = [int.from_bytes(rng.bytes(SIZE), "little") for _ in beats]
    expected = [
        (content, offset, count, chunk["formats"], int(answer != 0 and chunk["storage"] == Storage.HBM))
        for (chunk, offset, count, _), content, answer in zip(beats, contents, answers, strict=True)
    ]
    found, given, requested, cycle, deepest = [], 0, 0, 0, 0
    beat = 0  # index of the first beat of the next chunk
    owed, lines = deque(), deque([None] * LineRead.LATENCY[0])
    while len(found) < len(expected) or cycle < 20:
        chunk = chunks[given] if given < len(chunks) else None
        numbers = list(range(beat, beat + len(list(beats_of(chunk, SIZE))))) if chunk else []
        plain = {name: chunk[name] for name in ("storage", "partition", "address", "bytes")} if chunk else {}
        drive(ctx, dut.i, valid=int(chunk is not None), payload=plain)
        ctx.set(dut.formats.as_value(), chunk["formats"] if chunk else 0)
        ctx.set(dut.line.ready, int(rng.random() >= stall))
        ctx.set(dut.axi.ar.ready, int(rng.random() >= stall))
        ctx.set(dut.o.ready, int(rng.random() >= stall and cycle % 300 > 100))
        arrival = owed.popleft() if owed and rng.random() >= stall else None
        noise = {"data": int(rng.integers(1 << 63)), "resp": int(rng.integers(4))}
        answer = noise if arrival is None else {"data": contents[arrival], "resp": answers[arrival]}
        drive(ctx, dut.axi.r, valid=int(arrival is not None), payload=answer)
        line = lines.popleft()
        ctx.set(dut.line.data, int(rng.integers(1 << 63)) if line is None else contents[line])
        await ctx.delay(1e-9)
        assert ctx.get(dut.axi.r.ready)
        burst, access = ctx.get(dut.axi.ar.valid & dut.axi.ar.ready), ctx.get(dut.line.valid & dut.line.ready)
        assert ctx.get(dut.i.ready) == (burst or access)
        requests = (ctx.get(dut.axi.ar.valid), ctx.get(dut.line.valid))
        in_flight = requested - len(found)
        outstanding = any(n is not None for n in (line, *lines)), bool(owed) or arrival is not None
        if chunk:
            room = ROOM - in_flight >= len(numbers)
            hbm = chunk["storage"] == Storage.HBM
            assert requests == (hbm and room and not outstanding[0], not hbm and room and not outstanding[1])
        else:
            assert requests == (0, 0)
        lines.append(None)
        if burst:
            payload = ctx.get(dut.axi.ar.payload)
            assert (payload.addr, payload.len) == (chunk["address"] // SIZE * SIZE, len(numbers) - 1)
            owed.extend(numbers)
        if access:
            where = ctx.get(dut.line.storage), ctx.get(dut.line.partition), ctx.get(dut.line.address)
            assert (int(where[0].value), *where[1:]) == (
                int(chunk["storage"]), chunk["partition"], chunk["address"] % (1 << 18) // SIZE * SIZE,
            )  # fmt: skip
            assert ctx.get(dut.line.word) == chunk["address"] % SIZE // 4
            lines[-1] = numbers[0]
        assert ctx.get(dut.busy) == (in_flight > 0)
        assert ctx.get(dut.starved) == (outstanding[1] and not ctx.get(dut.o.valid))
        if burst or access:
            given, beat, requested = given + 1, numbers[-1] + 1, requested + len(numbers)
        deepest = max(deepest, requested - len(found))
        if ctx.get(dut.o.valid & dut.o.ready):
            piece = ctx.get(dut.o.payload)
            formats = ctx.get(dut.o.payload.formats.as_value())
            found.append((piece.bytes.data, piece.bytes.offset, piece.bytes.count, formats, piece.bad))
        await ctx.tick()
        cycle += 1
        assert cycle < 100 * len(beats)
    assert found == expected and deepest == ROOM

import random
from collections import deque
from functools import partial

import pytest

from neuroncore_rtl.hdl.board.memory import BeatSplitter, BurstServer
from neuroncore_rtl.hdl.board.sdram_chip import MT48LC16M16
from tests.hdl.simulation import drive, simulate
from tests.hdl.streams import play

SIZE = 8
MEMORY_BYTES = 1 << 16
DECERR = 3


class Manager:
    def __init__(self, port, first: int, identity: int, seed: int):
        self.port, self.first, self.identity = port, first, identity
        self.rng = random.Random(seed)
        self.memory = bytearray(4096)
        self.done = False

    async def run(self, ctx) -> None:
        rng, port = self.rng, self.port
        for _ in range(10):
            beats = rng.randrange(1, 9)
            offset = rng.randrange(4096 // SIZE - beats) * SIZE
            data, strobes = rng.randbytes(beats * SIZE), [rng.randrange(256) for _ in range(beats)]
            await self._write_burst(ctx, self.first + offset, data, strobes)
            for n, byte in enumerate(data):
                if strobes[n // SIZE] >> n % SIZE & 1:
                    self.memory[offset + n] = byte
            found, responses = await self._read_burst(ctx, self.first + offset, beats)
            assert responses == {0} and found == self.memory[offset : offset + beats * SIZE]
        ctx.set(port.ar.valid, 0)
        self.done = True

    async def _write_burst(self, ctx, address: int, data: bytes, strobes: list[int]) -> int:
        port, words = self.port, deque(range(len(strobes)))
        drive(ctx, port.aw, payload={"id": self.identity, "addr": address, "len": len(strobes) - 1}, valid=1)
        for _ in range(self.rng.randrange(4)):
            assert not ctx.get(port.aw.ready)
            await ctx.tick()
        ctx.set(port.b.ready, 1)
        while True:
            if words:
                part = int.from_bytes(data[words[0] * SIZE :][:SIZE], "little")
                ctx.set(port.w.payload, {"data": part, "strb": strobes[words[0]], "last": len(words) == 1})
            ctx.set(port.w.valid, bool(words))
            sampled = port.aw.ready, port.aw.valid, port.w.ready, port.b.valid, port.b.payload
            *_, aw, address_waits, w, b, answer = await ctx.tick().sample(*sampled)
            if aw and address_waits:
                ctx.set(port.aw.valid, 0)
            if words and w:
                words.popleft()
            if b:
                ctx.set(port.b.ready, 0)
                assert not words and answer.id == self.identity
                return answer.resp

    async def _read_burst(self, ctx, address: int, beats: int) -> tuple[bytes, set[int]]:
        port, found, responses = self.port, bytearray(), set()
        drive(ctx, port.ar, payload={"id": self.identity, "addr": address, "len": beats - 1}, valid=1)
        while True:
            takes = self.rng.random() < 0.7
            ctx.set(port.r.ready, takes)
            sampled = port.ar.ready, port.ar.valid, port.r.valid, port.r.payload
            *_, ar, requests, r, answer = await ctx.tick().sample(*sampled)
            if ar and requests:
                ctx.set(port.ar.valid, 0)
            if r and takes:
                assert answer.id == self.identity
                found += answer.data.to_bytes(SIZE, "little")
                responses.add(answer.resp)
                if answer.last:
                    assert len(found) == beats * SIZE
                    ctx.set(port.r.ready, 0)
                    return bytes(found), responses


async def serve_beats(ctx, dut, memory: bytearray) -> None:
    """Model a memory that accepts a beat in half of the cycles, and responds in order with random latency."""
    rng, answers, offered = random.Random(9), deque(), False
    while True:
        takes = rng.random() < 0.5
        ctx.set(dut.beats.ready, takes)
        if not offered and answers and rng.random() < 0.5:
            offered = True
            ctx.set(dut.answers.payload, answers[0])
        ctx.set(dut.answers.valid, offered)
        *_, valid, beat, taken = await ctx.tick().sample(dut.beats.valid, dut.beats.payload, dut.answers.ready)
        if offered and taken:
            answers.popleft()
            offered = False
        if valid and takes:
            assert beat.address < MEMORY_BYTES
            if beat.write:
                for n in range(SIZE):
                    if beat.strb >> n & 1:
                        memory[beat.address + n] = beat.data >> 8 * n & 0xFF
            else:
                answers.append(int.from_bytes(memory[beat.address :][:SIZE], "little"))


@pytest.mark.parametrize("count", [1, 3])
def test_bursts_of_several_managers(count):
    dut, memory = BurstServer(SIZE, 3, count, MEMORY_BYTES), bytearray(MEMORY_BYTES)
    managers = [Manager(port, 4096 * n, 5 - n, n) for n, port in enumerate(dut.managers)]

    async def bench(ctx):
        for _ in range(20_000):
            if all(manager.done for manager in managers):
                return
            await ctx.tick()
        raise AssertionError("a manager hangs")

    simulate(dut, bench, background=[partial(serve_beats, dut=dut, memory=memory), *(one.run for one in managers)])
    for n, manager in enumerate(managers):
        assert memory[4096 * n : 4096 * (n + 1)] == manager.memory != bytes(4096)


def test_bursts_beyond_the_end_get_errors():
    dut, memory = BurstServer(SIZE, 3, 1, MEMORY_BYTES), bytearray(MEMORY_BYTES)
    manager = Manager(dut.managers[0], 0, 3, 1)

    async def bench(ctx):
        assert await manager._write_burst(ctx, MEMORY_BYTES, bytes(24), [255] * 3) == DECERR
        assert (await manager._read_burst(ctx, MEMORY_BYTES + 4096, 3))[1] == {DECERR}
        await manager.run(ctx)

    simulate(dut, bench, background=[partial(serve_beats, dut=dut, memory=memory)])


@pytest.mark.parametrize("stall", [0, 0.5])
def test_beats_become_words_and_words_beats(stall):
    dut, rng, count = BeatSplitter(SIZE, MT48LC16M16), random.Random(2), 60
    beats = [
        {"address": SIZE * rng.randrange(1 << 22), "write": rng.randrange(2), "data": rng.getrandbits(64), "strb": n}
        for n in range(count)
    ]
    beat, word = dut.beats.payload.shape(), dut.words.payload.shape()

    async def chip(ctx):
        arriving = [None] * 2
        while True:
            *_, valid, ready, payload = await ctx.tick().sample(dut.words.valid, dut.words.ready, dut.words.payload)
            arriving.append(payload.number * 40503 & 0xFFFF if valid and ready and not payload.write else None)
            arrived = arriving.pop(0)
            drive(ctx, dut.read, valid=arrived is not None, payload=arrived or 0)

    reads = [one for one in beats if not one["write"]]
    given = {"beats": [beat.const(one).as_bits() for one in beats]}
    played = play(dut, given, {"words": 4 * count, "answers": len(reads)}, stall=stall, others=[chip])
    found = map(word.from_bits, played.payloads["words"])
    for one in beats:
        for n in range(4):
            got, number = next(found), one["address"] // 2 + n
            assert (got.number, got.write) == (number, one["write"])
            if one["write"]:
                assert (got.data, got.mask) == (one["data"] >> 16 * n & 0xFFFF, one["strb"] >> 2 * n & 3)
    wanted = [sum(((one["address"] // 2 + n) * 40503 & 0xFFFF) << 16 * n for n in range(4)) for one in reads]
    assert played.payloads["answers"] == wanted
    cycles = played.cycles["words"]
    assert stall or cycles[-1] - cycles[0] < 4 * count + 4 * len(reads)

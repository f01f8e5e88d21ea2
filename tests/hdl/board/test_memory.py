import random
from collections import deque
from functools import partial
from itertools import product

import pytest

from neuroncore_rtl.hdl.board.memory import BeatSplitter, BurstServer
from neuroncore_rtl.hdl.board.sdram_chip import MT48LC16M16
from neuroncore_rtl.hdl.memory.axi import PAGE_BYTES
from tests.hdl.simulation import drive
from tests.hdl.streams import play

SIZE = 8
MEMORY_BYTES = 1 << 16
DECERR = 3


async def serve_beats(ctx, dut, memory: bytearray) -> None:
    """Model a memory that accepts a beat in half of the cycles, and responds in order with random latency."""
    rng, answers, offered = random.Random(9), deque(), False
    while True:
        takes = rng.random() < 0.5
        offered = offered or bool(answers) and rng.random() < 0.5
        drive(ctx, dut.answers, valid=offered, payload=answers[0] if offered else 0)
        ctx.set(dut.beats.ready, takes)
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


@pytest.mark.parametrize(("count", "stall"), [(1, 0), (3, 0.3)])
def test_bursts_of_several_managers(count, stall):
    """Each manager reads a page and writes another one; bursts beyond the end of memory get errors."""
    dut, rng = BurstServer(SIZE, 3, count, MEMORY_BYTES), random.Random(count)
    memory = bytearray(rng.randbytes(MEMORY_BYTES))
    expected, ports, inputs, outputs = bytearray(memory), {}, {}, {}
    for n, manager in enumerate(dut.managers):
        identity, sent, received = {"id": 5 - n}, {"ar": [], "aw": [], "w": []}, {"r": [], "b": []}
        for _ in range(20):
            beats, exists = rng.randrange(1, 9), rng.random() < 0.8
            first = 2 * PAGE_BYTES * n + SIZE * rng.randrange(PAGE_BYTES // SIZE - beats) + MEMORY_BYTES * (not exists)
            response = identity | {"resp": 0 if exists else DECERR}
            sent["ar"].append(identity | {"len": beats - 1, "addr": first})
            sent["aw"].append(identity | {"len": beats - 1, "addr": first + PAGE_BYTES})
            received["b"].append(response)
            for beat in range(beats):
                place, last = first + SIZE * beat, {"last": beat == beats - 1}
                found = int.from_bytes(memory[place : place + SIZE], "little")
                received["r"].append(response | last | {"data": found})
                data, strobes = rng.randbytes(SIZE), rng.randrange(1 << SIZE)
                sent["w"].append(last | {"data": int.from_bytes(data, "little"), "strb": strobes})
                for byte in range(SIZE * exists):
                    if strobes >> byte & 1:
                        expected[place + PAGE_BYTES + byte] = data[byte]
        for streams, side in ((inputs, sent), (outputs, received)):
            for name, payloads in side.items():
                ports[name, n] = channel = getattr(manager, name)
                streams[name, n] = [channel.payload.shape().const(one).as_bits() for one in payloads]
    counts = {name: len(payloads) for name, payloads in outputs.items()}
    serve = partial(serve_beats, dut=dut, memory=memory)
    played = play(dut, inputs, counts, ports=ports, stall=stall, others=[serve])
    assert {name: played.payloads[name] for name in outputs} == outputs and memory == expected


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
    for got, (one, n) in zip(map(word.from_bits, played.payloads["words"]), product(beats, range(4)), strict=True):
        assert (got.number, got.write) == (one["address"] // 2 + n, one["write"])
        if one["write"]:
            assert (got.data, got.mask) == (one["data"] >> 16 * n & 0xFFFF, one["strb"] >> 2 * n & 3)
    wanted = [sum(((one["address"] // 2 + n) * 40503 & 0xFFFF) << 16 * n for n in range(4)) for one in reads]
    assert played.payloads["answers"] == wanted
    cycles = played.cycles["words"]
    assert stall or cycles[-1] - cycles[0] < 4 * count + 4 * len(reads)

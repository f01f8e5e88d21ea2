"""Result store: an announcement is a write request, with its address, that precedes the result to write."""

from collections import deque

import pytest

from neuroncore_rtl.hdl.elementwise.place import quadrants
from neuroncore_rtl.hdl.elementwise.store import ResultStore
from neuroncore_rtl.hdl.memory.port import ADDRESS_BITS
from neuroncore_rtl.spec.timing import STORE_LATENCY
from tests.hdl.elementwise.instructions import CONFIGS
from tests.hdl.simulation import WARM_UP, drive, expect, packed, random_bits, simulated

SEED = 4181
DEPTH, CYCLES = 5, 500
TRIED = CONFIGS["8x4"]

BEFORE = 1, 4
"""Minimum cycles from an announcement to its result, by `port_latency`."""


def any_write(rng, config):
    size = int(rng.integers(3))
    place = {
        "address": int(rng.integers(1 << ADDRESS_BITS - size)) << size,
        "quadrant": int(rng.integers(quadrants(config))),
        "storage": int(rng.integers(2)),
        "size": size,
    }
    partitions = int(rng.integers(1, config.partitions + 1))
    return {"place": place, "partitions": partitions, "last": int(rng.integers(2))}


def port_values(config, write, words, enable) -> dict[str, int]:
    place, lanes = write["place"], config.partitions
    byte, turn = place["address"] % 4, place["quadrant"] * config.quadrant
    present = enable & (1 << write["partitions"]) - 1
    turned = [0] * turn + [word << 8 * byte & 0xFFFFFFFF for word in words]
    return {
        "storage": place["storage"],
        "address": place["address"] - byte,
        "mask": (1 << (1 << place["size"])) - 1 << byte & 15,
        "enable": present << turn & (1 << lanes) - 1,
        "data": packed(turned[:lanes]),
    }


@pytest.mark.parametrize("stall", [0, 0.3, 0.7])
@pytest.mark.parametrize("name", ["8x4", "registered"])
@simulated(lambda name: ResultStore(CONFIGS[name], DEPTH), warm_up=WARM_UP)
async def test_every_port_in_every_cycle(ctx, dut, name, stall, rng):
    config = CONFIGS[name]
    latency, before = STORE_LATENCY[config.port_latency], BEFORE[config.port_latency]
    announcements, results = deque(), deque()
    outstanding, retired, count, full = 0, 0, 0, 0
    for cycle in range(CYCLES):
        write = any_write(rng, config)
        announces = outstanding < DEPTH and rng.random() >= stall
        drive(ctx, dut.writes, valid=int(announces), payload=write)
        arrives = bool(announcements) and cycle >= announcements[0][0] and rng.random() >= stall / 2
        enable = random_bits(rng, config.partitions)
        size = announcements[0][1]["place"]["size"] if arrives else 2
        words = [random_bits(rng, 8 << size) for _ in range(config.partitions)]
        drive(ctx, dut, result_valid=int(arrives), result=packed(words), enable=enable)
        ready = rng.random() >= stall and cycle % 100 > 20
        ctx.set(dut.port.ready, int(ready))
        valid = bool(results) and cycle >= results[0][0]
        expect(ctx, dut, room=outstanding < DEPTH, drained=outstanding == 0, retired=retired)
        expect(ctx, dut.port, valid=valid)
        if valid:
            _, last, expected = results[0]
            expect(ctx, dut.port, **expected)
        retired = 0
        if valid and ready:
            retired, outstanding, count = last, outstanding - 1, count + 1
            results.popleft()
        if arrives:
            _, announced = announcements.popleft()
            results.append((cycle + latency, announced["last"], port_values(config, announced, words, enable)))
        if announces:
            announcements.append((cycle + before, write))
            outstanding += 1
        full += outstanding == DEPTH
        await ctx.tick()
    assert full > 20 and count > CYCLES * (1 - stall) / 3

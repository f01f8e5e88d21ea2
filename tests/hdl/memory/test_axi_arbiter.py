"""The arbiter: turns, the order of writes, the way back. What it does with real traffic is in
tests/tb/benches/test_axi.py."""

import random
from functools import partial

import pytest

from neuroncore_rtl.hdl.memory.axi_arbiter import AxiArbiter
from tests.hdl.simulation import drive, put, simulate, simulated

SIZE = 8


@pytest.mark.parametrize("channel", ["ar", "aw"])
@pytest.mark.parametrize("count", [1, 3, 5])
@simulated(lambda count: AxiArbiter(SIZE, count))
async def test_addresses_are_taken_in_turn_one_a_cycle(ctx, dut, channel, count):
    given = getattr(dut.port, channel)
    ctx.set(given.ready, 1)
    for number, manager in enumerate(dut.managers):
        drive(ctx, getattr(manager, channel), valid=1, payload={"addr": 4096 * number, "len": number})
    await ctx.tick()
    for turn in range(dut.WRITES):
        *_, valid, address = await ctx.tick().sample(given.valid, given.payload)
        number = turn % count
        assert (valid, address.id, address.addr, address.len) == (1, number, 4096 * number, number)


@pytest.mark.parametrize("stall", [0, 0.5])
def test_beats_follow_the_order_of_the_addresses(stall):
    """Managers of different speed; the port takes beats before addresses, too."""
    count, bursts = 3, 12
    dut = AxiArbiter(SIZE, count)
    rng = random.Random(3)
    lengths = {number: [rng.randrange(4) for _ in range(bursts)] for number in range(count)}

    async def ask(ctx, number):
        manager = dut.managers[number]
        for place, length in enumerate(lengths[number]):
            await put(ctx, manager.aw, {"len": length, "addr": place * 4096})

    async def write(ctx, number):
        manager, pace = dut.managers[number], random.Random(number)
        for place, length in enumerate(lengths[number]):
            for beat in range(length + 1):
                while stall and pace.random() < number / 4:
                    await ctx.tick()
                payload = {"data": number << 32 | place << 16 | beat, "strb": beat + 1, "last": beat == length}
                await put(ctx, manager.w, payload)

    async def bench(ctx):
        port, pace = dut.port, random.Random(stall)
        addresses, beats, cycles = [], [], 0
        total = sum(length + 1 for each in lengths.values() for length in each)
        while len(beats) < total or len(addresses) < count * bursts:
            for channel in (port.aw, port.w):
                ctx.set(channel.ready, pace.random() >= stall)
            taken = (port.aw.valid & port.aw.ready, port.w.valid & port.w.ready)
            *_, asked, written, address, beat = await ctx.tick().sample(*taken, port.aw.payload, port.w.payload)
            if asked:
                addresses.append((address.id, address.addr // 4096, address.len))
            if written:
                beats.append((beat.data, beat.strb, beat.last))
            cycles += 1
            assert cycles < 50 * total
        assert beats == [
            (number << 32 | place << 16 | beat, beat + 1, beat == length)
            for number, place, length in addresses
            for beat in range(length + 1)
        ]
        if not stall:
            assert cycles <= total + 4  # a beat a cycle

    tasks = [partial(task, number=number) for task in (ask, write) for number in range(count)]
    simulate(dut, bench, background=tasks)


@simulated(lambda: AxiArbiter(SIZE, 3))
async def test_responses_go_to_whom_they_belong(ctx, dut):
    rng, count = random.Random(1), len(dut.managers)
    for _ in range(100):
        ready = [rng.randrange(2) for _ in range(count)]
        for channel in ("r", "b"):
            whose = rng.randrange(count)
            payload = {"resp": rng.randrange(4)}
            if channel == "r":
                payload |= {"data": rng.randrange(1 << 64), "last": rng.randrange(2)}
            drive(ctx, getattr(dut.port, channel), valid=1, payload={"id": whose, **payload})
            managers = [getattr(manager, channel) for manager in dut.managers]
            for manager, is_ready in zip(managers, ready, strict=True):
                ctx.set(manager.ready, is_ready)
            assert [ctx.get(manager.valid) for manager in managers] == [n == whose for n in range(count)]
            found = ctx.get(managers[whose].payload)
            assert {name: found[name] for name in payload} == payload
            assert ctx.get(getattr(dut.port, channel).ready) == ready[whose]
        await ctx.tick()


def test_id_bits():
    assert [AxiArbiter.id_bits(count) for count in (1, 2, 3, 4, 5, 18)] == [1, 1, 2, 2, 3, 5]

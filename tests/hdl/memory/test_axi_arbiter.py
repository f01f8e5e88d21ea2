"""The arbiter: turns, the order of writes, the way back. What it does with real traffic is in
tests/tb/benches/test_axi.py."""

import random
from functools import partial

import pytest

from neuroncore_rtl.hdl.memory.axi_arbiter import AxiArbiter
from tests.hdl.simulation import put, simulate

SIZE = 8


@pytest.mark.parametrize("channel", ["ar", "aw"])
@pytest.mark.parametrize("count", [1, 3, 5])
def test_addresses_are_taken_in_turn_one_a_cycle(channel, count):
    dut = AxiArbiter(SIZE, count)

    async def bench(ctx):
        ctx.set(dut.port.ar.ready, 1)
        ctx.set(dut.port.aw.ready, 1)
        for number, manager in enumerate(dut.managers):
            asked = getattr(manager, channel)
            ctx.set(asked.valid, 1)
            ctx.set(asked.payload.addr, 4096 * number)
            ctx.set(asked.payload.len, number)
        found = []
        await ctx.tick()
        for _ in range(dut.WRITES):
            given = getattr(dut.port, channel)
            *_, valid, address = await ctx.tick().sample(given.valid, given.payload)
            assert valid
            assert (address.addr, address.len) == (4096 * address.id, address.id)
            found.append(address.id)
        assert found == [n % count for n in range(dut.WRITES)]

    simulate(dut, bench)


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
        addresses, beats = [], []
        total = sum(length + 1 for each in lengths.values() for length in each)
        cycles = 0
        while len(beats) < total or len(addresses) < count * bursts:
            ready = [pace.random() >= stall for _ in range(2)]
            ctx.set(port.aw.ready, ready[0])
            ctx.set(port.w.ready, ready[1])
            *_, asked, address, written, beat = await ctx.tick().sample(
                port.aw.valid, port.aw.payload, port.w.valid, port.w.payload
            )
            if asked and ready[0]:
                addresses.append((address.id, address.addr // 4096, address.len))
            if written and ready[1]:
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


def test_responses_go_to_whom_they_belong():
    count = 3
    dut = AxiArbiter(SIZE, count)

    async def bench(ctx):
        rng = random.Random(1)
        for _ in range(100):
            number, other, ready = rng.randrange(count), rng.randrange(count), rng.randrange(1 << count)
            data, response, last = rng.randrange(1 << 64), rng.randrange(4), rng.randrange(2)
            ctx.set(dut.port.r.valid, 1)
            ctx.set(dut.port.r.payload, {"id": number, "data": data, "resp": response, "last": last})
            ctx.set(dut.port.b.valid, 1)
            ctx.set(dut.port.b.payload, {"id": other, "resp": response})
            for place, manager in enumerate(dut.managers):
                ctx.set(manager.r.ready, ready >> place & 1)
                ctx.set(manager.b.ready, ready >> place & 1)
            await ctx.delay(1e-7)
            assert [ctx.get(manager.r.valid) for manager in dut.managers] == [n == number for n in range(count)]
            assert [ctx.get(manager.b.valid) for manager in dut.managers] == [n == other for n in range(count)]
            beat = ctx.get(dut.managers[number].r.payload)
            assert (beat.data, beat.resp, beat.last) == (data, response, last)
            assert ctx.get(dut.managers[other].b.payload.resp) == response
            assert ctx.get(dut.port.r.ready) == ready >> number & 1
            assert ctx.get(dut.port.b.ready) == ready >> other & 1
            await ctx.tick()

    simulate(dut, bench)


def test_id_bits():
    assert [AxiArbiter.id_bits(count) for count in (1, 2, 3, 4, 5, 18)] == [1, 1, 2, 2, 3, 5]

"""The arbiter: turns, the order of writes, the way back. What it does with real traffic is in
tests/tb/benches/test_axi.py."""

import random
from functools import partial

import pytest
from amaranth.sim import Simulator

from neuroncore_rtl.hdl.memory.axi_arbiter import AxiArbiter

SIZE = 8


def simulate(dut: AxiArbiter, bench, *others) -> None:
    sim = Simulator(dut)
    sim.add_clock(1e-6)
    for other in others:
        sim.add_testbench(other, background=True)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize("channel", ["ar", "aw"])
@pytest.mark.parametrize("count", [1, 3, 5])
def test_addresses_are_taken_in_turn_one_a_cycle(channel, count):
    dut = AxiArbiter(SIZE, count)

    async def bench(ctx):
        ctx.set(dut.port.arready, 1)
        ctx.set(dut.port.awready, 1)
        for number, manager in enumerate(dut.managers):
            ctx.set(getattr(manager, f"{channel}valid"), 1)
            ctx.set(getattr(manager, f"{channel}addr"), 4096 * number)
            ctx.set(getattr(manager, f"{channel}len"), number)
        found = []
        await ctx.tick()
        for _ in range(dut.WRITES):
            names = (f"{channel}{name}" for name in ("valid", "id", "addr", "len"))
            *_, valid, number, address, length = await ctx.tick().sample(*(getattr(dut.port, name) for name in names))
            assert valid
            assert (address, length) == (4096 * number, number)
            found.append(number)
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
            ctx.set(manager.awvalid, 1)
            ctx.set(manager.awlen, length)
            ctx.set(manager.awaddr, place * 4096)
            await ctx.tick().until(manager.awready)
            ctx.set(manager.awvalid, 0)

    async def write(ctx, number):
        manager, pace = dut.managers[number], random.Random(number)
        for place, length in enumerate(lengths[number]):
            for beat in range(length + 1):
                while stall and pace.random() < number / 4:
                    await ctx.tick()
                ctx.set(manager.wvalid, 1)
                ctx.set(manager.wdata, number << 32 | place << 16 | beat)
                ctx.set(manager.wstrb, beat + 1)
                ctx.set(manager.wlast, beat == length)
                await ctx.tick().until(manager.wready)
                ctx.set(manager.wvalid, 0)

    async def bench(ctx):
        port, pace = dut.port, random.Random(stall)
        addresses, beats = [], []
        total = sum(length + 1 for each in lengths.values() for length in each)
        cycles = 0
        while len(beats) < total or len(addresses) < count * bursts:
            ready = [pace.random() >= stall for _ in range(2)]
            ctx.set(port.awready, ready[0])
            ctx.set(port.wready, ready[1])
            *_, awvalid, awid, address, length, wvalid, data, strobes, last = await ctx.tick().sample(
                port.awvalid, port.awid, port.awaddr, port.awlen, port.wvalid, port.wdata, port.wstrb, port.wlast
            )
            if awvalid and ready[0]:
                addresses.append((awid, address // 4096, length))
            if wvalid and ready[1]:
                beats.append((data, strobes, last))
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
    simulate(dut, bench, *tasks)


def test_responses_go_to_whom_they_belong():
    count = 3
    dut = AxiArbiter(SIZE, count)

    async def bench(ctx):
        rng = random.Random(1)
        for _ in range(100):
            number, other, ready = rng.randrange(count), rng.randrange(count), rng.randrange(1 << count)
            data, response, last = rng.randrange(1 << 64), rng.randrange(4), rng.randrange(2)
            ctx.set(dut.port.rvalid, 1)
            ctx.set(dut.port.rid, number)
            ctx.set(dut.port.rdata, data)
            ctx.set(dut.port.rresp, response)
            ctx.set(dut.port.rlast, last)
            ctx.set(dut.port.bvalid, 1)
            ctx.set(dut.port.bid, other)
            ctx.set(dut.port.bresp, response)
            for place, manager in enumerate(dut.managers):
                ctx.set(manager.rready, ready >> place & 1)
                ctx.set(manager.bready, ready >> place & 1)
            await ctx.delay(1e-7)
            assert [ctx.get(manager.rvalid) for manager in dut.managers] == [n == number for n in range(count)]
            assert [ctx.get(manager.bvalid) for manager in dut.managers] == [n == other for n in range(count)]
            manager = dut.managers[number]
            assert (ctx.get(manager.rdata), ctx.get(manager.rresp), ctx.get(manager.rlast)) == (data, response, last)
            assert ctx.get(dut.managers[other].bresp) == response
            assert ctx.get(dut.port.rready) == ready >> number & 1
            assert ctx.get(dut.port.bready) == ready >> other & 1
            await ctx.tick()

    simulate(dut, bench)


def test_id_bits():
    assert [AxiArbiter.id_bits(count) for count in (1, 2, 3, 4, 5, 18)] == [1, 1, 2, 2, 3, 5]

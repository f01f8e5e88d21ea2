"""AXI arbiter: round robin, order of write data, return path; tests/tb/tests/core/test_axi.py has real traffic."""

import random

import pytest

from neuroncore_rtl.hdl.memory.axi_arbiter import AxiArbiter
from tests.hdl.simulation import drive, expect, simulated
from tests.hdl.streams import play

SIZE = 8


@pytest.mark.parametrize("channel", ["ar", "aw"])
@pytest.mark.parametrize("count", [1, 3, 5])
@simulated(lambda count: AxiArbiter(SIZE, count))
async def test_addresses_are_accepted_in_round_robin_one_per_cycle(ctx, dut, channel, count):
    given = getattr(dut.port, channel)
    ctx.set(given.ready, 1)
    for number, manager in enumerate(dut.managers):
        drive(ctx, getattr(manager, channel), valid=1, payload={"addr": 4096 * number, "len": number})
    await ctx.tick()
    for turn in range(dut.WRITES):
        number = turn % count
        expect(ctx, given, valid=1, **{"payload.id": number, "payload.addr": 4096 * number, "payload.len": number})
        await ctx.tick()


@pytest.mark.parametrize("stall", [0, 0.5])
def test_beats_follow_the_order_of_the_addresses(stall):
    count, bursts, rng = 3, 12, random.Random(3)
    dut = AxiArbiter(SIZE, count)
    lengths = [[rng.randrange(4) for _ in range(bursts)] for _ in range(count)]
    request, address, beat = (channel.payload.shape() for channel in (dut.managers[0].aw, dut.port.aw, dut.port.w))

    def beats_of(number, place, length):
        for n in range(length + 1):
            yield beat.const({"data": number << 32 | place << 16 | n, "strb": n + 1, "last": n == length}).as_bits()

    ports, inputs, stalls = {"aw": dut.port.aw, "w": dut.port.w}, {}, {"aw": stall, "w": stall}
    for number, manager in enumerate(dut.managers):
        ports |= {("aw", number): manager.aw, ("w", number): manager.w}
        stalls |= {("aw", number): 0, ("w", number): stall and number / 4}
        places = list(enumerate(lengths[number]))
        inputs["aw", number] = [request.const({"len": n, "addr": 4096 * place}).as_bits() for place, n in places]
        inputs["w", number] = [word for place, length in places for word in beats_of(number, place, length)]
    total = sum(len(inputs["w", number]) for number in range(count))
    played = play(dut, inputs, {"aw": count * bursts, "w": total}, ports=ports, stall=stalls, limit=50 * total)
    given = map(address.from_bits, played.payloads["aw"])
    assert played.payloads["w"] == [word for one in given for word in beats_of(one.id, one.addr // 4096, one.len)]
    assert stall or played.cycles["w"][-1] < total + 4


@simulated(lambda: AxiArbiter(SIZE, 3))
async def test_responses_return_to_the_manager_of_their_id(ctx, dut):
    rng, count = random.Random(1), len(dut.managers)
    for _ in range(100):
        ready = [rng.randrange(2) for _ in range(count)]
        for channel in ("r", "b"):
            owner, port = rng.randrange(count), getattr(dut.port, channel)
            payload = {"resp": rng.randrange(4)}
            if channel == "r":
                payload |= {"data": rng.randrange(1 << 64), "last": rng.randrange(2)}
            drive(ctx, port, valid=1, payload={"id": owner, **payload})
            managers = [getattr(manager, channel) for manager in dut.managers]
            for manager, is_ready in zip(managers, ready, strict=True):
                ctx.set(manager.ready, is_ready)
            assert [ctx.get(manager.valid) for manager in managers] == [n == owner for n in range(count)]
            expect(ctx, managers[owner].payload, **payload)
            assert ctx.get(port.ready) == ready[owner]
        await ctx.tick()


def test_id_bits():
    assert [AxiArbiter.id_bits(count) for count in (1, 2, 3, 4, 5, 18)] == [1, 1, 2, 2, 3, 5]

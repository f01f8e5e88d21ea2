"""Read arbiter: addresses of two managers by priority, and beats back to the manager that requested them."""

import random

import pytest

from neuroncore_rtl.hdl.memory.read_arbiter import ReadArbiter
from tests.hdl.simulation import WARM_UP, drive, flash, simulated

SIZE = 8


@simulated(lambda: ReadArbiter(SIZE))
async def test_the_first_has_priority_without_latency(ctx, dut):
    ctx.set(dut.port.ar.ready, 1)
    for number, manager in enumerate(dut.managers):
        drive(ctx, manager.ar, valid=1, payload={"addr": 4096 * number, "len": number})
    for cycle in range(10):
        ctx.set(dut.managers[0].ar.valid, cycle % 3 < 2)
        *_, address = await ctx.tick().sample(dut.port.ar.payload)
        assert (address.addr // 4096, address.len) == ((0, 0) if cycle % 3 < 2 else (1, 1))


@pytest.mark.parametrize("alone", [0, 1])
@simulated(lambda alone: ReadArbiter(SIZE))
async def test_one_alone_has_every_cycle_until_too_many_bursts_are_open(ctx, dut, alone):
    ctx.set(dut.port.ar.ready, 1)
    drive(ctx, dut.managers[alone].ar, valid=1, payload={"addr": 64})
    granted = [(await ctx.tick().sample(dut.managers[alone].ar.ready))[-1] for _ in range(dut.bursts + 3)]
    assert granted == [1] * dut.bursts + [0] * 3
    await flash(ctx, dut.port.r, {"last": 1})
    assert ctx.get(dut.managers[alone].ar.ready)


@simulated(lambda: ReadArbiter(SIZE), warm_up=WARM_UP)
async def test_offered_addresses_stay_and_beats_return_to_their_loader(ctx, dut):
    rng, ar = random.Random(5), dut.port.ar
    waiting, before = [None, None], None
    owed, returned, expected = [], [[], []], [[], []]
    for number in range(3000):
        for which in (0, 1):
            if waiting[which] is None and rng.random() < 0.4:
                waiting[which] = {
                    "id": rng.randrange(2),
                    "addr": rng.getrandbits(39) << 1 | which,
                    "len": rng.getrandbits(8),
                }
            drive(ctx, dut.managers[which].ar, valid=waiting[which] is not None, payload=waiting[which] or {})
        ctx.set(ar.ready, rng.random() < 0.6)
        if owed and rng.random() < (0.9 if number // 150 % 2 else 0.02):  # now and then many bursts are open
            which, left = owed[0]
            beat = {"id": 0, "data": rng.getrandbits(8 * SIZE), "resp": rng.randrange(4), "last": left == 0}
            drive(ctx, dut.port.r, valid=1, payload=beat)
            expected[which].append(beat)
            owed[:1] = [(which, left - 1)] if left else []
        else:
            ctx.set(dut.port.r.valid, 0)
        for manager, beats in zip(dut.managers, returned, strict=True):
            if ctx.get(manager.r.valid):
                beat = ctx.get(manager.r.payload)
                beats.append({name: getattr(beat, name) for name in ("id", "data", "resp", "last")})
        readies = (manager.ar.ready for manager in dut.managers)
        *_, valid, taken, address, first, second = await ctx.tick().sample(ar.valid, ar.ready, ar.payload, *readies)
        assert before is None or (valid, address.addr, address.len) == (1, *before)
        before = (address.addr, address.len) if valid and not taken else None
        assert first + second == (valid and taken)
        if valid and taken:
            which = address.addr % 2
            assert (first, second)[which]
            assert {"id": address.id, "addr": address.addr, "len": address.len} == waiting[which]
            waiting[which] = None
            owed.append((which, rng.randrange(3)))
    assert returned == expected and min(map(len, returned)) > 250

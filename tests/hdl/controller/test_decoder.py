"""The decoder of the controller's bus: whose a request is, one at a time, and an error where nobody is."""

import pytest

from neuroncore_rtl.hdl.controller.decoder import REGION_BITS, Decoder
from tests.hdl.simulation import WARM_UP, drive, simulated

SEED = 4004
REGIONS = ((4,), (1, 2))
NOBODY = 0xF


def address_of(region: int, offset: int = 0) -> int:
    return region << 32 - REGION_BITS | offset


def owner_of(region: int) -> int | None:
    return next((number for number, regions in enumerate(REGIONS) if region in regions), None)


@pytest.mark.parametrize(("ready_share", "warm_up"), [(1.0, 0), (0.5, 0), (0.5, WARM_UP)])
@simulated(lambda: Decoder(REGIONS))
async def test_every_request_goes_to_its_owner_and_its_answer_back(ctx, dut, ready_share, warm_up, rng):
    """At random, with answers from the next cycle on; a request waits until the one before it is answered."""
    asked, answered = [], []
    waiting = None  # owner, cycles until it answers, result, error
    request = None
    for _ in range(3000):
        if request is None and rng.random() < 0.8:
            region = int(rng.choice((1, 2, 4, 0, 8, NOBODY)))
            request = {"address": address_of(region, 4 * int(rng.integers(1 << 20)))}
            fields = (("write", 2), ("mask", 16), ("data", 1 << 32))
            request |= {name: int(rng.integers(end)) for name, end in fields}
            drive(ctx, dut.bus, **request)
        ctx.set(dut.bus.valid, request is not None)
        answers = waiting is not None and waiting[1] == 0
        for number, peripheral in enumerate(dut.peripherals):
            mine = answers and waiting[0] == number
            result, error = waiting[2:] if mine else (int(rng.integers(1 << 32)), int(rng.integers(2)))
            ready = rng.random() < ready_share
            drive(ctx, peripheral, response=mine, result=result, error=error, ready=ready)
        assert ctx.get(dut.bus.response) == answers
        if answers:
            assert ctx.get(dut.bus.error) == waiting[3]
            assert waiting[0] is None or ctx.get(dut.bus.result) == waiting[2]
            answered.append(waiting)
        free = waiting is None or answers
        owner = owner_of(request["address"] >> 32 - REGION_BITS) if request else None
        for number, peripheral in enumerate(dut.peripherals):
            offered = bool(request and free and owner == number)
            assert ctx.get(peripheral.valid) == offered
            if offered:
                assert {name: ctx.get(getattr(peripheral, name)) for name in request} == request
        taken = request is not None and ctx.get(dut.bus.ready)
        if request is not None:
            assert taken == (free and (owner is None or ctx.get(dut.peripherals[owner].ready)))
        await ctx.tick()
        waiting = None if free else (waiting[0], waiting[1] - 1, *waiting[2:])
        if taken:
            asked.append(owner)
            late, result = (0, 0) if owner is None else (int(rng.integers(4)), int(rng.integers(1 << 32)))
            waiting = owner, late, result, 1 if owner is None else int(rng.integers(2))
            request = None
    assert len(asked) - len(answered) in (0, 1) and len(asked) > 500
    assert set(asked) == {None, 0, 1}


@simulated(lambda: Decoder(REGIONS, latency=1))
async def test_with_a_latency_an_answer_comes_a_cycle_later_and_the_next_request_behind_it(ctx, dut, rng):
    """Of peripherals that take what comes, and answer some cycles later."""
    answered = 0
    for _ in range(500):
        region = int(rng.choice((1, 2, 4, 0, NOBODY)))
        owner, late = owner_of(region), int(rng.integers(3))
        drive(ctx, dut.bus, valid=1, address=address_of(region))
        assert ctx.get(dut.bus.ready)
        assert [ctx.get(peripheral.valid) for peripheral in dut.peripherals] == [n == owner for n in (0, 1)]
        await ctx.tick()
        result, error = int(rng.integers(1 << 32)), int(rng.integers(2))
        for wait in reversed(range(late + 1 if owner is not None else 1)):
            assert not ctx.get(dut.bus.ready) and not ctx.get(dut.bus.response)
            assert not any(ctx.get(peripheral.valid) for peripheral in dut.peripherals)
            if owner is not None:
                drive(ctx, dut.peripherals[owner], response=not wait, result=result, error=error)
            await ctx.tick()
        if owner is not None:
            ctx.set(dut.peripherals[owner].response, 0)
        assert ctx.get(dut.bus.response) and not ctx.get(dut.bus.ready)
        assert ctx.get(dut.bus.error) == (1 if owner is None else error)
        assert owner is None or ctx.get(dut.bus.result) == result
        await ctx.tick()
        answered += owner is not None
    assert answered > 200


@simulated(lambda: Decoder(REGIONS))
async def test_a_region_of_nobody_answers_with_an_error_each_cycle(ctx, dut):
    drive(ctx, dut.bus, valid=1, address=address_of(NOBODY))
    for cycle in range(5):
        assert ctx.get(dut.bus.ready) and ctx.get(dut.bus.response) == ctx.get(dut.bus.error) == (cycle > 0)
        await ctx.tick()
    ctx.set(dut.bus.valid, 0)
    await ctx.tick()
    assert not ctx.get(dut.bus.response)

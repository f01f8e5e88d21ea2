import pytest

from neuroncore_rtl.hdl.controller.decoder import REGION_BITS, Decoder
from tests.hdl.simulation import WARM_UP, drive, expect, simulated

SEED = 4004
REGIONS = ((4,), (1, 2))


@pytest.mark.parametrize(
    ("latency", "ready_share", "warm_up"), [(0, 1.0, 0), (0, 0.5, 0), (0, 0.5, WARM_UP), (1, 1.0, 0), (1, 1.0, WARM_UP)]
)
@simulated(lambda latency: Decoder(REGIONS, latency))
async def test_requests_and_responses_one_at_a_time(ctx, dut, latency, ready_share, warm_up, rng):
    accepted, responses = [], []
    pending = request = late = None
    for _ in range(3000):
        if request is None and rng.random() < 0.8:
            region = int(rng.choice((1, 2, 4, 0, 8, 0xF)))
            request = {"address": region << 32 - REGION_BITS | 4 * int(rng.integers(1 << 20))}
            request |= {name: int(rng.integers(end)) for name, end in (("write", 2), ("mask", 16), ("data", 1 << 32))}
            drive(ctx, dut.bus, **request)
        ctx.set(dut.bus.valid, request is not None)
        responds = pending is not None and pending[1] == 0
        for number, peripheral in enumerate(dut.peripherals):
            is_owner = responds and pending[0] == number
            result, error = pending[2:] if is_owner else (int(rng.integers(1 << 32)), int(rng.integers(2)))
            drive(ctx, peripheral, response=is_owner, result=result, error=error, ready=rng.random() < ready_share)
        response = late if latency else pending if responds else None
        assert ctx.get(dut.bus.response) == (response is not None)
        if response:
            assert ctx.get(dut.bus.error) == response[3]
            assert response[0] is None or ctx.get(dut.bus.result) == response[2]
            responses.append(response)
        free = pending is None and late is None if latency else pending is None or responds
        owner = next((number for number, regions in enumerate(REGIONS) if request and region in regions), None)
        for number, peripheral in enumerate(dut.peripherals):
            offered = bool(request and free and owner == number)
            expect(ctx, peripheral, valid=offered, **request if offered else {})
        taken = request is not None and ctx.get(dut.bus.ready)
        if request is not None:
            assert taken == (free and (owner is None or ctx.get(dut.peripherals[owner].ready)))
        await ctx.tick()
        late = pending if responds else None
        pending = None if responds or not pending else (pending[0], pending[1] - 1, *pending[2:])
        if taken:
            accepted.append(owner)
            cycles, result = (0, 0) if owner is None else (int(rng.integers(4)), int(rng.integers(1 << 32)))
            pending = owner, cycles, result, 1 if owner is None else int(rng.integers(2))
            request = None
    assert len(accepted) - len(responses) in (0, 1) and len(accepted) > 500
    assert set(accepted) == {None, 0, 1}

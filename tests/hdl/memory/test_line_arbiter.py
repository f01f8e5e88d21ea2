"""Line ports that share one: every request comes through once, unchanged while it waits, and nobody is forgotten."""

import pytest

from neuroncore_rtl.hdl.memory.line_arbiter import LineReadArbiter, LineWriteArbiter
from tests.hdl.simulation import drive, simulated

SEED = 3
CYCLES = 600


@pytest.mark.parametrize("count", (1, 2, 5))
@pytest.mark.parametrize("kind", (LineReadArbiter, LineWriteArbiter))
@pytest.mark.parametrize(("share", "busy"), ((1.0, 1.0), (0.5, 0.3)))
@simulated(lambda kind, count: kind(16, count))
async def test_each_request_comes_through_once_and_nobody_waits_for_more_than_the_others(
    ctx, arbiter, kind, count, share, busy, rng
):
    """Numbered requests at random, which each requester gives away and the port takes."""
    given, taken = [[] for _ in range(count)], []
    offered, waited = [None] * count, [0] * count
    before, longest = None, 0
    for cycle in range(CYCLES):
        for number in range(count):
            if offered[number] is None and rng.random() < busy:
                offered[number] = number << 12 | cycle
            drive(ctx, arbiter.requesters[number], valid=offered[number] is not None, address=offered[number] or 0)
        ready = bool(rng.random() < share)
        ctx.set(arbiter.port.ready, ready)
        request = ctx.get(arbiter.port.valid), ctx.get(arbiter.port.address)
        assert request[0] == any(number is not None for number in offered)
        assert before in (None, request), "a request must stay until it is taken"
        before = request if request[0] and not ready else None
        if request[0] and ready:
            taken.append(request[1])
        for number in range(count):
            if offered[number] is None:
                continue
            if ctx.get(arbiter.requesters[number].ready):
                given[number].append(offered[number])
                offered[number], waited[number] = None, 0
            else:
                waited[number] += ready
                longest = max(longest, waited[number])
        await ctx.tick()
    print(f"{len(taken)} requests, longest wait for {longest} others")
    assert sorted(taken) == sorted(number for of in given for number in of)
    assert [[n for n in taken if n >> 12 == number] for number in range(count)] == given
    assert min(len(of) for of in given) > CYCLES * share * busy / count / 3
    assert longest <= count - 1
    if share == busy == 1.0:
        assert len(taken) == CYCLES


@simulated(lambda: LineReadArbiter(8, 3))
async def test_data_reach_every_reader(ctx, arbiter):
    ctx.set(arbiter.port.data, 0x0123456789ABCDEF)
    assert [ctx.get(arbiter.requesters[number].data) for number in range(3)] == [0x0123456789ABCDEF] * 3

# amaranth: UnusedElaboratable=no

"""Line ports that share one: every request comes through once, unchanged while it waits, and nobody is forgotten."""

import numpy as np
import pytest

from neuroncore_rtl.hdl.memory.line_arbiter import LineReadArbiter, LineWriteArbiter
from tests.hdl.simulation import simulate

SEED = 3
CYCLES = 600


def run(arbiter, share, busy):
    """Offer numbered requests at random, and return the numbers that each requester gave away and the port took."""
    rng = np.random.default_rng(SEED)
    given = [[] for _ in range(arbiter.count)]
    taken, longest = [], 0

    async def bench(ctx):
        nonlocal longest
        offered = [None] * arbiter.count
        before = None
        waited = [0] * arbiter.count
        for cycle in range(CYCLES):
            for number in range(arbiter.count):
                requester = arbiter.requesters[number]
                if offered[number] is None and rng.random() < busy:
                    offered[number] = number << 12 | cycle
                ctx.set(requester.valid, offered[number] is not None)
                ctx.set(requester.address, offered[number] or 0)
            ready = bool(rng.random() < share)
            ctx.set(arbiter.port.ready, ready)
            request = ctx.get(arbiter.port.valid), ctx.get(arbiter.port.address)
            assert request[0] == any(number is not None for number in offered)
            if before is not None:
                assert request == before, "a request must stay until it is taken"
            before = request if request[0] and not ready else None
            if request[0] and ready:
                taken.append(request[1])
            for number in range(arbiter.count):
                if offered[number] is None:
                    continue
                if ctx.get(arbiter.requesters[number].ready):
                    given[number].append(offered[number])
                    offered[number], waited[number] = None, 0
                else:
                    waited[number] += ready
                    longest = max(longest, waited[number])
            await ctx.tick()

    simulate(arbiter, bench)
    return given, taken, longest


@pytest.mark.parametrize("count", (1, 2, 5))
@pytest.mark.parametrize("kind", (LineReadArbiter, LineWriteArbiter))
@pytest.mark.parametrize(("share", "busy"), ((1.0, 1.0), (0.5, 0.3)))
def test_each_request_comes_through_once_and_nobody_waits_for_more_than_the_others(kind, count, share, busy):
    given, taken, longest = run(kind(16, count), share, busy)
    print(f"{len(taken)} requests, longest wait for {longest} others")
    assert sorted(taken) == sorted(number for of in given for number in of)
    assert [[n for n in taken if n >> 12 == number] for number in range(count)] == given
    assert min(len(of) for of in given) > CYCLES * share * busy / count / 3
    assert longest <= count - 1
    if share == busy == 1.0:
        assert len(taken) == CYCLES


def test_data_reach_every_reader():
    arbiter = LineReadArbiter(8, 3)

    async def bench(ctx):
        ctx.set(arbiter.port.data, 0x0123456789ABCDEF)
        assert [ctx.get(arbiter.requesters[number].data) for number in range(3)] == [0x0123456789ABCDEF] * 3

    simulate(arbiter, bench)

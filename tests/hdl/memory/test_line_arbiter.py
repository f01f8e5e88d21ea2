import pytest
from amaranth import Value
from amaranth.lib.wiring import Out

from neuroncore_rtl.hdl.memory.line_arbiter import LineReadArbiter, LineWriteArbiter
from tests.hdl.simulation import WARM_UP, drive, expect, next_turn, random_bits, simulated

SEED = 3
CYCLES = 600


@pytest.mark.parametrize("count", (1, 5))
@pytest.mark.parametrize("kind", (LineReadArbiter, LineWriteArbiter))
@pytest.mark.parametrize(("share", "busy"), ((1.0, 1.0), (0.5, 0.3), (0.9, 0.05)))
@simulated(lambda kind, count: kind(16, count), warm_up=WARM_UP)
async def test_each_request_passes_once_in_round_robin_and_a_stalled_one_keeps_its_grant(
    ctx, arbiter, kind, count, share, busy, rng
):
    port, members = arbiter.port, arbiter.port.signature.members.items()
    outputs = [name for name, member in members if member.flow == Out and name != "valid"]
    widths = {name: len(Value.cast(getattr(port, name))) for name in outputs}
    offered, last, holds, taken = [None] * count, count - 1, None, [0] * count
    for _ in range(CYCLES):
        for number, requester in enumerate(arbiter.requesters):
            if offered[number] is None and rng.random() < busy:
                offered[number] = {name: random_bits(rng, width) for name, width in widths.items()}
            drive(ctx, requester, valid=offered[number] is not None, **offered[number] or {})
        ready = rng.random() < share
        ctx.set(port.ready, ready)
        requests = sum(1 << number for number, request in enumerate(offered) if request)
        assert ctx.get(port.valid) == (requests != 0)
        turn = None
        if requests:
            turn = holds if holds is not None else next_turn(last, requests, count)
            assert ctx.get(arbiter.chosen) == turn
            expect(ctx, port, **offered[turn])
        if kind is LineReadArbiter:
            line = random_bits(rng, 128)
            ctx.set(port.data, line)
            assert [ctx.get(requester.data) for requester in arbiter.requesters] == [line] * count
        given = [ctx.get(requester.ready) for requester in arbiter.requesters]
        assert given == [ready and number == turn for number in range(count)]
        holds = None if ready else turn
        if ready and requests:
            offered[turn], last = None, turn
            taken[turn] += 1
        await ctx.tick()
    assert min(taken) > CYCLES * share * busy / count / 3 and (share < 1 or sum(taken) == CYCLES)

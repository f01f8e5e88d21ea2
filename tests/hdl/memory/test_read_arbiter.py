"""Read arbiter: addresses of two managers by priority, and beats back to the manager that requested them."""

import random

from neuroncore_rtl.hdl.memory.read_arbiter import ReadArbiter
from tests.hdl.simulation import WARM_UP, drive, simulated

SIZE = 8


@simulated(lambda: ReadArbiter(SIZE), warm_up=WARM_UP)
async def test_the_first_has_priority_and_beats_return_to_their_manager(ctx, dut):
    """An address passes in its cycle, stays once it is offered, and stalls while too many bursts have open beats."""
    rng, ar = random.Random(5), dut.port.ar
    waiting, held, full = [None, None], None, 0
    owed, returned, expected = [], [[], []], [[], []]
    for number in range(3000):
        room = len(owed) < dut.bursts
        for which in (0, 1):
            if waiting[which] is None and rng.random() < 0.4:
                address = rng.getrandbits(39) << 1 | which
                waiting[which] = {"id": rng.randrange(2), "addr": address, "len": rng.getrandbits(8)}
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
        which = held if held is not None else int(waiting[0] is None)
        assert valid == (room and waiting[which] is not None)
        assert [first, second] == [valid and taken and which == number for number in (0, 1)]
        if valid:
            assert {"id": address.id, "addr": address.addr, "len": address.len} == waiting[which]
        held = which if valid and not taken else None
        full += not room
        if valid and taken:
            waiting[which] = None
            owed.append((which, rng.randrange(3)))
    assert returned == expected and min(map(len, returned)) > 250 and full > 100

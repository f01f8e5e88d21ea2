from itertools import product

import pytest

from neuroncore_rtl.golden.core import semaphores as golden
from neuroncore_rtl.hdl.queue.semaphores import Semaphores
from neuroncore_rtl.spec.config import SEMAPHORE_COUNT
from neuroncore_rtl.spec.isa import UpdateOp, record
from tests.hdl.simulation import WARM_UP, drive, expect, next_turn, pulse, simulated, slow

SEED = 1965
QUEUES = 3

USED = (0, 1, 77, 93, 255)
"""Few semaphore indices, so that waits and updates conflict; with `FEW` semaphores, two indices are the same one."""

FEW = 16


def random_update(rng):
    value = int(rng.choice((0, 1, 2, 300, record.SEMAPHORE_MAX - 2, record.SEMAPHORE_MAX)))
    op = UpdateOp(int(rng.choice(4, p=(0.05, 0.15, 0.4, 0.4))))
    return {"op": op, "semaphore": int(rng.choice(USED)), "value": value}


def random_wait(rng):
    value = int(rng.choice((0, 1, 2, 300, record.SEMAPHORE_MAX)))
    return {"on": int(rng.random() < 0.8), "semaphore": int(rng.choice(USED)), "value": value}


def shortage(values, waits):
    for wait in waits:
        has = values[wait["semaphore"]]
        if wait["on"] and has < wait["value"]:
            return wait["semaphore"] | wait["value"] << 8 | (has & 0xFF) << 24
    return None


@pytest.mark.parametrize(
    ("count", "latency", "warm_up"),
    [(SEMAPHORE_COUNT, 0, 0), (SEMAPHORE_COUNT, 1, 0), (FEW, 0, WARM_UP), *slow((FEW, 0, 0))],
)
@simulated(lambda count, latency: Semaphores(QUEUES, count, latency=latency))
async def test_every_wait_and_update_is_that_of_the_model(ctx, dut, count, latency, warm_up, rng):
    values, cycles = golden.Semaphores(dut.count), 3000 if count == FEW else 1500
    seen = {"refused": 0, "satisfied": 0, "short": 0, "taken": [0] * (QUEUES + 1)}
    last = QUEUES
    assert not ctx.get(dut.watch_reached)
    drive(ctx, dut, watch_value=0, **{"access.valid": 1})
    await ctx.tick().repeat(dut.count - 1)
    assert not ctx.get(dut.ready)
    await ctx.tick()
    expect(ctx, dut, ready=1, watch_reached=0)
    pending = [None] * (QUEUES + 1)
    ports = [(u.valid, u.payload, u.ready) for u in dut.updates]
    ports.append((dut.access.valid, dut.access.update, dut.access.ready))
    reached, changes = None, []
    for cycle in range(cycles):
        for number, (valid, payload, _) in enumerate(ports):
            if pending[number] is None and rng.random() < (0.6 if cycle % 100 < 50 else 0.15):
                pending[number] = random_update(rng)
            ctx.set(valid, pending[number] is not None)
            if pending[number]:
                ctx.set(payload, pending[number])
        waits = [[random_wait(rng), random_wait(rng)] for _ in range(QUEUES)]
        watch = random_wait(rng)
        for queue, pair in enumerate(waits):
            ctx.set(dut.waits[queue], pair)
        drive(ctx, dut, watch_semaphore=watch["semaphore"], watch_value=watch["value"])

        for queue, pair in enumerate(waits):
            short = shortage(values, pair)
            assert (ctx.get(dut.satisfied) >> queue & 1) == (short is None)
            assert short is None or ctx.get(dut.shortages[queue].as_value()) == short
            seen["satisfied" if short is None else "short"] += 1
        if reached is not None:
            assert ctx.get(dut.watch_reached) == reached
        reached = values[watch["semaphore"]] >= watch["value"]

        taken = [number for number, (_, _, ready) in enumerate(ports) if ctx.get(ready) and pending[number]]
        requests = sum(1 << number for number, update in enumerate(pending) if update)
        assert taken == ([next_turn(last, requests, QUEUES + 1)] if requests else [])
        last = taken[0] if taken else last
        delayed, changes = changes, [(number, pending[number]) for number in taken]
        wanted = 0
        for number, update in delayed if dut.latency else changes:
            has, changes_it = values[update["semaphore"]], update["op"] != UpdateOp.NONE
            refused = changes_it and not values.update(**update)
            if number == QUEUES:
                expect(ctx, dut.access, has=has, refused=refused)
            else:
                wanted = refused << number
            assert ctx.get(dut.updated) == changes_it
            seen["refused"] += refused
            seen["taken"][number] += 1
        for number in taken:
            pending[number] = None
        assert ctx.get(dut.refused) == wanted
        await ctx.tick()
    assert seen["refused"] > cycles / 50 and min(seen["satisfied"], seen["short"]) > cycles / 6
    assert min(seen["taken"]) > cycles / 15


@pytest.mark.parametrize("count", [FEW, SEMAPHORE_COUNT])
@simulated(lambda count: Semaphores(QUEUES, count))
async def test_the_sweep_after_a_reset_clears_every_value_before_any_access(ctx, dut, reset, count):
    for _ in range(2):
        for cycle in range(count):
            ctx.set(dut.access.valid, 1)
            expect(ctx, dut, cycle, ready=0, satisfied=0, **{"access.ready": 0})
            await ctx.tick()
        expect(ctx, dut, ready=1, satisfied=(1 << QUEUES) - 1)
        for op, semaphore in product((UpdateOp.NONE, UpdateOp.SET), range(count)):
            ctx.set(dut.access.update, {"op": op, "semaphore": semaphore, "value": semaphore + 1})
            expect(ctx, dut.access, semaphore, ready=1, has=0)
            await ctx.tick()
        ctx.set(dut.access.valid, 0)
        await pulse(ctx, reset)

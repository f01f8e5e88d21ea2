import pytest

from neuroncore_rtl.hdl.queue.queue import Queue
from neuroncore_rtl.spec.isa import RECORD_BYTES, Cause, Engine, Rule, UpdateOp
from tests.hdl.queue.queues import whole
from tests.hdl.queue.test_queue import QUEUES, mark, random_item
from tests.hdl.simulation import drive, simulated

SEED = 1984
RECORDS = 64


def program(rng, kind):
    """Return the address of a block, its records, the index of the failing record, and the expected error."""
    first = int(rng.integers(1 << 40))
    items = [random_item(rng, Engine.TENSOR, (first + n * RECORD_BYTES) % (1 << 40), n) for n in range(RECORDS)]
    bad = int(rng.integers(3, RECORDS))
    item = items[bad]
    semaphore = int(rng.integers(256))
    item.updates = ((UpdateOp.ADD, semaphore, mark(2 * bad)), (UpdateOp.SET, 255 - semaphore, mark(2 * bad + 1)))
    cause, detail = Cause.SEMAPHORE, semaphore
    if kind == "engine":
        item.engine, cause, detail = int(Engine.TENSOR), Rule.SHAPE, int(rng.integers(1 << 32))
    elif kind == "fetch":
        item.error, cause, detail = True, Cause.FETCH, 0
    elif kind == "other engine":
        item.engine, cause = int(rng.choice((Engine.VECTOR, Engine.SCALAR, Engine.DMA, 7))), Cause.ENGINE
        detail = item.engine
    return first, items, bad, (int(cause), item.address, detail)


async def fail(ctx, dut, rng, kind):
    """An error before execution is reported in the cycle after all earlier records have retired."""
    first, items, bad, wanted = program(rng, kind)
    fetching, working = [], [[], []]  # requested addresses; finishing cycles by lane
    given = before = 0
    issued, errors, late = [], [], None  # report of the engine, from the next cycle on
    known = due = False  # the failing record is received; its error is due
    passed_later = 0  # NOPs that passed the failing record
    drive(ctx, dut.blocks, valid=1, payload={"address": first, "count": RECORDS})
    for cycle in range(1500):
        ctx.set(dut.wait_satisfied, 1)
        received = fetching.pop(0) if fetching and rng.random() < 0.8 else None
        ctx.set(dut.record.valid, received is not None)
        if received is not None:
            item = items[(received - first) % (1 << 40) // RECORD_BYTES]
            drive(ctx, dut.record, payload=whole(item.bits, item.error))
        ctx.set(dut.request.ready, int(rng.random() < 0.8))
        ctx.set(dut.issue.ready, int(rng.random() < 0.8))
        ctx.set(dut.update.ready, int(rng.random() < 0.7))
        finished = [bool(lane) and lane[0] <= cycle for lane in working]
        ctx.set(dut.completions, sum(1 << n for n, done in enumerate(finished) if done))
        for lane, done in zip(working, finished, strict=True):
            del lane[: int(done)]
        update = dut.update.payload
        taken = ctx.get(dut.update.valid & dut.update.ready)
        # Further refusals after the error have no effect.
        refused = taken and kind == "refused" and (ctx.get(update.value) == mark(2 * bad) or errors)
        ctx.set(dut.update_refused, bool(refused))
        if ctx.get(dut.request.valid & dut.request.ready):
            fetching.append(ctx.get(dut.request.payload))
        if ctx.get(dut.issued):
            place = (ctx.get(dut.issued_address) - first) % (1 << 40) // RECORD_BYTES
            issued.append(place)
            if not items[place].is_nop:
                if kind == "engine" and place == bad:
                    late = {"valid": 1, "cause": wanted[0], "number": given, "detail": wanted[2]}
                elif not late:
                    working[items[place].lane(2)].append(cycle + int(rng.choice((2, 12, 60))))
                given += 1
        rings = ctx.get(dut.blocks.valid & dut.blocks.ready)
        error = ctx.get(dut.error)
        assert kind == "refused" or error.valid == due, f"cycle {cycle}"
        due = due or bool(known and ctx.get(dut.retired_count) == bad + passed_later)
        passed_later += bool(late) and ctx.get(dut.passed)
        known = known or late is not None or (kind in ("fetch", "other engine") and received == items[bad].address)
        if error.valid:
            errors.append((int(error.cause), error.address, error.detail))
            before = len(issued) if len(errors) == 1 else before
        await ctx.tick()
        if rings:
            ctx.set(dut.blocks.valid, 0)
        if late:
            ctx.set(dut.engine_error, late)
        if len(errors) == 40:
            break
    assert errors == [wanted] * 40, (errors[:1], wanted)
    assert issued == list(range(len(issued))) and len(issued) <= before + 1
    if kind in ("fetch", "other engine"):
        assert issued == list(range(bad))


@pytest.mark.parametrize("kind", ("refused", "engine", "fetch", "other engine"))
@simulated(lambda: Queue(*QUEUES["tensor"]))
async def test_the_first_error_is_reported_and_nothing_follows(ctx, dut, reset, kind, rng):
    for _ in range(8):
        await fail(ctx, dut, rng, kind)
        ctx.set(reset, 1)
        drive(ctx, dut, completions=0, update_refused=0)
        ctx.set(dut.engine_error.valid, 0)
        ctx.set(dut.record.valid, 0)
        await ctx.tick()
        ctx.set(reset, 0)
        assert not ctx.get(dut.error.valid) and not ctx.get(dut.busy)

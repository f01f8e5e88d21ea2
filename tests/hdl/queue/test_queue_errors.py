import pytest

from neuroncore_rtl.hdl.queue.queue import Queue
from neuroncore_rtl.spec.isa import Cause, Engine, Rule, UpdateOp
from tests.hdl.queue.test_queue import QUEUES, Driver, addresses_of, mark, random_item
from tests.hdl.simulation import drive, pulse, simulated

SEED = 1984
RECORDS = 64
PACE = {"ask": 0.8, "fetch": 0.8, "issue": 0.8, "update": 0.7, "finish": 0.3, "change": 0}


async def fail(ctx, dut, rng, kind):
    """Let one record of a block fail; the driver compares every port with the model, also after the error."""
    first = int(rng.integers(1 << 40))
    items = [random_item(rng, Engine.TENSOR, at, n) for n, at in enumerate(addresses_of(first, RECORDS))]
    bad = int(rng.integers(3, RECORDS))
    item, semaphore = items[bad], int(rng.integers(256))
    for one in items:  # the semaphores of a record that cannot be issued are not checked
        one.waits = ((9, 1),) if one is item and kind in ("fetch", "other engine") else ()
    item.updates = ((UpdateOp.ADD, semaphore, mark(2 * bad)), (UpdateOp.SET, 255 - semaphore, mark(2 * bad + 1)))
    cause, detail = Cause.SEMAPHORE, semaphore
    driver = Driver(rng, ctx, dut, "tensor", [(first, RECORDS)], {item.address: item for item in items}, PACE)
    model, report = driver.model, None
    if kind == "engine":
        item.engine, cause, detail = int(Engine.TENSOR), Rule.SHAPE, int(rng.integers(1 << 32))
        driver.stuck = {later.address for later in items[bad:]}
        number = sum(not earlier.is_nop for earlier in items[:bad])
        report = {"valid": 1, "cause": int(cause), "number": number, "detail": detail}
    elif kind == "fetch":
        item.error, cause, detail = True, Cause.FETCH, 0
    elif kind == "other engine":
        item.engine, cause = int(rng.choice((Engine.VECTOR, Engine.SCALAR, Engine.DMA, 7))), Cause.ENGINE
        detail = item.engine
    else:  # further refusals after the error have no effect
        driver.refuses = lambda update: update[2] == mark(2 * bad) or model.error is not None
    late = 0
    while late < 40:
        await driver.cycle()
        driver.report = report if item.address in model.launched else None
        late += model.error is not None
    assert model.error == (int(cause), item.address, detail)
    if kind in ("fetch", "other engine"):
        assert driver.issued == [earlier.address for earlier in items[:bad]]


@pytest.mark.parametrize("kind", ("refused", "engine", "fetch", "other engine"))
@simulated(lambda: Queue(*QUEUES["tensor"]))
async def test_the_first_error_is_reported_and_nothing_follows(ctx, dut, reset, kind, rng):
    for _ in range(5):
        await fail(ctx, dut, rng, kind)
        drive(ctx, dut, completions=0, update_refused=0)
        for valid in (dut.engine_error.valid, dut.record.valid, dut.blocks.valid):
            ctx.set(valid, 0)
        await pulse(ctx, reset)

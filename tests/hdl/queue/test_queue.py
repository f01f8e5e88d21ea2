from collections import deque
from itertools import product

import pytest
from amaranth import Module

from neuroncore_rtl.hdl.queue.queue import IN_FLIGHT, Queue
from neuroncore_rtl.hdl.queue.semaphores import Semaphores
from neuroncore_rtl.spec.config import SEMAPHORE_COUNT
from neuroncore_rtl.spec.isa import HEADER_BITS, RECORD_BITS, RECORD_BYTES, Engine, UpdateOp
from tests.hdl.queue.queues import OWN, Item, QueueModel, beats
from tests.hdl.simulation import assign, drive, expect, flash, pulse, random_bits, simulate, simulated, slow_if

SEED = 1977

QUEUES = {
    "tensor": (Engine.TENSOR, 2, 4),
    "vector": (Engine.VECTOR, 1, 4),
    "dma": (Engine.DMA, 1, 2, 1),
    "collective": (Engine.COLLECTIVE, 1, 2),
}

SEMAPHORES = (3, 85, 172, 240)

LEVELS = (0, 0x2ACD, 0xB553, 0xFFFF)
"""Values of the semaphores in the test, which are also the values that records wait for."""


def mark(serial):
    return serial * 0x9E37 % (1 << 16)


def random_item(rng, engine, address, serial):
    waits = tuple((int(rng.choice(SEMAPHORES)), int(rng.choice(LEVELS))) for _ in range(rng.integers(3)))
    updates = tuple((UpdateOp(int(rng.integers(4))), int(rng.integers(256)), mark(2 * serial + n)) for n in range(2))
    engine = Engine.QUEUE if rng.random() < 0.3 else engine
    return Item(int(engine), random_bits(rng, RECORD_BITS - HEADER_BITS), waits, updates, address)


def addresses_of(place, count):
    return [(place + n * RECORD_BYTES) % (1 << 40) for n in range(count)]


def random_blocks(rng, engine, count):
    blocks, memory = [], {}
    for _ in range(count):
        blocks.append((int(rng.integers(1 << 40)), int(rng.choice((0, 1, 2, 3, 7, 12)))))
        for address in addresses_of(*blocks[-1]):
            memory[address] = random_item(rng, engine, address, len(memory))
    return blocks, memory


class Driver:
    """Models the surroundings of a queue, checks every output against the model, and steps the model."""

    def __init__(self, rng, ctx, dut, kind, blocks, memory, pace):
        self.rng, self.ctx, self.dut, self.memory, self.pace = rng, ctx, dut, memory, pace
        self.model = QueueModel(*QUEUES[kind])
        self.stuck = ()  # addresses of records that the engine does not finish
        self.refuses = lambda update: False
        self.report = None  # error of the engine, from the next cycle on
        self.blocks, self.fetching = deque(blocks), deque()
        self.offered = None  # update on offer, not yet accepted
        self.issued, self.updates = [], []

    def may(self, what):
        return int(self.rng.random() < self.pace.get(what, 1))

    def oldest_working(self, lane):
        return self.model.lanes[lane].records[self.model.lanes[lane].finished]

    def drive(self):
        ctx, dut = self.ctx, self.dut
        if self.blocks and not ctx.get(dut.blocks.valid):
            address, count = self.blocks[0]
            drive(ctx, dut.blocks, valid=self.may("ring"), payload={"address": address, "count": count})
        drive(ctx, dut, halt=self.model.halt, **{"request.ready": self.may("ask")})
        received = self.memory[self.fetching.popleft()] if self.fetching and self.may("fetch") else None
        record = (received.bits, received.error) if received else (random_bits(self.rng, RECORD_BITS), self.may("half"))
        drive(ctx, dut.record, valid=received is not None, payload=beats(*record)[0])
        ctx.set(dut.issue.ready, self.may("issue"))
        working = [n for n, lane in enumerate(self.model.lanes) if len(lane.records) > lane.finished]
        working = [n for n in working if self.oldest_working(n).address not in self.stuck]
        finished = [n for n in working if self.may("finish")]
        ctx.set(dut.completions, sum(1 << n for n in finished))
        ctx.set(dut.update.ready, self.may("update"))
        if self.may("change"):
            self.model.values[int(self.rng.choice(SEMAPHORES))] = int(self.rng.choice(LEVELS))
        on = tuple((wait.semaphore, wait.value) for wait in ctx.get(dut.wait) if wait.on)
        assert not self.model.here or on == self.model.here[0].waits
        ctx.set(dut.wait_satisfied, all(self.model.values[s] >= v for s, v in on))
        return received, finished

    def observe(self, finished):
        ctx, dut, model = self.ctx, self.dut, self.model
        head = model.here[0] if model.here else None
        wanted = {"places": model.room, "rung": model.rung, "waiting": model.waiting, "busy": model.busy}
        wanted |= {"retired": sum(1 << n for n in finished), "retired_count": model.counters["records"]}
        wanted |= {"blocks.ready": model.room > 0 or model.halt, "request.valid": model.request is not None}
        wanted |= {"issue.valid": model.cleared and not model.passing, "error.valid": model.error is not None}
        wanted |= {f"counters.{name}": count for name, count in model.counters.items()}
        error = zip(("cause", "address", "detail"), model.error or (0, 0, 0), strict=True)
        expect(ctx, dut, **wanted, **{f"error.{name}": value for name, value in error})
        assert model.request is None or ctx.get(dut.request.payload) == model.request
        if model.cleared:
            assert model.passing or ctx.get(dut.issue.payload) == head.body % (1 << model.body_bits)
            assert ctx.get(dut.issued_address) == head.address
        if model.busy:
            assert ctx.get(dut.address) == (head.address if model.waiting else model.oldest())
            if model.engine == Engine.COLLECTIVE:
                assert ctx.get(dut.oldest) == model.oldest()
        for n in finished:
            assert ctx.get(dut.retired_address[n]) == self.oldest_working(n).address
        own, chosen = model.offer(), None
        offered = own or model.lanes[model.next_lane].offers
        assert ctx.get(dut.update.valid) == (offered is not None)
        if offered:
            payload = ctx.get(dut.update.payload)
            update = (UpdateOp(payload.op.value), payload.semaphore, payload.value)
            chosen = OWN if own else model.next_lane
            assert update == offered
            assert self.offered in (None, update), "an update changed while it was on offer"
            self.offered = update
        return chosen

    async def cycle(self):
        ctx, dut, model = self.ctx, self.dut, self.model
        received, finished = self.drive()
        chosen = self.observe(finished)
        rings = self.blocks.popleft() if ctx.get(dut.blocks.valid & dut.blocks.ready) else None
        requested = ctx.get(dut.request.valid & dut.request.ready)
        issued, given = ctx.get(dut.issued), ctx.get(dut.issue.valid & dut.issue.ready)
        updated = chosen if chosen is not None and ctx.get(dut.update.ready) else None
        refused = updated is not None and self.refuses(self.offered)
        ctx.set(dut.update_refused, refused)
        if self.report:
            ctx.set(dut.engine_error, self.report)
        assert ctx.get(dut.passed) == model.passes(updated)
        assert issued == (given or model.passes(updated))
        assert ctx.get(dut.progress) == any((rings, requested, received, given, model.passing, finished))
        if requested:
            self.fetching.append(model.request)
        if issued:
            self.issued.append(model.here[0].address)
        if updated is not None:
            self.updates.append((updated, self.offered))
            self.offered = None
        model.step(rings, requested, received, issued, finished, updated, refused, self.report)
        await ctx.tick()
        ctx.set(dut.blocks.valid, ctx.get(dut.blocks.valid) and rings is None)


PACES = {
    "fast": {},
    "random": dict.fromkeys(("ring", "ask", "fetch", "issue", "finish", "update", "change", "half"), 0.5),
    "slow engine": {"issue": 0.7, "finish": 0.05, "half": 0.5},
    "slow memory": {"ask": 0.2, "fetch": 0.2, "update": 0.3, "half": 0.5},
}


@pytest.mark.parametrize(
    ("kind", "pace"),
    slow_if(lambda kind, pace: pace != "random" and kind not in ("tensor", "collective"), product(QUEUES, PACES)),
)
@simulated(lambda kind: Queue(*QUEUES[kind]))
async def test_every_port_in_every_cycle_is_that_of_the_model(ctx, dut, kind, pace, rng):
    engine, lanes, *_ = QUEUES[kind]
    blocks, memory = random_blocks(rng, engine, 20)
    driver = Driver(rng, ctx, dut, kind, blocks, memory, PACES[pace])
    model, most = driver.model, 0
    for _ in range(6000):
        await driver.cycle()
        most = max(most, model.in_flight)
        if not driver.blocks and not model.busy:
            break
    for _ in range(2):
        await driver.cycle()
    assert not model.busy
    addresses = [address for block in blocks for address in addresses_of(*block)]
    assert driver.issued == addresses and len(addresses) > 50
    for lane in (None, *range(lanes)):
        items = [memory[address] for address in addresses if memory[address].lane(lanes) == lane]
        wanted = [update for item in items for update in item.changes]
        source = OWN if lane is None else lane
        assert [update for number, update in driver.updates if number == source] == wanted and wanted
    assert model.counters["records"] == len(addresses)
    assert most == IN_FLIGHT or pace != "slow engine"


@pytest.mark.parametrize("kind", slow_if(lambda kind: kind in ("tensor", "dma"), QUEUES))
@simulated(lambda kind: Queue(*QUEUES[kind]))
async def test_a_halt_and_a_reset_during_work(ctx, dut, reset, kind, rng):
    discarded = 0
    for _ in range(25):
        blocks = random_blocks(rng, QUEUES[kind][0], 6)
        driver = Driver(rng, ctx, dut, kind, *blocks, PACES["random"] | {"update": 0.25})
        for _ in range(int(rng.integers(10, 50))):
            await driver.cycle()
        driver.model.halt, before = True, len(driver.blocks)
        for _ in range(20):
            await driver.cycle()
        discarded += before - len(driver.blocks)
        await pulse(ctx, reset)
        drive(ctx, dut, halt=0)
        drive(ctx, dut.blocks, valid=0)
    assert discarded > 10


@simulated(lambda: Queue(*QUEUES["tensor"]))
async def test_a_block_has_as_many_records_as_its_count_says(ctx, dut, reset, rng):
    for bit in range(16):  # a bit of the count; 2,048 records of the longest block are fetched
        place, cycles = int(rng.integers(1 << 40)), 4150 if bit == 15 else 25
        memory = {at: Item(int(Engine.TENSOR), random_bits(rng, 500), address=at) for at in addresses_of(place, cycles)}
        driver = Driver(rng, ctx, dut, "tensor", [(place, (1 << bit) + 2)], memory, PACES["fast"])
        for _ in range(cycles):
            await driver.cycle()
        assert len(driver.issued) > min(1 << bit, cycles // 2 - 10)
        await pulse(ctx, reset)


def test_latency_of_a_wait():
    queue, semaphores, m = Queue(Engine.DMA), Semaphores(1), Module()
    m.submodules += [queue, semaphores]
    assign(m, queue, wait_satisfied=semaphores.satisfied[0])
    m.d.comb += semaphores.waits[0].eq(queue.wait)

    async def bench(ctx):
        await ctx.tick().repeat(SEMAPHORE_COUNT)
        ctx.set(queue.request.ready, 1)
        await flash(ctx, queue.blocks, {"address": 0, "count": 1})
        await flash(ctx, queue.record, beats(Item(int(Engine.DMA), 0, waits=((3, 1),)).bits, 0)[0])
        await ctx.tick().repeat(5)
        assert ctx.get(queue.waiting)
        drive(ctx, semaphores.access, update={"op": UpdateOp.ADD, "semaphore": 3, "value": 1}, valid=1)
        await ctx.tick()
        for _ in range(Queue.WAIT_LATENCY - 1):
            assert not ctx.get(queue.issue.valid)
            await ctx.tick()
        assert ctx.get(queue.issue.valid)

    simulate(m, bench)


@pytest.mark.parametrize(("engine", "lanes"), [(Engine.VECTOR, 2), (Engine.TENSOR, 3), (Engine.DMA, 0)])
def test_lanes_wrong(engine, lanes):
    with pytest.raises(ValueError, match=f"lanes must be 1, or 2 for the tensor engine, not {lanes}"):
        Queue(engine, lanes)
